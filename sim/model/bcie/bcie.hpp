// The bulk copying and initialization engine's registers and table (paper 003, IV): one set, for
// one copy at a time. Its user steps it: program(), validate the pages of validation(), start page
// pairs and their blocks, say what is copied.
#pragma once

#include "model/bcie/copy_status.hpp"
#include "model/bcie/copy_status_table.hpp"
#include "model/bcie/validation_registers.hpp"

namespace bcisim {

// What figure 7's check says of an access. Those outside may be outside of the copy (A) or in its
// completed page pairs (B): the CSR does not tell them apart, nor need it.
enum class Dependence {
  outside,  // A, B: not in the addresses that the CSR holds
  copied,   // C: in a page pair under way, its blocks are copied
  pending   // D: some block is not copied
};

class Bcie {
 public:
  Bcie(unsigned status_entries, unsigned block_bytes) : table_(status_entries, block_bytes) {}

  void program(const BulkCopy& copy) {
    validation_.program(copy);
    status_.program(copy);
    table_.clear();
    pairs_ = subcopies_of(copy);
    started_ = 0;
  }
  ValidationRegisters& validation() { return validation_; }
  const CopyStatus& status() const { return status_; }
  const CopyStatusTable& table() const { return table_; }

  bool can_start_pair() const { return started_ < pairs_.size() && table_.has_room(); }
  // The entry of the CST that the next page pair has now.
  unsigned start_pair() { return table_.allocate(pairs_[started_++]); }
  // The index-th destination block of a page pair is copied. Pairs that are complete leave the CST,
  // in their order.
  void copied(unsigned entry, unsigned index) {
    table_.copied(entry, index);
    while (table_.oldest_complete()) status_.bump(table_.deallocate_oldest());
  }
  // All is copied.
  bool done() const { return status_.done(); }

  // Does a younger access depend on the copy? Loads need the destination, stores the source as
  // well.
  Dependence check(std::uint64_t physical, unsigned bytes, bool is_store) const {
    const Dependence of_destination =
        check(status_.destination(), CopyStatusTable::Side::destination, physical, bytes);
    if (!is_store || of_destination == Dependence::pending) return of_destination;
    const Dependence of_source =
        check(status_.source(), CopyStatusTable::Side::source, physical, bytes);
    return of_source == Dependence::outside ? of_destination : of_source;
  }

 private:
  Dependence check(const Region& remaining, CopyStatusTable::Side side, std::uint64_t physical,
                   unsigned bytes) const {
    const unsigned shared = remaining.shared_with(physical, bytes);
    if (shared == 0) return Dependence::outside;
    // What is not in the CST has not begun.
    return table_.copied_bytes(side, physical, bytes) == shared ? Dependence::copied
                                                                : Dependence::pending;
  }

  ValidationRegisters validation_;
  CopyStatus status_;
  CopyStatusTable table_;
  std::vector<Subcopy> pairs_;
  std::size_t started_ = 0;
};

}  // namespace bcisim
