// Finds the calls of copy routines in the path of a program and marks them.
//
// A call begins where control enters a routine (Routine, by the kernel's symbols) and ends where it
// leaves for anything else. What the call copied is then told from its references alone: its loads
// must cover one region, its stores another of the same length (a fill has stores alone). A call
// that an interrupt or a fault cuts short counts as far as its stores reach; what is left of it
// comes as another call, whose return address is remembered with the place at which it resumes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/copied_regions.hpp"
#include "convert/copy_routines.hpp"
#include "convert/summary.hpp"
#include "format/chunk.hpp"

namespace bcisim {

// Watches the chunk that is being made. While a call is open the chunk must be kept: when it has
// ended, its Event::copy_begin is put before its instructions.
class CopyTracker {
 public:
  CopyTracker(Chunk& chunk, ConvertSummary& summary) : chunk_(chunk), summary_(summary) {}

  bool open() const { return open_; }

  // Static instruction number `index` refers to memory that no routine copies (MachineCode).
  void add_static(std::uint32_t index, bool refers_aside);

  // The next instruction is a routine's, the last was not. `site`: where the routine will return
  // to, 0 when not known.
  void begin(Routine routine, std::uint64_t site, std::uint64_t address);
  // After every instruction within a call: gives up on one that is too long to be held.
  void check_length();
  // Control left to `address`.
  void end(std::uint64_t address);
  // An interrupt or a fault came; control will return to `resume`, or to `resume_too`.
  void interrupt(std::uint64_t resume, std::uint64_t resume_too);

 private:
  static constexpr std::size_t most_instructions = std::size_t{1} << 20;
  static constexpr std::size_t most_interrupted = 64;
  struct Interrupted {
    std::uint64_t resume = 0, resume_too = 0, site = 0;
  };

  void close(std::uint64_t site, bool interrupted);
  bool mark(std::uint64_t site, bool interrupted);
  CopyKind kind_of(std::uint64_t destination, std::uint64_t source) const;

  Chunk& chunk_;
  ConvertSummary& summary_;
  std::vector<bool> refers_aside_;
  bool open_ = false, resumed_ = false;
  Routine routine_ = Routine::none;
  std::uint64_t site_ = 0;
  std::size_t first_instruction_ = 0, first_event_ = 0;  // of the call, in chunk_
  std::array<Interrupted, most_interrupted> interrupted_{};
  std::size_t next_interrupted_ = 0;
  std::vector<Reference> loads_, stores_;  // kept for their memory
};

}  // namespace bcisim
