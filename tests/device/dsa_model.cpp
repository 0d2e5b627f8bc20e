#include "device/dsa_model.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "device/dsa_memory.hpp"

namespace haul_model {
namespace {

constexpr unsigned slots = page_bytes / sizeof(dsa_hw_desc);

void must(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::abort();
}

bool compares(const dsa_hw_desc& descriptor) {
  return descriptor.opcode == DSA_OPCODE_COMPARE || descriptor.opcode == DSA_OPCODE_COMPVAL;
}

bool moves_bytes(const dsa_hw_desc& descriptor) {
  return descriptor.opcode == DSA_OPCODE_MEMMOVE || descriptor.opcode == DSA_OPCODE_MEMFILL;
}

}  // namespace

DsaModel::DsaModel(DsaPath path, const DsaConduct& conduct)
    : path_(path), conduct_(conduct), random_(conduct.seed) {
  if (path == DsaPath::portal) {
    portal_ = memfd_create("dsa-portal", MFD_CLOEXEC);
    must(portal_ >= 0 && ftruncate(portal_, page_bytes) == 0, "a memfd for the portal");
    void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, portal_, 0);
    must(page != MAP_FAILED, "the portal");
    page_ = static_cast<unsigned char*>(page);
  } else {
    int ends[2];
    must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe");
    pipe_read_ = ends[0];
    pipe_write_ = ends[1];
    fcntl(pipe_write_, F_SETPIPE_SZ, static_cast<int>(page_bytes));
  }
}

DsaModel::~DsaModel() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  if (page_ != nullptr) munmap(page_, page_bytes);
  for (const int descriptor : {portal_, pipe_read_, pipe_write_})
    if (descriptor >= 0) close(descriptor);
}

std::string DsaModel::knob() const {
  std::string text = "/proc/" + std::to_string(getpid()) + "/fd/" +
                     std::to_string(path_ == DsaPath::portal ? portal_ : pipe_write_) +
                     " depth=" + std::to_string(conduct_.depth) +
                     " batch=" + std::to_string(conduct_.most_batch) +
                     " transfer=" + std::to_string(conduct_.most_transfer);
  if (path_ == DsaPath::pipe) text += " shared";
  if (conduct_.block_on_fault) text += " block_on_fault";
  if (conduct_.verified) text += " verify";
  return text;
}

void DsaModel::start() {
  thread_ = std::thread([this] { run(); });
}

void DsaModel::run() {
  while (!ends_.load(std::memory_order_relaxed)) {
    path_ == DsaPath::portal ? take_from_portal() : take_from_pipe();
    // Those that are held go on too, after a while, or the program would wait for ever.
    if (accepted_.size() > conduct_.held || (!accepted_.empty() && ++idle_ > 50)) {
      idle_ = 0;
      execute_one();
    } else {
      sched_yield();
    }
  }
}

void DsaModel::take_from_portal() {
  for (;;) {
    auto* const slot = reinterpret_cast<std::uint64_t*>(page_ + next_slot_ * sizeof(dsa_hw_desc));
    // Pairs with the plug-in's store of the first word, its last.
    if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == 0) return;
    std::uint64_t words[sizeof(dsa_hw_desc) / sizeof(std::uint64_t)];
    for (std::size_t word = 0; word < std::size(words); ++word)
      words[word] = __atomic_load_n(slot + word, __ATOMIC_RELAXED);
    dsa_hw_desc descriptor;
    std::memcpy(&descriptor, words, sizeof descriptor);
    __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
    next_slot_ = (next_slot_ + 1) % slots;
    accept(descriptor);
  }
}

void DsaModel::take_from_pipe() {
  dsa_hw_desc descriptor;
  while (read(pipe_read_, &descriptor, sizeof descriptor) == sizeof descriptor) {
    if (descriptor.opcode == DSA_OPCODE_BATCH) {
      ++counts_.refused;  // (by the kernel, which does not look at what a batch names)
    } else if (descriptor.opcode != DSA_OPCODE_NOOP) {
      accept(descriptor);
    }
  }
  if (conduct_.full_pipe && chance(2)) fill_pipe();
}

// With descriptors that do nothing, and leaves it so for a while.
void DsaModel::fill_pipe() {
  dsa_hw_desc nothing{};
  nothing.flags = IDXD_OP_FLAG_RCR;
  while (write(pipe_write_, &nothing, sizeof nothing) == sizeof nothing) continue;
  usleep(300);
}

