// Rings in memory that the node's service maps too (board.hpp). A ring begins private; its owner
// moves it into the shared table when it first wants the service, and there it stays.
#pragma once

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "request/board.hpp"

namespace haul {

// This process's table: the board, and the memfd to hand over.
struct SharedTable {
  os::Descriptor file;
  Board* board = nullptr;  // nullptr: there is none
};

// Makes the table on the first call, once a process. no_memory: descriptors or memory are
// exhausted; closed: the program has closed the table's descriptor. Thread-safe; takes the rings'
// lock.
Code make_shared_table(SharedTable* table, Error* error) noexcept;

// Moves the calling thread's ring into the table, its content included. False if there is no table,
// if requests of it are unfinished (try again later), or if memory is short. The ring keeps its
// address: other threads may look at its tickets meanwhile. Takes the rings' lock, makes system
// calls.
bool share_own_ring() noexcept;

// False if the table's descriptor is not the calling thread's: the program has closed it, or the
// thread has had descriptors of its own (unshare(CLONE_FILES)) since before the table was made.
// Takes the rings' lock.
bool has_table_descriptor() noexcept;

bool ring_is_shared(std::uint32_t index) noexcept;

// Tells the service whether the ring is in use; does nothing if the ring is not shared. Under the
// rings' lock.
void show_shared_ring(std::uint32_t index, bool in_use) noexcept;
// Gives the first `bytes` of a shared ring back; they then read as zero, for the service too.
void remove_shared_pages(std::uint32_t index, std::size_t bytes) noexcept;

// The table's board; nullptr: there is none. Lock-free.
const Board* shared_board() noexcept;

// Around fork: copies what the child needs, and gives the child private rings again. By then
// nothing can be published, and what could be finished has been. False: there was no memory for the
// rings, so they are still the parent's and must not be touched.
void sharing_before_fork() noexcept;
void sharing_after_fork_parent() noexcept;
bool sharing_after_fork_child() noexcept;
// For a bare clone()'s child: drops the parent's table.
void forget_sharing() noexcept;

}  // namespace haul
