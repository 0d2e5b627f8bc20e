// A thread that stands for a DSA device with one work queue: it executes the descriptors of
// <linux/idxd.h> that it finds in the slots of a portal, a page of a memfd, or in a pipe, as the
// kernel would hand them on from write().
//
// It checks what hardware checks (reserved bits, flags, sizes, alignments, the queue's depth), and
// refuses with the hardware's status what is wrong. Memory that is not mapped is a page fault, as
// for a device (dsa_memory.hpp). Of a batch it executes those from one fence to the next in any
// order, and none behind a fence once one before that has ended other than well. Beyond that it
// misbehaves as its conduct says; what it does then comes from a seed.
#pragma once

#include <linux/idxd.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace haul_model {

enum class DsaPath { portal, pipe };

// Chances are percentages, of each descriptor that moves bytes.
struct DsaConduct {
  std::uint64_t seed = 1;
  unsigned depth = 16, most_batch = 16;
  std::uint32_t most_transfer = 1 << 16;
  bool block_on_fault = false;  // allowed
  bool verified = false;        // the engine is asked for compares
  unsigned held = 0;            // so many are taken before one of them is executed, in any order
  unsigned slow_us = 0;         // before each, those of a batch too
  // A page that the destination does not have yet is a fault.
  bool faults_at_new_pages = false;
  unsigned p_fault = 0;    // a page fault somewhere, though the memory is there
  bool backwards = false;  // which says that the end was moved first
  unsigned p_error = 0;    // the next of the errors below, with a part of the destination spoilt
  std::vector<std::uint8_t> errors = {DSA_COMP_HW_ERR1};
  unsigned p_lose = 0;         // moved, and no completion record is written
  unsigned p_excess = 0;       // a page fault after more bytes than there are
  unsigned p_batch_error = 0;  // a batch fails, some of its descriptors not begun
  unsigned p_spoil = 0;        // a byte is wrong afterwards, and nothing says so
  // The like for each descriptor that compares.
  unsigned p_compare_fault = 0, p_compare_error = 0, p_compare_lose = 0;
  bool full_pipe = false;  // the pipe is full now and then
  bool drains = true;
};

struct DsaCounts {
  // Descriptors that moved bytes, batches, drains; page faults; errors that the conduct asks for.
  std::atomic<unsigned> moves{0}, fills{0}, batches{0}, drains{0}, faults{0}, errors{0}, lost{0};
  // Descriptors that compared, and how many bytes these found equal; moves that were spoilt.
  std::atomic<unsigned> compares{0}, spoilt{0};
  std::atomic<std::uint64_t> compared_bytes{0};
  // What the hardware would not take, and what did not fit into the queue: always a bug.
  std::atomic<unsigned> refused{0}, dropped{0};
  // Of the moves and fills: to the cache.
  std::atomic<unsigned> to_cache{0};
};

class DsaModel {
 public:
  explicit DsaModel(DsaPath path, const DsaConduct& conduct = {});
  ~DsaModel();
  DsaModel(const DsaModel&) = delete;
  DsaModel& operator=(const DsaModel&) = delete;

  // For HAUL_ENGINE_DSA of this process.
  std::string knob() const;
  void start();
  // From now on what its conduct has chances for happens.
  void misbehave() { misbehaves_ = true; }
  // Of the moves and fills from now on the one with that number, from 1, has a wrong byte.
  void spoil_move(unsigned number) { spoils_at_ = number; }
  // From stick() on nothing ends, until release().
  void stick() { stuck_ = true; }
  void release() { stuck_ = false; }
  const DsaCounts& counts() const { return counts_; }

 private:
  using Random = std::mt19937_64;

  void run();
  void take_from_portal();
  void take_from_pipe();
  void fill_pipe();
  void accept(const dsa_hw_desc& descriptor);
  void execute_one();
  void execute_batch(const dsa_hw_desc& batch);
  // The status; what else the record says is filled in.
  std::uint8_t execute(const dsa_hw_desc& descriptor, dsa_completion_record& record, bool in_batch);
  std::uint8_t perform(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                       dsa_completion_record& record);
  std::uint8_t move(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                    dsa_completion_record& record);
  std::uint8_t compare_both(const dsa_hw_desc& descriptor, std::uint32_t bytes,
                            dsa_completion_record& record);
  void spoil(const dsa_hw_desc& descriptor);
  std::uint8_t check(const dsa_hw_desc& descriptor, bool in_batch) const;
  void end(const dsa_hw_desc& descriptor, dsa_completion_record record, std::uint8_t status);
  bool chance(unsigned percent) { return percent != 0 && misbehaves_ && random_() % 100 < percent; }

  const DsaPath path_;
  const DsaConduct conduct_;
  Random random_;
  int portal_ = -1, pipe_read_ = -1, pipe_write_ = -1;
  unsigned char* page_ = nullptr;
  unsigned next_slot_ = 0;
  std::vector<dsa_hw_desc> accepted_;
  unsigned idle_ = 0, next_error_ = 0;
  bool losing_ = false;
  DsaCounts counts_;
  std::atomic<unsigned> spoils_at_{0};
  std::atomic<bool> misbehaves_{false}, stuck_{false}, ends_{false};
  std::thread thread_;
};

}  // namespace haul_model
