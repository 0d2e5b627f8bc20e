//! Requests on memory that nothing keeps: for data structures that know better than borrows do. The safe parts of this
//! crate submit through these functions, too.

use crate::error::{check, Error};
use crate::plain::{pattern, Plain};
use crate::ticket::Ticket;

/// The ticket of what was complete when its submit returned, as far as haul.h promises one.
pub(crate) const DONE: haul_sys::haul_ticket = haul_sys::haul_ticket { r#where: 0, tenancy: 0 };

/// Copies `len` elements, which may overlap, as `haul_copy()` does. What is wrong shows when the ticket is asked.
///
/// # Safety
/// Until the ticket says that the request has ended, the source is valid for reads and not written, and the destination
/// valid for writes and not accessed otherwise.
///
/// ```
/// let mut bytes: Vec<u8> = (0..200).collect();
/// let begin = bytes.as_mut_ptr();
/// // SAFETY: `bytes` is left alone until the copy has ended.
/// unsafe { haul::raw::copy(begin.add(50), begin, 100) }.wait()?;
/// assert_eq!((bytes[50], bytes[149], bytes[150]), (0, 99, 150));
/// # Ok::<(), haul::Error>(())
/// ```
pub unsafe fn copy<T: Plain>(dst: *mut T, src: *const T, len: usize) -> Ticket {
    let bytes = len * std::mem::size_of::<T>();
    // SAFETY: the caller's.
    Ticket::from_raw(unsafe { haul_sys::haul_copy(dst.cast(), src.cast(), bytes) })
}

/// Fills `len` elements with a value of 1, 2, 4 or 8 bytes, as `haul_fill()` does.
///
/// # Safety
/// As for [`copy()`].
pub unsafe fn fill<T: Plain>(dst: *mut T, value: T, len: usize) -> Ticket {
    let (pattern, pattern_bytes) = pattern(value);
    let bytes = len * std::mem::size_of::<T>();
    // SAFETY: the caller's.
    Ticket::from_raw(unsafe { haul_sys::haul_fill(dst.cast(), pattern, pattern_bytes.into(), bytes) })
}

/// Submits requests in order, as `haul_submit()` does. If one is refused, gives the tickets of those before it and the
/// refusal.
///
/// # Safety
/// As for [`copy()`], for each request, its notification word and its callback.
pub unsafe fn submit(requests: &[haul_sys::haul_request]) -> (Vec<Ticket>, Result<(), Error>) {
    let mut tickets = vec![DONE; requests.len()];
    let mut taken = 0;
    let mut result = Ok(());
    while taken < requests.len() && result.is_ok() {
        // A part may be taken: submitting the rest again gives the refusal, or takes it.
        let rest = &requests[taken..];
        // SAFETY: the caller's; there is room for as many tickets.
        match check(unsafe { haul_sys::haul_submit(rest.as_ptr(), rest.len(), tickets[taken..].as_mut_ptr()) }) {
            Ok(count) => taken += count,
            Err(error) => result = Err(error),
        }
    }
    tickets.truncate(taken);
    (tickets.into_iter().map(Ticket::from_raw).collect(), result)
}

/// As [`submit()`], for one request, without allocating.
pub(crate) unsafe fn submit_one(request: &haul_sys::haul_request) -> Result<Ticket, Error> {
    let mut ticket = DONE;
    // SAFETY: the caller's.
    check(unsafe { haul_sys::haul_submit(request, 1, &mut ticket) })?;
    Ok(Ticket::from_raw(ticket))
}
