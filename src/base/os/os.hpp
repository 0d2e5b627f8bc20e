// The only home of system calls. The wrappers are thin: each returns what the kernel says (negative
// errno on failure), leaves errno as it was, is no cancellation point (uncancelled.hpp), and makes
// no descriptor numbered 0 to 2 (descriptor.hpp).
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace haul::os {

// ---- futex (process-private) ----
// Sleeps while *word == expected, at most timeout_ns (0: for ever). 0, -EAGAIN, -EINTR, -ETIMEDOUT.
int futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
               std::uint64_t timeout_ns) noexcept;
// Returns how many were woken, or -errno.
int futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept;

// The same for a word in memory that processes share.
int futex_wait_shared(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                      std::uint64_t timeout_ns) noexcept;
int futex_wake_shared(const std::atomic<std::uint32_t>* word, int count) noexcept;

// ---- barriers ----
// Registers for MEMBARRIER_CMD_PRIVATE_EXPEDITED; false where the kernel or a filter refuses it.
bool membarrier_register() noexcept;
bool membarrier() noexcept;
// MEMBARRIER_CMD_GLOBAL_EXPEDITED: the second function is a barrier on the running threads of every
// process that has called the first.
bool membarrier_register_global() noexcept;
bool membarrier_global() noexcept;

// ---- memory ----
void* map_anonymous(std::size_t bytes) noexcept;  // private, no reserve; NULL on failure
void unmap(void* address, std::size_t bytes) noexcept;
// madvise() by the system call itself. libhaul-mem.so takes libc's function over and must see the
// program's calls alone; other libraries overwrite it while haul's threads may be in it
// (decisions.md, "haul brings its threads' stacks along"). 0 or -errno.
int advise(void* at, std::size_t bytes, int advice) noexcept;
// Gives the pages of private memory back; they read as zero. Locked memory (mlock) stays locked.
bool drop_pages(void* at, std::size_t bytes) noexcept;
// Of memory that no other library knows of: nobody hears of it.
bool drop_own_pages(void* at, std::size_t bytes) noexcept;
bool want_huge_pages(void* at, std::size_t bytes) noexcept;     // MADV_HUGEPAGE
bool keep_pages_small(void* at, std::size_t bytes) noexcept;    // MADV_NOHUGEPAGE
bool wipe_on_fork(void* page, std::size_t bytes) noexcept;      // MADV_WIPEONFORK
bool hide_from_children(void* at, std::size_t bytes) noexcept;  // MADV_DONTFORK: not mapped there
bool hide_from_dumps(void* at, std::size_t bytes) noexcept;     // MADV_DONTDUMP: not in core files

// ---- signals ----
// A thread's signal mask, put aside.
struct SignalMask {
  alignas(8) unsigned char bytes[128];
};
// Blocks every signal that can be blocked in the calling thread, but for those a fault raises.
void block_signals(SignalMask* saved) noexcept;
void restore_signals(const SignalMask& saved) noexcept;
// Are the asynchronous signals blocked in this mask, as the kernel writes it (bit 0: signal 1)?
// Real-time signals are not looked at.
bool blocks_asynchronous(std::uint64_t kernel_mask) noexcept;
// Does the calling thread run on its alternate signal stack, in a handler?
bool on_alternate_stack() noexcept;

