#include "rank.hpp"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace rank_test {

namespace {

void must(long status, const char* what) {
  if (status < 0) give_up("%s says %s", what, fi_strerror(static_cast<int>(-status)));
}

}  // namespace

void give_up(const char* format, ...) {
  char text[500];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "process %d: %s\n", getpid(), text);
  _exit(1);
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t word = state_;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

std::size_t Random::size(std::size_t most) {
  const auto bits = static_cast<std::uint64_t>(std::bit_width(most));
  const std::size_t limit = std::size_t{1} << below(bits + 1);
  return std::min<std::size_t>(below(limit + 1), most);
}

Endpoint::Endpoint(std::uint64_t caps) {
  const char* provider = std::getenv("HAUL_TEST_PROVIDER");
  fi_info* hints = fi_allocinfo();
  hints->caps = caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = strdup(provider != nullptr ? provider : "haul");
  const int found = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info_);
  fi_freeinfo(hints);
  if (found != 0)
    give_up("fi_getinfo() finds nothing (%s): set FI_PROVIDER_PATH to the provider's directory",
            fi_strerror(-found));
  must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
  must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
  fi_av_attr av_attr{};
  av_attr.type = info_->domain_attr->av_type;
  must(fi_av_open(domain_, &av_attr, &av_, nullptr), "fi_av_open");
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.size = 4096;
  must(fi_cq_open(domain_, &cq_attr, &cq_, nullptr), "fi_cq_open");
  must(fi_endpoint(domain_, info_, &ep, nullptr), "fi_endpoint");
  must(fi_ep_bind(ep, &av_->fid, 0), "fi_ep_bind");
  must(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  must(fi_enable(ep), "fi_enable");
}

Endpoint::~Endpoint() {
  must(fi_close(&ep->fid), "closing the endpoint");
  if (region_ != nullptr) must(fi_close(&region_->fid), "closing the region");
  must(fi_close(&cq_->fid), "closing the queue");
  must(fi_close(&av_->fid), "closing the address vector");
  must(fi_close(&domain_->fid), "closing the domain");
  must(fi_close(&fabric_->fid), "closing the fabric");
  fi_freeinfo(info_);
}

std::vector<char> Endpoint::name() const {
  std::vector<char> bytes(256);
  std::size_t length = bytes.size();
  must(fi_getname(&ep->fid, bytes.data(), &length), "fi_getname");
  bytes.resize(length);
  return bytes;
}

fi_addr_t Endpoint::insert(const std::vector<char>& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  if (fi_av_insert(av_, name.data(), 1, &address, 0, nullptr) != 1)
    give_up("fi_av_insert() refuses the address of a peer");
  return address;
}

void Endpoint::remove(fi_addr_t address) {
  must(fi_av_remove(av_, &address, 1, 0), "fi_av_remove");
}

void Endpoint::share(void* memory, std::size_t bytes) {
  must(fi_mr_reg(domain_, memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0, &region_,
                 nullptr),
       "fi_mr_reg");
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  base_ = virtual_addresses ? reinterpret_cast<std::uintptr_t>(memory) : 0;
}

void Endpoint::reap(const std::function<void(const Completion&)>& take) {
  constexpr std::size_t batch = 8;
  fi_cq_tagged_entry entries[batch];
  fi_addr_t sources[batch];
  bool any = false;
  for (int rounds = 0; rounds < 8; ++rounds) {
    std::fill(std::begin(sources), std::end(sources), FI_ADDR_NOTAVAIL);
    const ssize_t count = fi_cq_readfrom(cq_, entries, batch, sources);
    if (count == -FI_EAGAIN) break;
    any = true;
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(cq_, &error, 0) != 1) give_up("an error is announced, but not there");
      take({static_cast<Operation*>(error.op_context), error.flags, error.len, error.tag,
            FI_ADDR_NOTAVAIL, std::abs(error.err)});
      continue;
    }
    must(count, "fi_cq_readfrom");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      take({static_cast<Operation*>(entries[i].op_context), entries[i].flags, entries[i].len,
            entries[i].tag, sources[i], 0});
  }
  if (!any) sched_yield();
}

void Channel::put_bytes(const void* bytes, std::size_t size) const {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = send(descriptor_, from, size, MSG_NOSIGNAL);
    if (count <= 0) give_up("the other end of a channel has gone");
    from += count;
    size -= static_cast<std::size_t>(count);
  }
}

void Channel::get_bytes(void* bytes, std::size_t size) const {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = recv(descriptor_, to, size, 0);
    if (count <= 0) give_up("the other end of a channel has gone");
    to += count;
    size -= static_cast<std::size_t>(count);
  }
}

bool Channel::readable() const {
  pollfd asked{descriptor_, POLLIN, 0};
  return poll(&asked, 1, 0) > 0;
}

void Channel::put_block(const std::vector<char>& block) const {
  put(block.size());
  put_bytes(block.data(), block.size());
}

std::vector<char> Channel::get_block() const {
  std::vector<char> block(get<std::size_t>());
  get_bytes(block.data(), block.size());
  return block;
}

void Channel::close() const {
  ::close(descriptor_);
}

std::vector<Rank> start_ranks(std::size_t count,
                              const std::function<int(std::size_t, Channel)>& body) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < count; ++rank) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      give_up("no socket pair: %s", std::strerror(errno));
    const pid_t pid = fork();
    if (pid < 0) give_up("no process: %s", std::strerror(errno));
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      for (const Rank& other : ranks) other.channel.close();
      _exit(body(rank, Channel(ends[1])));
    }
    ::close(ends[1]);
    ranks.push_back({pid, Channel(ends[0])});
  }
  return ranks;
}

void spread_blocks(const std::vector<Rank>& ranks) {
  std::vector<std::vector<char>> blocks;
  for (const Rank& rank : ranks) blocks.push_back(rank.channel.get_block());
  for (const Rank& rank : ranks)
    for (const auto& block : blocks) rank.channel.put_block(block);
}

std::vector<std::vector<char>> exchange_block(Channel parent, std::size_t count,
                                              const std::vector<char>& own) {
  parent.put_block(own);
  std::vector<std::vector<char>> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(parent.get_block());
  return all;
}

Holdings holdings() {
  Holdings held;
  held.descriptors = files_in("/proc/self/fd").size();
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    ++held.mappings;
    const std::size_t space = line.find(' ');
    if (space != std::string::npos && line.size() > space + 4 && line[space + 4] == 's')
      ++held.shared_mappings;
  }
  const struct mallinfo2 heap = mallinfo2();
  held.heap_bytes = heap.uordblks + heap.hblkhd;
  return held;
}

std::vector<std::string> files_in(const char* directory) {
  std::vector<std::string> names;
  DIR* opened = opendir(directory);
  if (opened == nullptr) return names;
  while (const dirent* entry = readdir(opened))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t option(int argc, char** argv, const char* name, std::uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; i += 2)
    if (std::strcmp(argv[i], name) == 0) return std::strtoull(argv[i + 1], nullptr, 0);
  return otherwise;
}

}  // namespace rank_test
