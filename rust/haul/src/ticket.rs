//! What names a request that is under way, and says how far it is.

use crate::error::{check, Code, Error};
use std::ops::Range;
use std::time::Duration;

/// Names a request. It says how far the request is, and gives no access to its memory: that is what
/// [`Pending`](crate::Pending) and [`Owned`](crate::Owned) are for, which contain one.
///
/// A ticket may be copied, kept for as long as the process lives, and used by any thread.
///
/// ```
/// let (mut dst, src) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
/// haul::scope(|s| {
///     let ticket = s.copy(&mut dst, &src).ticket();
///     ticket.wait_range(0..4096)?; // the first page is there
///     ticket.wait()
/// })??;
/// assert_eq!(dst, src);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(haul_sys::haul_ticket);

impl Ticket {
    /// The ticket of a request that was submitted through `haul_sys`. (One that is not haul's reports
    /// [`Code::Invalid`].)
    pub fn from_raw(ticket: haul_sys::haul_ticket) -> Ticket {
        Ticket(ticket)
    }

    /// The ticket as C has it.
    pub fn into_raw(self) -> haul_sys::haul_ticket {
        self.0
    }

    /// Is the request over? Never blocks, never copies.
    pub fn is_done(self) -> Result<bool, Error> {
        // SAFETY: a ticket is looked up, whatever its value is.
        check(unsafe { haul_sys::haul_test(self.0) }).map(|done| done == 1)
    }

    /// Blocks until the request has ended, and helps to copy.
    pub fn wait(self) -> Result<(), Error> {
        // SAFETY: as above.
        check(unsafe { haul_sys::haul_wait(self.0) }).map(drop)
    }

    /// Blocks for about as long at most: true if the request is done, false if it goes on. A chunk that the waiter has
    /// begun is finished first.
    pub fn wait_timeout(self, timeout: Duration) -> Result<bool, Error> {
        // SAFETY: as above.
        in_time(unsafe { haul_sys::haul_wait_for(self.0, nanoseconds(timeout)) })
    }

    /// Blocks until these bytes of the request are visible; they are copied first. The range is clipped to the request.
    pub fn wait_range(self, bytes: Range<usize>) -> Result<(), Error> {
        let len = bytes.end.saturating_sub(bytes.start);
        // SAFETY: as above.
        check(unsafe { haul_sys::haul_wait_range(self.0, bytes.start, len) }).map(drop)
    }

    /// Blocks for about as long at most: true if these bytes of the request are visible, false if not yet. A chunk that
    /// the waiter has begun is finished first.
    pub fn wait_range_timeout(self, bytes: Range<usize>, timeout: Duration) -> Result<bool, Error> {
        let len = bytes.end.saturating_sub(bytes.start);
        // SAFETY: as above.
        in_time(unsafe { haul_sys::haul_wait_range_for(self.0, bytes.start, len, nanoseconds(timeout)) })
    }

    /// Are these bytes of the request visible? Never blocks, never copies.
    pub fn test_range(self, bytes: Range<usize>) -> Result<bool, Error> {
        let len = bytes.end.saturating_sub(bytes.start);
        // SAFETY: as above.
        check(unsafe { haul_sys::haul_test_range(self.0, bytes.start, len) }).map(|visible| visible == 1)
    }

    /// How many bytes from the front are visible, also of a request that has failed; `usize::MAX` for one that was done
    /// long ago.
    pub fn good_bytes(self) -> usize {
        let mut good = 0;
        // SAFETY: as above; `good` is written, or not.
        unsafe { haul_sys::haul_progress(self.0, &mut good) };
        good
    }
}

/// Durations of more than 584 years are no limit.
fn nanoseconds(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)
}

fn in_time(result: std::os::raw::c_int) -> Result<bool, Error> {
    match check(result) {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::TimedOut => Ok(false),
        Err(error) => Err(error),
    }
}

