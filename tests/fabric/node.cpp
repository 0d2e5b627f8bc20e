#include "node.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace fabric_test {

namespace {

using Clock = std::chrono::steady_clock;

const std::string told_nothing =
    "the provider does not offer what this test asks for; its fi_info says so";

}  // namespace

const char* provider_name() {
  const char* name = std::getenv("HAUL_TEST_PROVIDER");
  return name != nullptr && *name != 0 ? name : "haul";
}

bool provider_is_haul() {
  return std::strcmp(provider_name(), "haul") == 0;
}

std::chrono::seconds patience() {
  const char* seconds = std::getenv("HAUL_TEST_PATIENCE_S");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 30);
}

void CloseFid::operator()(fid* handle) const {
  EXPECT_EQ(fi_close(handle), 0);
}

Info hints_of(const Wish& wish) {
  Info hints{fi_allocinfo()};
  hints->caps = wish.caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = wish.msg_order;
  hints->rx_attr->msg_order = wish.msg_order;
  hints->tx_attr->op_flags = wish.tx_flags;
  hints->rx_attr->op_flags = wish.rx_flags;
  hints->domain_attr->mr_mode = wish.mr_mode;
  hints->domain_attr->av_type = wish.av;
  hints->domain_attr->threading = wish.threading;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = strdup(provider_name());
  return hints;
}

Info ask(const Wish& wish, int* status) {
  fi_info* found = nullptr;
  const int answer = fi_getinfo(wish.version, nullptr, nullptr, 0, hints_of(wish).get(), &found);
  if (status != nullptr) *status = answer;
  return Info{answer == 0 ? found : nullptr};
}

Node::Node(const Wish& wish) {
  open(wish);
}

Node::Node(const Wish& wish, const fi_info& answer) : info(fi_dupinfo(&answer)) {
  open_domain(wish);
}

void Node::open(const Wish& wish) {
  info = ask(wish);
  if (!info) {
    why_ = told_nothing;
    // haul promises all of it: to skip would hide that the provider is not found, or lost a
    // feature.
    if (provider_is_haul()) {
      ADD_FAILURE() << "fi_getinfo() finds nothing for the test's hints: set FI_PROVIDER_PATH to "
                       "the directory of libhaul-fi.so, or repair what it offers";
    }
    return;
  }
  open_domain(wish);
}

void Node::open_domain(const Wish& wish) {
  fid_fabric* new_fabric = nullptr;
  fid_domain* new_domain = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &new_fabric, nullptr), 0);
  fabric.reset(new_fabric);
  ASSERT_EQ(fi_domain(new_fabric, info.get(), &new_domain, nullptr), 0);
  domain_owner.reset(new_domain);
  domain = new_domain;
  open_endpoint(wish);
}

Node::Node(const Wish& wish, Node& neighbour) {
  if (!neighbour.ready()) {
    why_ = neighbour.why();
    return;
  }
  info.reset(fi_dupinfo(neighbour.info.get()));
  domain = neighbour.domain;
  open_endpoint(wish);
}

void Node::open_endpoint(const Wish& wish) {
  fi_av_attr av_attr{};
  av_attr.type = wish.av == FI_AV_UNSPEC ? info->domain_attr->av_type : wish.av;
  fid_av* new_av = nullptr;
  ASSERT_EQ(fi_av_open(domain, &av_attr, &new_av, nullptr), 0);
  av.reset(new_av);
  fi_cq_attr cq_attr{};
  cq_attr.format = wish.format;
  cq_attr.wait_obj = wish.wait;
  cq_attr.size = wish.cq_size;
  fid_cq* new_cq = nullptr;
  const int opened = fi_cq_open(domain, &cq_attr, &new_cq, nullptr);
  if (opened == -FI_ENOSYS && !provider_is_haul()) {
    why_ = "the provider has no such wait object";
    return;
  }
  ASSERT_EQ(opened, 0);
  cq.reset(new_cq);
  fid_ep* new_ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &new_ep, nullptr), 0);
  Owned<fid_ep> endpoint{new_ep};
  ASSERT_EQ(fi_ep_bind(new_ep, &new_av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(new_ep, &new_cq->fid, FI_TRANSMIT | FI_RECV | wish.selective), 0);
  ASSERT_EQ(fi_enable(new_ep), 0);
  ep = std::move(endpoint);
}

Node::~Node() {
  ep.reset();
  cq.reset();
  av.reset();
  domain_owner.reset();
  fabric.reset();
}

std::vector<std::byte> Node::name() const {
  std::size_t length = 0;
  EXPECT_EQ(fi_getname(&ep->fid, nullptr, &length), -FI_ETOOSMALL);
  std::vector<std::byte> bytes(length);
  EXPECT_EQ(fi_getname(&ep->fid, bytes.data(), &length), 0);
  bytes.resize(length);
  return bytes;
}

fi_addr_t Node::insert(const std::vector<std::byte>& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av.get(), name.data(), 1, &address, 0, nullptr), 1);
  EXPECT_NE(address, FI_ADDR_NOTAVAIL);
  return address;
}

