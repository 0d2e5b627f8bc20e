#include "device/dsa_model.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace haul_model {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr unsigned slots = page_bytes / sizeof(dsa_hw_desc);

void must(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::abort();
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

// How many bytes from the front are there afterwards.
std::size_t copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const iovec local{pointer(to), bytes}, remote{pointer(from), bytes};
  const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

std::size_t fill(std::uint64_t to, std::uint64_t pattern, std::size_t bytes) {
  std::uint64_t words[512];
  std::fill(std::begin(words), std::end(words), pattern);
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t step = std::min(bytes - done, sizeof words);
    const std::size_t good = copy(to + done, reinterpret_cast<std::uintptr_t>(words), step);
    done += good;
    if (good < step) break;
  }
  return done;
}

// The bytes before the first page that is not there (unmapped ones count as there: they fault by
// themselves).
std::uint32_t bytes_there(std::uint64_t address, std::uint32_t bytes) {
  for (std::uint64_t page = address & ~(page_bytes - 1); page < address + bytes;
       page += page_bytes) {
    unsigned char there = 0;
    if (mincore(pointer(page), page_bytes, &there) == 0 && (there & 1) == 0)
      return page <= address ? 0 : static_cast<std::uint32_t>(page - address);
  }
  return bytes;
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
  const std::uint8_t status = execute(descriptor, record);
  end(descriptor, record, status);
}

void DsaModel::execute_batch(const dsa_hw_desc& batch) {
  ++counts_.batches;
  dsa_completion_record record{};
  std::uint8_t status = check(batch);
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
  bool loses = false;
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto* const descriptor =
        static_cast<const dsa_hw_desc*>(pointer(batch.desc_list_addr)) + number;
    dsa_completion_record end_of_one{};
    const std::uint8_t ended = moves_bytes(*descriptor)
                                   ? execute(*descriptor, end_of_one)
                                   : static_cast<std::uint8_t>(DSA_COMP_BAD_OPCODE);
    loses = loses || losing_;
    end(*descriptor, end_of_one, ended);
    if (ended != DSA_COMP_SUCCESS && status == DSA_COMP_SUCCESS) status = DSA_COMP_BATCH_FAIL;
    if (ended == DSA_COMP_SUCCESS) ++record.bytes_completed;  // (descriptors, of a batch)
  }
  losing_ = loses;
  end(batch, record, status);
}

std::uint8_t DsaModel::check(const dsa_hw_desc& descriptor) const {
  if (descriptor.priv != 0) return DSA_COMP_PRIV_BAD;
  if (descriptor.rsvd != 0 || descriptor.rsvd1 != 0) return DSA_COMP_NOZERO_RESERVE;
  for (const std::uint8_t byte : descriptor.op_specific)
    if (byte != 0) return DSA_COMP_NOZERO_RESERVE;
  const unsigned asks_for_record = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  unsigned allowed = asks_for_record;
  if (moves_bytes(descriptor))
    allowed |= IDXD_OP_FLAG_CC | (conduct_.block_on_fault ? IDXD_OP_FLAG_BOF : 0u);
  if ((descriptor.flags & ~allowed) != 0 || (descriptor.flags & asks_for_record) != asks_for_record)
    return DSA_COMP_INVALID_FLAGS;
  if ((descriptor.completion_addr & 31) != 0) return DSA_COMP_CRA_ALIGN;
  if (moves_bytes(descriptor) &&
      (descriptor.xfer_size == 0 || descriptor.xfer_size > conduct_.most_transfer))
    return DSA_COMP_XFER_ERANGE;
  return DSA_COMP_SUCCESS;
}

std::uint8_t DsaModel::execute(const dsa_hw_desc& descriptor, dsa_completion_record& record) {
  losing_ = false;
  std::uint8_t status = check(descriptor);
  if (status == DSA_COMP_SUCCESS && descriptor.opcode == DSA_OPCODE_DRAIN) {
    ++counts_.drains;
    losing_ = !conduct_.drains;
    return DSA_COMP_SUCCESS;
  }
  if (status == DSA_COMP_SUCCESS && !moves_bytes(descriptor)) status = DSA_COMP_BAD_OPCODE;
  if (status != DSA_COMP_SUCCESS) {
    ++counts_.refused;
    return status;
  }
  ++(descriptor.opcode == DSA_OPCODE_MEMFILL ? counts_.fills : counts_.moves);
  if ((descriptor.flags & IDXD_OP_FLAG_CC) != 0) ++counts_.to_cache;
  const std::uint32_t whole = descriptor.xfer_size;
  if (chance(conduct_.p_error)) {
    ++counts_.errors;
    move(descriptor, static_cast<std::uint32_t>(random_() % whole), record);
    record.bytes_completed = whole;  // no word of it is true
    return conduct_.errors[random_() % conduct_.errors.size()];
  }
  if (chance(conduct_.p_excess)) {
    ++counts_.errors;
    record.bytes_completed = whole + 1;
    return DSA_COMP_PAGE_FAULT_NOBOF;
  }
  losing_ = chance(conduct_.p_lose);
  if (losing_) ++counts_.lost;
  if (chance(conduct_.p_fault)) {
    const auto bytes = static_cast<std::uint32_t>(random_() % whole);
    const std::uint8_t ended = move(descriptor, bytes, record);
    if (ended != DSA_COMP_SUCCESS) return ended;
    ++counts_.faults;
    record.bytes_completed = bytes;
    if (conduct_.backwards) {
      record.result = 1;
      fill(descriptor.dst_addr, 0xdead'dead'dead'dead, bytes);
    }
    const std::uint8_t write = random_() % 2 != 0 ? DSA_COMP_STATUS_WRITE : 0;
    return static_cast<std::uint8_t>(DSA_COMP_PAGE_FAULT_NOBOF | write);
  }
  return move(descriptor, whole, record);
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
  auto* const told = static_cast<dsa_completion_record*>(pointer(descriptor.completion_addr));
  record.status = 0;
  std::memcpy(const_cast<void*>(static_cast<volatile void*>(told)), &record, sizeof record);
  // Pairs with the plug-in's acquire load of it.
  __atomic_store_n(&told->status, status, __ATOMIC_RELEASE);
}

}  // namespace haul_model
