//! The calling thread's completion queue, for event loops.

use crate::error::{check, Code, Error};
use crate::ticket::Ticket;
use std::marker::PhantomData;
use std::os::unix::io::{AsRawFd, RawFd};

/// One request of this thread that has ended: those submitted with [`Options::complete`](crate::Options::complete).
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The request's ticket. Requests that ran inline have no distinct ones: `user_data` tells them apart.
    pub ticket: Ticket,
    /// The request's number.
    pub user_data: u64,
    /// How many bytes were moved, counted from the front.
    pub good_bytes: u64,
    /// How it ended.
    pub result: Result<(), Code>,
}

/// The completion queue of the thread that makes this. Its descriptor, for poll or epoll, becomes readable once after
/// [`arm`](Queue::arm) when an entry arrives; it is haul's: neither read, write nor close it.
///
/// ```
/// let queue = haul::Queue::of_this_thread()?;
/// let _polled = std::os::unix::io::AsRawFd::as_raw_fd(&queue);
/// let copy = haul::copy_owned_with(vec![0u8; 1 << 20], vec![7u8; 1 << 20], haul::Options::new().complete(42))?;
/// let mut done = Vec::new();
/// while done.is_empty() {
///     if !queue.arm()? {
///         std::thread::yield_now(); // an event loop polls the descriptor here
///     }
///     queue.reap(&mut done)?;
/// }
/// assert_eq!((done[0].user_data, done[0].result), (42, Ok(())));
/// let (_dst, _src) = copy.wait()?;
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    descriptor: RawFd,
    of_this_thread: PhantomData<*const ()>,
}

impl Queue {
    /// The calling thread's queue. All that a thread makes are the same one.
    pub fn of_this_thread() -> Result<Queue, Error> {
        // SAFETY: no requirements.
        let descriptor = unsafe { haul_sys::haul_reap_eventfd() };
        check(descriptor).map(|_| Queue { descriptor, of_this_thread: PhantomData })
    }

    /// Arms the descriptor for one notification. True: entries are there already; reap them, it is not armed.
    pub fn arm(&self) -> Result<bool, Error> {
        // SAFETY: no requirements.
        check(unsafe { haul_sys::haul_reap_arm() }).map(|waiting| waiting == 1)
    }

    /// Appends the entries that are there, at most 1024, in the order in which they arrived, and says how many. Never
    /// sleeps.
    pub fn reap(&self, into: &mut Vec<Completion>) -> Result<usize, Error> {
        const AT_ONCE: usize = 32;
        let empty =
            haul_sys::haul_completion { ticket: crate::raw::DONE, user_data: 0, good_bytes: 0, status: 0, reserved: 0 };
        let mut entries = [empty; AT_ONCE];
        let mut reaped = 0;
        while reaped < 1024 {
            // SAFETY: as many entries are written as are there.
            let count = check(unsafe { haul_sys::haul_reap(entries.as_mut_ptr(), AT_ONCE) })?;
            into.extend(entries[..count].iter().map(|entry| Completion {
                ticket: Ticket::from_raw(entry.ticket),
                user_data: entry.user_data,
                good_bytes: entry.good_bytes,
                result: if entry.status == 0 { Ok(()) } else { Err(Code::of(entry.status)) },
            }));
            reaped += count;
            if count < AT_ONCE {
                break;
            }
        }
        Ok(reaped)
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor
    }
}