// ---- threads and processes ----
int current_cpu() noexcept;  // sched_getcpu(): about 2 ns with rseq; -1 if unknown
pid_t thread_id() noexcept;
pid_t process_id() noexcept;
// Does this thread of this process still exist? True also where that cannot be told.
bool thread_lives(pid_t process, pid_t thread) noexcept;
// How many CPUs the calling thread's mask has, or the main thread's if that has more: a thread may
// be pinned where others are not. 1 if unknown.
unsigned allowed_cpus() noexcept;
// Gives the calling thread the main thread's mask if that is wider than its own.
void widen_mask() noexcept;
bool pin_thread(unsigned cpu) noexcept;  // the calling thread
// Moves the calling thread off this CPU, to any other that it may run on; it stays if there is no
// other.
void avoid_cpu(unsigned cpu) noexcept;
bool unpin_thread() noexcept;  // back to the mask this thread had before it was pinned
// Does the calling thread run before all ordinary ones (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE)? If
// so, a yield never lets one of those run. A system call.
bool real_time_thread() noexcept;
// The calling thread, which sleeps mostly, is scheduled soon after it has been woken, also on a
// core that another thread is busy on (Linux 6.12; nothing changes before, or for real-time
// threads).
void shortest_slices() noexcept;
void lowest_priority() noexcept;  // the calling thread runs when others leave time (nice 19)
void name_thread(const char* name) noexcept;  // 15 bytes
unsigned user_id() noexcept;                  // the effective one
// Starts a joinable thread on a small stack (256 KiB and what thread-local storage takes), with all
// asynchronous signals blocked and ordinary scheduling (SCHED_OTHER), whatever the caller's is. 0
// or -errno.
int start_thread(pthread_t* thread, void* (*body)(void*), void* argument) noexcept;
void join_thread(pthread_t thread) noexcept;  // no cancellation point, as pthread_join() is
void detach_self() noexcept;
void sleep_ns(std::uint64_t ns) noexcept;
std::uint64_t unix_time_s() noexcept;  // wall-clock time
void yield() noexcept;
// Runs a program of PATH to its end, with /dev/null as its input and outputs and no descriptor of
// ours. Returns its exit status, or -errno. Blocks. The program's SIGCHLD handler, if any, sees it
// end.
int run_program(const char* const* arguments) noexcept;
int pidfd_open(pid_t pid) noexcept;  // fd (close-on-exec) or -errno
// A duplicate of descriptor `fd` of a process (pidfd_getfd, ptrace rights); fd or -errno.
int take_descriptor(pid_t pid, int fd) noexcept;
int pidfd_signal(int pidfd, int signal) noexcept;  // 0 or -errno
bool pidfd_alive(int pidfd) noexcept;              // poll with timeout 0
// When a running process began, in clock ticks since boot (from /proc/PID/stat): with its pid this
// names that process and no later one. 0: there is no such process, or it cannot be told.
std::uint64_t process_start(pid_t pid) noexcept;
void close_fd(int fd) noexcept;

// Bytes transferred (may be short) or -errno. The process's main thread may have ended: while
// others of its threads live its memory does too, at the price of a look at /proc.
ssize_t read_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                     std::size_t remote_count) noexcept;
ssize_t write_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                      std::size_t remote_count) noexcept;

// ---- descriptors ----
// An event that poll() and epoll see as readable from event_signal() to event_clear(). It is a
// datagram socket that is connected to itself: unlike an eventfd's, its identity (descriptor.hpp)
// is its own. Non-blocking, close-on-exec; fd or -errno.
int event_fd() noexcept;
void event_signal(int fd) noexcept;  // never blocks
void event_clear(int fd) noexcept;
// Binds an abstract Unix socket of this name (without the leading NUL): a lock without a file, gone
// with the process. fd, -EADDRINUSE if another holds it, or -errno.
int bind_abstract(const char* name) noexcept;
// Reads a whole file into buffer (NUL-terminated, truncated at size - 1; empty on failure); returns
// the length or -errno.
ssize_t read_file(const char* path, char* buffer, std::size_t size) noexcept;
// The path of this process's program; empty where it cannot be told.
void program_path(char* path, std::size_t size) noexcept;
// Makes the file at path, which must not exist yet (mode 0600), with `bytes` zeroes, and maps it
// for this process and whoever opens it. nullptr on failure.
void* map_new_file(const char* path, std::size_t bytes) noexcept;
void remove_file(const char* path) noexcept;
// Replaces the file at path atomically (temporary file in the same directory, fsync, rename; mode
// 0600). 0 or -errno. Creates the last two directories (mode 0700) if missing.
int write_file(const char* path, const char* data, std::size_t size) noexcept;

// ---- fences ----
// Stops the compiler, not the CPU, from moving memory accesses across.
inline void compiler_barrier() noexcept {
  asm volatile("" ::: "memory");
}

}  // namespace haul::os
