// The thread that serves whoever touches memory of a pending call.
#pragma once

namespace haul::preload {

// Makes sure that it is there, with a userfaultfd of this process; `may_make`: they may be made
// now, which takes the program's malloc. False: they are not. Cheap where they are.
bool ready_to_serve(bool may_make) noexcept;

// Is it there? To be asked once more when a call has been entered: it may just have ended.
bool is_serving() noexcept;

// Ends it, once nothing is pending any more: nothing is deferred after this. Was there one? It may
// not have quite ended when this returns.
bool serve_no_more() noexcept;

// For a child of fork, in which there is none.
void forget_server() noexcept;

}  // namespace haul::preload