void DsaModel::accept(const dsa_hw_desc& descriptor) {
  // (A drain has room of its own, here: hardware takes one more while it executes another.)
  if (accepted_.size() >= conduct_.depth && descriptor.opcode != DSA_OPCODE_DRAIN) {
    ++counts_.dropped;
  } else {
    accepted_.push_back(descriptor);
  }
}

void DsaModel::execute_one() {
  if (stuck_) {
    usleep(100);
    return;
  }
  // A drain waits for all that came before it, and what came after waits for nothing.
  std::size_t first_drain = 0;
  while (first_drain < accepted_.size() && accepted_[first_drain].opcode != DSA_OPCODE_DRAIN)
    ++first_drain;
  const std::size_t at = first_drain == 0 ? 0 : (conduct_.held != 0 ? random_() % first_drain : 0);
  const dsa_hw_desc descriptor = accepted_[at];
  accepted_.erase(accepted_.begin() + static_cast<std::ptrdiff_t>(at));
  if (conduct_.slow_us != 0) usleep(conduct_.slow_us);
  if (descriptor.opcode == DSA_OPCODE_BATCH) {
    execute_batch(descriptor);
    return;
  }
  dsa_completion_record record{};
  const std::uint8_t status = execute(descriptor, record, false);
  end(descriptor, record, status);
}

void DsaModel::execute_batch(const dsa_hw_desc& batch) {
  ++counts_.batches;
  dsa_completion_record record{};
  std::uint8_t status = check(batch, false);
  if (status == DSA_COMP_SUCCESS && (batch.desc_list_addr & 63) != 0)
    status = DSA_COMP_DESCLIST_ALIGN;
  if (status == DSA_COMP_SUCCESS &&
      (batch.desc_count < 2 || batch.desc_count > conduct_.most_batch))
    status = DSA_COMP_DESC_CNT_ERANGE;
  if (status != DSA_COMP_SUCCESS) {
    ++counts_.refused;
    end(batch, record, status);
    return;
  }
  std::uint32_t count = batch.desc_count;
  if (chance(conduct_.p_batch_error)) {
    ++counts_.errors;
    count = static_cast<std::uint32_t>(random_() % count);
    status = DSA_COMP_BATCH_PAGE_FAULT;
  }
  std::vector<dsa_hw_desc> list(count);
  copy(reinterpret_cast<std::uintptr_t>(list.data()), batch.desc_list_addr,
       count * sizeof(dsa_hw_desc));
  const auto has_fence = [&](std::uint32_t at) {
    return (list[at].flags & IDXD_OP_FLAG_FENCE) != 0;
  };
  // Those from one fence to the next are executed in any order.
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t first = 0, next = 0; first < count; first = next) {
    for (next = first + 1; next < count && !has_fence(next);) ++next;
    std::shuffle(order.begin() + first, order.begin() + next, random_);
  }
  bool loses = false, all_well = true;
  for (std::uint32_t number = 0; number < count; ++number) {
    // Behind a fence nothing begins once one before it has ended other than well. (The fence's
    // place is the first of those that it lets begin.)
    if (has_fence(number) && !all_well) break;
    const dsa_hw_desc& descriptor = list[order[number]];
    if (number != 0 && conduct_.slow_us != 0) usleep(conduct_.slow_us);
    dsa_completion_record end_of_one{};
    const std::uint8_t ended = moves_bytes(descriptor) || compares(descriptor)
                                   ? execute(descriptor, end_of_one, true)
                                   : static_cast<std::uint8_t>(DSA_COMP_BAD_OPCODE);
    loses = loses || losing_;
    end(descriptor, end_of_one, ended);
    all_well = all_well && ended == DSA_COMP_SUCCESS;
    if (ended == DSA_COMP_SUCCESS) ++record.bytes_completed;  // (descriptors, of a batch)
  }
  if (!all_well && status == DSA_COMP_SUCCESS) status = DSA_COMP_BATCH_FAIL;
  losing_ = loses;
  end(batch, record, status);
}

