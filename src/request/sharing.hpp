// Rings in memory that the node's service maps too (board.hpp). A ring begins private; its owner
// moves it into the shared table when it first wants the service, and there it stays.
#pragma once

#include "base/error.hpp"
#include "request/board.hpp"

namespace haul {

// This process's table: the board, and the memfd to hand over. fd -1: there is none.
struct SharedTable {
  int fd = -1;
  Board* board = nullptr;
};

// Makes the table on the first call, once a process. no_memory: descriptors or memory are
// exhausted. Thread-safe; takes the rings' lock.
Code make_shared_table(SharedTable* table, Error* error) noexcept;

// Moves the calling thread's ring into the table, its content included. False if there is no table,
// if requests of it are unfinished (try again later), or if memory is short. The ring keeps its
// address: other threads may look at its tickets meanwhile. Takes the rings' lock, makes system
// calls.
bool share_own_ring() noexcept;

bool ring_is_shared(std::uint32_t index) noexcept;

// The table's board; nullptr: there is none. Lock-free.
const Board* shared_board() noexcept;

// Around fork, under the rings' lock: puts aside what the child needs, and gives the child private
// rings again. Everything is finished by then, and nothing can be published. False: there was no
// memory for them, so they are still the parent's and must not be touched.
void sharing_before_fork() noexcept;
bool sharing_after_fork_child() noexcept;
// In a child by a bare clone: the parent's table is none of ours.
void forget_sharing() noexcept;

}  // namespace haul
