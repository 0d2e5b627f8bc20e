//! The declarations of `haul/haul.h`, which is the reference: each function's contract (units, ranges, errors,
//! blocking, threads, signals) is written there. The crate `haul` is the safe face; this one adds nothing to C.
//!
//! ```
//! let src = vec![7u8; 1 << 20];
//! let mut dst = vec![0u8; 1 << 20];
//! let copied = unsafe {
//!     let ticket = haul_sys::haul_copy(dst.as_mut_ptr().cast(), src.as_ptr().cast(), src.len());
//!     haul_sys::haul_wait(ticket)
//! };
//! assert_eq!(copied, haul_sys::HAUL_OK);
//! assert_eq!(dst, src);
//! ```
//!
//! `tests/layout.rs` has the C compiler compare every struct, constant and function with the header.

#![deny(missing_docs)]
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

/// `HAUL_VERSION_MAJOR` of the header that these declarations follow.
pub const HAUL_VERSION_MAJOR: c_int = 0;
/// `HAUL_VERSION_MINOR` of that header.
pub const HAUL_VERSION_MINOR: c_int = 1;
/// `HAUL_VERSION_PATCH` of that header.
pub const HAUL_VERSION_PATCH: c_int = 0;

/// Success.
pub const HAUL_OK: c_int = 0;
/// An argument is wrong.
pub const HAUL_EINVAL: c_int = -1;
/// Something is full, or the mover core is leased: try later.
pub const HAUL_EAGAIN: c_int = -2;
/// Part of a range is not accessible.
pub const HAUL_EFAULT: c_int = -3;
/// Memory, descriptors, threads or spaces are exhausted.
pub const HAUL_ENOMEM: c_int = -4;
/// A ticket of another process, or one whose failure is forgotten.
pub const HAUL_ESTALE: c_int = -5;
/// The kernel refuses access.
pub const HAUL_EPERM: c_int = -6;
/// The peer process is gone.
pub const HAUL_EPEER: c_int = -7;
/// No engine here can do this, or no mover can run here.
pub const HAUL_ENOTSUP: c_int = -8;
/// The time ran out; the request goes on.
pub const HAUL_ETIMEDOUT: c_int = -9;
/// The engine failed and no other could take over.
pub const HAUL_EIO: c_int = -10;
/// `haul_shutdown()` was called, or the space is not open.
pub const HAUL_ECLOSED: c_int = -11;

/// An address space.
pub type haul_space = u32;
/// The space of this process.
pub const HAUL_SPACE_SELF: haul_space = 0;

/// `haul_request.operation`: copy.
pub const HAUL_OP_COPY: u8 = 0;
/// `haul_request.operation`: fill.
pub const HAUL_OP_FILL: u8 = 1;

/// An affinity: brought into the cache as it is accessed.
pub const HAUL_CACHEABLE: u8 = 0;
/// An affinity: not brought in, and evicted where it was cached.
pub const HAUL_NON_CACHEABLE: u8 = 1;
/// An affinity: what is cached stays, nothing new is brought in.
pub const HAUL_NEUTRAL: u8 = 2;

/// A flag: starts after every earlier request of this thread has ended.
pub const HAUL_FENCE: u32 = 1 << 0;
/// A flag: an inaccessible range makes the ticket report `HAUL_EFAULT`.
pub const HAUL_CHECKED: u32 = 1 << 1;
/// A flag: `HAUL_EAGAIN` where there is no room, instead of running inline.
pub const HAUL_NONBLOCK: u32 = 1 << 2;
/// A flag: post an entry to this thread's completion queue.
pub const HAUL_COMPLETE: u32 = 1 << 3;
/// A flag: the caller's thread moves the bytes, now.
pub const HAUL_INLINE: u32 = 1 << 4;
/// A flag: goes to a dedicated core whatever its size.
pub const HAUL_DEDICATED: u32 = 1 << 5;

/// A right of `haul_share()`: others may read.
pub const HAUL_SHARE_READ: u32 = 1 << 0;
/// A right of `haul_share()`: others may write.
pub const HAUL_SHARE_WRITE: u32 = 1 << 1;

/// The length of `haul_plan.reasons`.
pub const HAUL_PLAN_REASONS: usize = 8;

/// Bytes of a space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Every struct's fields are described in haul.h.
pub struct haul_extent {
    pub space: haul_space,
    pub reserved: u32,
    pub address: *mut c_void,
    pub length: usize,
}

/// What names a request that is under way.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct haul_ticket {
    pub r#where: u64,
    pub tenancy: u64,
}

/// What `haul_reap()` hands back.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_completion {
    pub ticket: haul_ticket,
    pub user_data: u64,
    pub good_bytes: u64,
    pub status: i32,
    pub reserved: u32,
}

/// Runs inside `haul_reap()`, on the reaping thread. Must not unwind.
pub type haul_callback = Option<unsafe extern "C" fn(completion: *const haul_completion, context: *mut c_void)>;

/// A request in full.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_request {
    pub size: u32,
    pub operation: u8,
    pub dst_affinity: u8,
    pub src_affinity: u8,
    pub pattern_bytes: u8,
    pub flags: u32,
    pub reserved: u32,
    pub dst: haul_extent,
    pub src: haul_extent,
    pub dst_vector: *const haul_extent,
    pub src_vector: *const haul_extent,
    pub dst_count: u32,
    pub src_count: u32,
    pub pattern: u64,
    pub notify: *mut u64,
    pub notify_value: u64,
    pub user_data: u64,
    pub callback: haul_callback,
    pub callback_context: *mut c_void,
}