std::uint8_t DsaModel::check(const dsa_hw_desc& descriptor, bool in_batch) const {
  if (descriptor.priv != 0) return DSA_COMP_PRIV_BAD;
  if (descriptor.rsvd != 0 || descriptor.rsvd1 != 0) return DSA_COMP_NOZERO_RESERVE;
  const bool has_bytes = moves_bytes(descriptor) || compares(descriptor);
  const bool expects = compares(descriptor) && (descriptor.flags & IDXD_OP_FLAG_CR) != 0;
  const std::uint8_t most_expected = expects ? 1 : 0;
  if (descriptor.op_specific[0] > most_expected) return DSA_COMP_NOZERO_RESERVE;
  for (std::size_t at = 1; at < sizeof descriptor.op_specific; ++at)
    if (descriptor.op_specific[at] != 0) return DSA_COMP_NOZERO_RESERVE;
  const unsigned asks_for_record = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  unsigned allowed = asks_for_record;
  if (in_batch) allowed |= IDXD_OP_FLAG_FENCE;
  if (has_bytes && conduct_.block_on_fault) allowed |= IDXD_OP_FLAG_BOF;
  if (moves_bytes(descriptor)) allowed |= IDXD_OP_FLAG_CC;
  if (compares(descriptor)) allowed |= IDXD_OP_FLAG_CR;  // (and writes nothing to the cache)
  if ((descriptor.flags & ~allowed) != 0 || (descriptor.flags & asks_for_record) != asks_for_record)
    return DSA_COMP_INVALID_FLAGS;
  if ((descriptor.completion_addr & 31) != 0) return DSA_COMP_CRA_ALIGN;
  if (has_bytes && (descriptor.xfer_size == 0 || descriptor.xfer_size > conduct_.most_transfer))
    return DSA_COMP_XFER_ERANGE;
  return DSA_COMP_SUCCESS;
}