/// The destination of a request that is under way: how far it is, and a view of the elements that are there while the
/// rest is still being written. [`Pending`](crate::Pending) and [`Owned`](crate::Owned) deref to it.
///
/// ```
/// let (mut dst, src) = (vec![0u64; 1 << 18], (0..1 << 18).collect::<Vec<u64>>());
/// let sum = haul::scope(|s| {
///     let copy = s.copy(&mut dst, &src);
///     let mut sum = 0;
///     for at in (0..copy.len()).step_by(1 << 14) {
///         sum += copy.wait_range(at..at + (1 << 14))?.iter().sum::<u64>(); // while the rest is copied
///     }
///     Ok::<u64, haul::Error>(sum)
/// })??;
/// assert_eq!(sum, src.iter().sum());
/// # Ok::<(), haul::Error>(())
/// ```
///
/// A view ends before the destination may be written again:
/// ```compile_fail,E0505
/// let (mut dst, src) = (vec![0u64; 1 << 18], vec![1; 1 << 18]);
/// haul::scope(|s| {
///     let copy = s.copy(&mut dst, &src);
///     let view = copy.wait_range(0..10).unwrap();
///     copy.wait().unwrap()[0] = 7;
///     println!("{view:?}");
/// });
/// ```
#[derive(Debug)]
pub struct Destination<T> {
    ticket: Ticket,
    begin: *mut T,
    len: usize,
}

// SAFETY: it gives shared references to T alone, which is Send and Sync where a Destination can be made.
unsafe impl<T: Sync> Send for Destination<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Destination<T> {}

impl<T> Destination<T> {
    /// Of `len` elements at `begin`, which live for longer than this and are written by the request alone.
    pub(crate) unsafe fn new(ticket: haul_sys::haul_ticket, begin: *mut T, len: usize) -> Destination<T> {
        Destination { ticket: Ticket(ticket), begin, len }
    }

    pub(crate) fn begin(&self) -> *mut T {
        self.begin
    }

    /// The request's ticket.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// How many elements the request writes.
    #[allow(clippy::len_without_is_empty)] // is_empty() would be read as "nothing has come yet".
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is the request over? Never blocks, never copies.
    pub fn is_done(&self) -> Result<bool, Error> {
        self.ticket.is_done()
    }

    /// Blocks for about as long at most: true if the request is done, false if it goes on.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, Error> {
        self.ticket.wait_timeout(timeout)
    }

    /// The elements from the front that are there by now, also of a request that has failed.
    pub fn finished(&self) -> &[T] {
        let good = self.ticket.good_bytes().checked_div(std::mem::size_of::<T>());
        let count = good.map_or(self.len, |good| good.min(self.len));
        // SAFETY: they are there, and the request does not write them again.
        unsafe { std::slice::from_raw_parts(self.begin, count) }
    }

    /// Blocks until these elements are there; they are copied first. Panics if the range does not lie within.
    pub fn wait_range(&self, elements: Range<usize>) -> Result<&[T], Error> {
        let bytes = self.bytes_of(&elements);
        self.ticket.wait_range(bytes)?;
        Ok(self.part(elements))
    }

    /// Blocks for about as long at most: these elements, if they are there by then. Panics if the range does not lie
    /// within.
    pub fn wait_range_timeout(&self, elements: Range<usize>, timeout: Duration) -> Result<Option<&[T]>, Error> {
        let bytes = self.bytes_of(&elements);
        let visible = self.ticket.wait_range_timeout(bytes, timeout)?;
        Ok(visible.then(|| self.part(elements)))
    }

    /// These elements, if they are there by now. Panics if the range does not lie within.
    pub fn test_range(&self, elements: Range<usize>) -> Result<Option<&[T]>, Error> {
        let bytes = self.bytes_of(&elements);
        let visible = self.ticket.test_range(bytes)?;
        Ok(visible.then(|| self.part(elements)))
    }

    fn bytes_of(&self, elements: &Range<usize>) -> Range<usize> {
        let Range { start, end } = *elements;
        assert!(start <= end && end <= self.len, "elements {start}..{end} of a request of {}", self.len);
        let size = std::mem::size_of::<T>();
        start * size..end * size
    }

    /// Elements that are within, and there.
    fn part(&self, elements: Range<usize>) -> &[T] {
        // SAFETY: as for finished().
        unsafe { std::slice::from_raw_parts(self.begin.add(elements.start), elements.len()) }
    }
}