bool Node::read_queue() {
  constexpr std::size_t batch = 16;
  fi_cq_tagged_entry entries[batch];
  fi_addr_t sources[batch];
  bool any = false;
  for (;;) {
    std::fill(std::begin(sources), std::end(sources), FI_ADDR_NOTAVAIL);
    const ssize_t count = fi_cq_readfrom(cq.get(), entries, batch, sources);
    if (count == -FI_EAGAIN) return any;
    any = true;
    if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      const ssize_t errors = fi_cq_readerr(cq.get(), &error, 0);
      EXPECT_EQ(errors, 1);
      if (errors != 1) return any;
      inbox_.push_back(Completion{static_cast<Op*>(error.op_context), error.flags, error.len,
                                  error.buf, error.data, error.tag, FI_ADDR_NOTAVAIL, error.err,
                                  error.olen});
      EXPECT_GT(error.err, 0) << "the error of a completion is a positive number";
      continue;
    }
    EXPECT_GT(count, 0) << "fi_cq_readfrom() says " << fi_strerror(static_cast<int>(-count));
    if (count <= 0) return any;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const fi_cq_tagged_entry& entry = entries[i];
      inbox_.push_back(Completion{static_cast<Op*>(entry.op_context), entry.flags, entry.len,
                                  entry.buf, entry.data, entry.tag, sources[i], 0, 0});
    }
  }
}

void Node::progress() {
  bool any = read_queue();
  for (Node* companion : companions) any = companion->read_queue() || any;
  if (!any) sched_yield();
}

bool Node::await_until(const std::function<bool()>& condition) {
  const auto limit = Clock::now() + patience();
  while (!condition()) {
    if (Clock::now() > limit) return false;
    progress();
  }
  return true;
}

std::optional<Completion> Node::take(const Op& op) {
  const auto found = std::find_if(inbox_.begin(), inbox_.end(),
                                  [&](const Completion& entry) { return entry.op == &op; });
  if (found == inbox_.end()) return std::nullopt;
  const Completion taken = *found;
  inbox_.erase(found);
  return taken;
}

Completion Node::await(const Op& op) {
  std::optional<Completion> found;
  if (!await_until([&] { return (found = take(op)).has_value(); })) {
    ADD_FAILURE() << "an operation did not complete in " << patience().count() << " s; "
                  << inbox_.size() << " other completions are there";
    return Completion{.err = FI_ETIMEDOUT};
  }
  return *found;
}

Completion Node::next() {
  if (!await_until([&] { return !inbox_.empty(); })) {
    ADD_FAILURE() << "no completion came in " << patience().count() << " s";
    return Completion{.err = FI_ETIMEDOUT};
  }
  const Completion taken = inbox_.front();
  inbox_.pop_front();
  return taken;
}

bool Node::stays_quiet() {
  const auto limit = Clock::now() + std::chrono::milliseconds(30);
  while (Clock::now() < limit) progress();
  return inbox_.empty();
}

ssize_t Node::post(const std::function<ssize_t()>& call) {
  const auto limit = Clock::now() + patience();
  for (;;) {
    const ssize_t status = call();
    if (status != -FI_EAGAIN || Clock::now() > limit) return status;
    progress();
  }
}

Pair::Pair(const Wish& wish, bool one_domain)
    : a(wish),
      b_owner(one_domain ? std::make_unique<Node>(wish, a) : std::make_unique<Node>(wish)),
      b(*b_owner) {
  if (!ready()) return;
  a.companions.push_back(&b);
  b.companions.push_back(&a);
  to_b = a.insert(b.name());
  to_a = b.insert(a.name());
}

std::vector<std::uint8_t> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(size);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  std::size_t at = 0;
  while (at < size) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t word = state;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word ^= word >> 27;
    const std::size_t part = std::min(sizeof word, size - at);
    std::memcpy(bytes.data() + at, &word, part);
    at += part;
  }
  return bytes;
}

std::string difference(const void* got, const std::vector<std::uint8_t>& wanted) {
  const auto* bytes = static_cast<const std::uint8_t*>(got);
  if (wanted.empty() || std::memcmp(bytes, wanted.data(), wanted.size()) == 0) return {};
  const auto place = std::mismatch(wanted.begin(), wanted.end(), bytes).first - wanted.begin();
  return "byte " + std::to_string(place) + " of " + std::to_string(wanted.size()) + " is wrong";
}

Region::Region(Node& node, std::size_t bytes, std::uint64_t access, std::uint64_t key)
    : bytes_(bytes) {
  fid_mr* new_mr = nullptr;
  const int mode = node.info->domain_attr->mr_mode;
  status_ = fi_mr_reg(node.domain, bytes_.data(), bytes, access, 0, key, 0, &new_mr, nullptr);
  if (status_ != 0) return;
  mr_.reset(new_mr);
  if ((mode & FI_MR_ENDPOINT) != 0) {
    EXPECT_EQ(fi_mr_bind(new_mr, &node.ep->fid, 0), 0);
    EXPECT_EQ(fi_mr_enable(new_mr), 0);
  }
  if ((mode & FI_MR_VIRT_ADDR) != 0) base_ = reinterpret_cast<std::uintptr_t>(bytes_.data());
  if ((mode & FI_MR_PROV_KEY) == 0) {
    EXPECT_EQ(fi_mr_key(new_mr), key);
  }
}

std::uint64_t Region::key() const {
  return fi_mr_key(mr_.get());
}

}  // namespace fabric_test