std::uint8_t DsaModel::execute(const dsa_hw_desc& descriptor, dsa_completion_record& record,
                               bool in_batch) {
  losing_ = false;
  std::uint8_t status = check(descriptor, in_batch);
  if (status == DSA_COMP_SUCCESS && descriptor.opcode == DSA_OPCODE_DRAIN) {
    ++counts_.drains;
    losing_ = !conduct_.drains;
    return DSA_COMP_SUCCESS;
  }
  const bool only_compares = compares(descriptor);
  if (status == DSA_COMP_SUCCESS && !moves_bytes(descriptor) && !only_compares)
    status = DSA_COMP_BAD_OPCODE;
  if (status != DSA_COMP_SUCCESS) {
    ++counts_.refused;
    return status;
  }
  if ((descriptor.flags & IDXD_OP_FLAG_CC) != 0) ++counts_.to_cache;
  const std::uint32_t whole = descriptor.xfer_size;
  if (chance(only_compares ? conduct_.p_compare_error : conduct_.p_error)) {
    ++counts_.errors;
    perform(descriptor, static_cast<std::uint32_t>(random_() % whole), record);
    record.bytes_completed = whole;  // no word of it is true
    return conduct_.errors[next_error_++ % conduct_.errors.size()];
  }
  if (chance(conduct_.p_excess)) {
    ++counts_.errors;
    record.bytes_completed = whole + 1;
    return DSA_COMP_PAGE_FAULT_NOBOF;
  }
  losing_ = chance(only_compares ? conduct_.p_compare_lose : conduct_.p_lose);
  if (losing_) ++counts_.lost;
  if (chance(only_compares ? conduct_.p_compare_fault : conduct_.p_fault)) {
    const auto bytes = static_cast<std::uint32_t>(random_() % whole);
    const std::uint8_t ended = perform(descriptor, bytes, record);
    if (ended != DSA_COMP_SUCCESS || record.result != 0) return ended;
    ++counts_.faults;
    record.bytes_completed = bytes;
    if (conduct_.backwards && !only_compares) {
      record.result = 1;
      fill(descriptor.dst_addr, 0xdead'dead'dead'dead, bytes);
    }
    const std::uint8_t write = !only_compares && random_() % 2 != 0 ? DSA_COMP_STATUS_WRITE : 0;
    return static_cast<std::uint8_t>(DSA_COMP_PAGE_FAULT_NOBOF | write);
  }
  status = perform(descriptor, whole, record);
  if (!only_compares && status == DSA_COMP_SUCCESS) spoil(descriptor);
  return status;
}

// Executes it for the first `bytes` bytes.
std::uint8_t DsaModel::perform(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                               dsa_completion_record& record) {
  if (!compares(descriptor)) {
    const std::uint8_t status = move(descriptor, bytes, record);
    ++(descriptor.opcode == DSA_OPCODE_MEMFILL ? counts_.fills : counts_.moves);
    return status;
  }
  const std::uint8_t status = compare_both(descriptor, bytes, record);
  ++counts_.compares;
  counts_.compared_bytes += status == DSA_COMP_SUCCESS ? bytes : record.bytes_completed;
  return status;
}

// Makes one byte wrong of what was moved, if it is this move's turn, and says nothing of it.
void DsaModel::spoil(const dsa_hw_desc& descriptor) {
  unsigned turn = spoils_at_.load();
  while (turn != 0 && !spoils_at_.compare_exchange_weak(turn, turn - 1)) continue;
  if (turn != 1 && !chance(conduct_.p_spoil)) return;
  ++counts_.spoilt;
  const std::uint64_t victim = descriptor.dst_addr + random_() % descriptor.xfer_size;
  unsigned char byte = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(&byte);
  copy(at, victim, 1);
  byte ^= static_cast<unsigned char>(1 + random_() % 255);
  copy(victim, at, 1);
}

// Of the first `bytes` bytes. The record's result says whether they are the same, and if not, its
// bytes_completed where the first difference is.
std::uint8_t DsaModel::compare_both(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                                    dsa_completion_record& record) {
  const Likeness likeness =
      descriptor.opcode == DSA_OPCODE_COMPVAL
          ? compare_with_pattern(descriptor.src_addr, descriptor.comp_pattern, bytes)
          : compare(descriptor.src_addr, descriptor.src2_addr, bytes);
  record.bytes_completed =
      likeness.sameness == Sameness::same ? 0 : static_cast<std::uint32_t>(likeness.bytes);
  if (likeness.sameness == Sameness::not_mapped) {
    ++counts_.faults;
    record.fault_addr = likeness.at;
    const bool may_block = (descriptor.flags & IDXD_OP_FLAG_BOF) != 0;
    return may_block ? DSA_COMP_PAGE_FAULT_IR : DSA_COMP_PAGE_FAULT_NOBOF;
  }
  record.result = likeness.sameness == Sameness::different ? 1 : 0;
  const bool checks = (descriptor.flags & IDXD_OP_FLAG_CR) != 0;
  return checks && record.result != descriptor.expected_res ? DSA_COMP_SUCCESS_PRED
                                                            : DSA_COMP_SUCCESS;
}

// Moves the first `bytes` bytes.
std::uint8_t DsaModel::move(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                            dsa_completion_record& record) {
  const bool fills = descriptor.opcode == DSA_OPCODE_MEMFILL;
  const std::uint64_t to = descriptor.dst_addr;
  const bool may_block = (descriptor.flags & IDXD_OP_FLAG_BOF) != 0;
  std::uint32_t there = bytes;
  if (conduct_.faults_at_new_pages && !may_block) there = bytes_there(to, bytes);
  const std::size_t moved =
      fills ? fill(to, descriptor.pattern, there) : copy(to, descriptor.src_addr, there);
  if (moved == bytes) return DSA_COMP_SUCCESS;
  ++counts_.faults;
  record.bytes_completed = static_cast<std::uint32_t>(moved);
  // Which side it was, the destination's pages tell.
  unsigned char byte = 0;
  const bool source_is_there =
      fills || copy(reinterpret_cast<std::uintptr_t>(&byte), descriptor.src_addr + moved, 1) == 1;
  record.fault_addr = (source_is_there ? to : descriptor.src_addr) + moved;
  const std::uint8_t write = source_is_there ? DSA_COMP_STATUS_WRITE : 0;
  return static_cast<std::uint8_t>(
      (may_block ? DSA_COMP_PAGE_FAULT_IR : DSA_COMP_PAGE_FAULT_NOBOF) | write);
}

void DsaModel::end(const dsa_hw_desc& descriptor, dsa_completion_record record,
                   std::uint8_t status) {
  if (losing_) return;
  // As a device does, and so unseen by ThreadSanitizer; the status last, which pairs with the
  // plug-in's acquire load.
  const std::uint64_t told = descriptor.completion_addr;
  record.status = 0;
  copy(told, reinterpret_cast<std::uintptr_t>(&record), sizeof record);
  copy(told + offsetof(dsa_completion_record, status), reinterpret_cast<std::uintptr_t>(&status),
       sizeof status);
}

}  // namespace haul_model