/// A capability: whoever holds both may name the memory that was granted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_grant {
    pub fd: i32,
    pub reserved: u32,
    pub index: u64,
}

/// What the planner would do with a request, and why.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_plan {
    pub size: u32,
    pub chunks: u32,
    pub chunk_bytes: u64,
    pub inline_below_bytes: u64,
    pub mover_from_bytes: u64,
    pub scheme: [c_char; 8],
    pub mover: [c_char; 16],
    pub engine: [c_char; 16],
    pub reason_count: u32,
    pub reserved: u32,
    pub reasons: [[c_char; 192]; HAUL_PLAN_REASONS],
}

/// One engine as `haul info` shows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_engine_info {
    pub size: u32,
    pub available: u32,
    pub name: [c_char; 16],
    pub spaces: [c_char; 64],
    pub status: [c_char; 192],
    pub chunks: u64,
    pub bytes: u64,
}

/// This process's movers and counters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct haul_state {
    pub size: u32,
    pub mover_state: u32,
    pub mover_cpu: i32,
    pub threads: u32,
    pub submitted: u64,
    pub inlined: u64,
    pub dedicated: u64,
    pub helped_chunks: u64,
    pub moved_chunks: u64,
    pub failed: u64,
    pub unobserved: u64,
    pub round_trip_ns: u64,
    pub mover_status: [c_char; 192],
    pub service_state: u32,
    pub service_pid: i32,
    pub service_chunks: u64,
    pub service_status: [c_char; 192],
}

/// A request that copies `len` bytes within this process: everything else zero.
pub fn haul_request_copy(dst: *mut c_void, src: *const c_void, len: usize) -> haul_request {
    let mut request = empty_request();
    request.dst.address = dst;
    request.dst.length = len;
    request.src.address = src as *mut c_void;
    request.src.length = len;
    request
}

/// A request that fills `len` bytes of this process: everything else zero.
pub fn haul_request_fill(dst: *mut c_void, pattern: u64, pattern_bytes: u8, len: usize) -> haul_request {
    let mut request = empty_request();
    request.operation = HAUL_OP_FILL;
    request.pattern_bytes = pattern_bytes;
    request.pattern = pattern;
    request.dst.address = dst;
    request.dst.length = len;
    request
}

fn empty_request() -> haul_request {
    // SAFETY: every field may be zero: numbers, pointers, and an Option of a function.
    let mut request: haul_request = unsafe { std::mem::zeroed() };
    request.size = std::mem::size_of::<haul_request>() as u32;
    request
}

#[allow(missing_docs)] // Every function is described in haul.h.
extern "C" {
    pub fn haul_strerror(code: c_int) -> *const c_char;
    pub fn haul_last_error() -> *const c_char;
    pub fn haul_version() -> *const c_char;

    pub fn haul_copy(dst: *mut c_void, src: *const c_void, len: usize) -> haul_ticket;
    pub fn haul_fill(dst: *mut c_void, pattern: u64, pattern_bytes: usize, len: usize) -> haul_ticket;
    pub fn haul_submit(requests: *const haul_request, count: usize, tickets: *mut haul_ticket) -> c_int;

    pub fn haul_test(ticket: haul_ticket) -> c_int;
    pub fn haul_wait(ticket: haul_ticket) -> c_int;
    pub fn haul_wait_for(ticket: haul_ticket, timeout_ns: u64) -> c_int;
    pub fn haul_wait_range(ticket: haul_ticket, offset: usize, len: usize) -> c_int;
    pub fn haul_wait_range_for(ticket: haul_ticket, offset: usize, len: usize, timeout_ns: u64) -> c_int;
    pub fn haul_test_range(ticket: haul_ticket, offset: usize, len: usize) -> c_int;
    pub fn haul_progress(ticket: haul_ticket, good_bytes: *mut usize) -> c_int;
    pub fn haul_drain() -> c_int;

    pub fn haul_reap(entries: *mut haul_completion, max: usize) -> c_int;
    pub fn haul_reap_eventfd() -> c_int;
    pub fn haul_reap_arm() -> c_int;

    pub fn haul_alloc(bytes: usize) -> *mut c_void;
    pub fn haul_free(memory: *mut c_void) -> c_int;

    pub fn haul_space_open(pid: c_int, space: *mut haul_space) -> c_int;
    pub fn haul_space_open_device(device: *const c_char, space: *mut haul_space) -> c_int;
    pub fn haul_space_close(space: haul_space) -> c_int;

    pub fn haul_share(address: *mut c_void, len: usize, rights: u32, grant: *mut haul_grant) -> c_int;
    pub fn haul_unshare(grant: *const haul_grant) -> c_int;
    pub fn haul_space_open_grant(grant: *const haul_grant, space: *mut haul_space, len: *mut usize) -> c_int;

    pub fn haul_explain(request: *const haul_request, plan: *mut haul_plan) -> c_int;
    pub fn haul_engine(index: c_uint, info: *mut haul_engine_info) -> c_int;
    pub fn haul_query(state: *mut haul_state) -> c_int;
    pub fn haul_wake() -> c_int;
    pub fn haul_tune(
        progress: Option<unsafe extern "C" fn(percent: c_int, context: *mut c_void)>,
        context: *mut c_void,
    ) -> c_int;
    pub fn haul_shutdown() -> c_int;
}
