//! Requests on borrowed memory: a scope waits for all of them before the borrows end, whatever becomes of their
//! tickets. (A ticket that waits when it is dropped would not do: safe code may forget it.)

use crate::error::Error;
use crate::options::Options;
use crate::plain::{pattern, Plain};
use crate::raw;
use crate::request::{Refused, Request};
use crate::ticket::{Destination, Ticket};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

/// Runs `f`, which may submit requests on memory that it borrows from outside, and then waits for all of them, also if
/// `f` panics. Gives what `f` gave, or the first error among the requests, whether their tickets were asked or not.
///
/// ```
/// let state = vec![1.5f64; 1 << 17];
/// let mut checkpoint = vec![0.0; 1 << 17];
/// let energy = haul::scope(|s| {
///     s.copy(&mut checkpoint, &state); // the scope's end waits for it
///     state.iter().map(|x| x * x).sum::<f64>() // meanwhile
/// })?;
/// assert_eq!((energy, &checkpoint), (2.25 * 131072.0, &state));
/// # Ok::<(), haul::Error>(())
/// ```
///
/// Until then nobody reads or writes the destination:
/// ```compile_fail,E0502
/// let (mut dst, src) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
/// haul::scope(|s| {
///     s.copy(&mut dst, &src);
///     println!("{}", dst[0]);
/// });
/// ```
/// nobody writes the source:
/// ```compile_fail,E0502
/// let (mut dst, mut src) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
/// haul::scope(|s| {
///     s.copy(&mut dst, &src);
///     src[0] = 1;
/// });
/// ```
/// and both live for longer than the scope:
/// ```compile_fail,E0597
/// let mut dst = vec![0u8; 1 << 20];
/// haul::scope(|s| {
///     let src = vec![7u8; 1 << 20];
///     s.copy(&mut dst, &src);
/// });
/// ```
/// No ticket leaves it with access to the memory:
/// ```compile_fail
/// let (mut dst, src) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
/// let escaped = haul::scope(|s| s.copy(&mut dst, &src)).unwrap();
/// ```
pub fn scope<'env, F, R>(f: F) -> Result<R, Error>
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope = Scope { requests: Mutex::default(), scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    let ended = scope.wait_for_all();
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(value) => ended.map(|()| value),
    }
}

/// Where requests on borrowed memory are submitted: see [`scope()`]. Threads of a [`std::thread::scope`] within may
/// submit, too.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    requests: Mutex<Requests>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

#[derive(Debug, Default)]
struct Requests {
    unfinished: Vec<Ticket>,
    failed: Option<Error>,
}

impl Requests {
    /// Keeps the tickets of requests that are under way.
    fn forget_finished(&mut self) {
        let failed = &mut self.failed;
        self.unfinished.retain(|ticket| match ticket.is_done() {
            Ok(done) => !done,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        });
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Copies all of `src` to `dst`, as `haul_copy()` does. Panics if they are not of the same length. Without its
    /// [`Pending`], the copy is waited for at the scope's end.
    pub fn copy<T: Plain>(&'scope self, dst: &'scope mut [T], src: &'scope [T]) -> Pending<'scope, T> {
        assert_eq!(dst.len(), src.len(), "haul::Scope::copy: source and destination differ in length");
        let (begin, len) = (dst.as_mut_ptr(), dst.len());
        // SAFETY: both sides are borrowed until the scope has ended, which waits for the ticket.
        let ticket = unsafe { raw::copy(begin, src.as_ptr(), len) };
        self.pending(ticket, begin, len)
    }

    /// As [`copy`](Scope::copy), with [`Options`].
    pub fn copy_with<T: Plain>(
        &'scope self,
        dst: &'scope mut [T],
        src: &'scope [T],
        options: Options<'scope>,
    ) -> Result<Pending<'scope, T>, Error> {
        assert_eq!(dst.len(), src.len(), "haul::Scope::copy_with: source and destination differ in length");
        let (begin, len) = (dst.as_mut_ptr(), dst.len());
        let mut request = haul_sys::haul_request_copy(begin.cast(), src.as_ptr().cast(), std::mem::size_of_val(src));
        options.put_into(&mut request);
        // SAFETY: as for copy(); the word is borrowed for as long.
        let ticket = unsafe { raw::submit_one(&request) }?;
        Ok(self.pending(ticket, begin, len))
    }

    /// Fills all of `dst` with a value of 1, 2, 4 or 8 bytes.
    ///
    /// ```
    /// let mut numbers = vec![0u32; 1 << 20];
    /// haul::scope(|s| s.fill(&mut numbers, 7).wait().map(drop))??;
    /// assert!(numbers.iter().all(|&number| number == 7));
    /// # Ok::<(), haul::Error>(())
    /// ```
    /// Others are refused by the compiler:
    /// ```compile_fail,E0080
    /// let mut numbers = vec![0u128; 1 << 20];
    /// haul::scope(|s| s.fill(&mut numbers, 7).wait().map(drop));
    /// ```
    pub fn fill<T: Plain>(&'scope self, dst: &'scope mut [T], value: T) -> Pending<'scope, T> {
        let (begin, len) = (dst.as_mut_ptr(), dst.len());
        // SAFETY: as for copy().
        let ticket = unsafe { raw::fill(begin, value, len) };
        self.pending(ticket, begin, len)
    }

    /// As [`fill`](Scope::fill), with [`Options`].
    pub fn fill_with<T: Plain>(
        &'scope self,
        dst: &'scope mut [T],
        value: T,
        options: Options<'scope>,
    ) -> Result<Pending<'scope, T>, Error> {
        let (pattern, pattern_bytes) = pattern(value);
        let (begin, len, bytes) = (dst.as_mut_ptr(), dst.len(), std::mem::size_of_val(dst));
        let mut request = haul_sys::haul_request_fill(begin.cast(), pattern, pattern_bytes, bytes);
        options.put_into(&mut request);
        // SAFETY: as for copy_with().
        let ticket = unsafe { raw::submit_one(&request) }?;
        Ok(self.pending(ticket, begin, len))
    }

    /// Submits a [`Request`] of several pieces, or of other spaces. One that is refused is handed back.
    pub fn submit(&'scope self, request: Request<'scope>) -> Result<Ticket, Refused<'scope>> {
        // SAFETY: what the request names is borrowed until the scope has ended, which waits for the ticket.
        match unsafe { raw::submit_one(&request.raw()) } {
            Ok(ticket) => Ok(self.waits_for(ticket)),
            Err(error) => Err(Refused::new(error, request)),
        }
    }

    /// The destination comes as the pointer by which haul writes there: a reference that is made, or passed on, while
    /// another thread writes would claim to be the only one.
    fn pending<T: Plain>(&'scope self, ticket: Ticket, begin: *mut T, len: usize) -> Pending<'scope, T> {
        self.waits_for(ticket);
        // SAFETY: the caller's slice is borrowed for longer than the Pending lives, and given back by its end alone.
        let destination = unsafe { Destination::new(ticket.into_raw(), begin, len) };
        Pending { destination, dst: PhantomData }
    }

    fn waits_for(&self, ticket: Ticket) -> Ticket {
        if ticket.into_raw() == raw::DONE {
            return ticket;
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // A long scope's list stays as long as twice what is under way.
        if requests.unfinished.len() == requests.unfinished.capacity() {
            requests.forget_finished();
            let unfinished = requests.unfinished.len();
            requests.unfinished.reserve(unfinished + 16);
        }
        requests.unfinished.push(ticket);
        ticket
    }

    fn wait_for_all(&self) -> Result<(), Error> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let unfinished = std::mem::take(&mut requests.unfinished);
        for ticket in unfinished {
            if let Err(error) = ticket.wait() {
                requests.failed.get_or_insert(error);
            }
        }
        requests.failed.take().map_or(Ok(()), Err)
    }
}

/// A request of a [`Scope`] that is under way. Derefs to its [`Destination`].
#[derive(Debug)]
pub struct Pending<'scope, T> {
    destination: Destination<T>,
    dst: PhantomData<&'scope mut [T]>,
}

impl<'scope, T: Plain> Pending<'scope, T> {
    /// Blocks until the request has ended, helping, and gives the destination back.
    ///
    /// ```
    /// let (mut dst, src) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
    /// haul::scope(|s| {
    ///     let copied = s.copy(&mut dst, &src).wait()?;
    ///     copied[0] = 8; // the scope goes on, and the bytes are ours again
    ///     Ok::<(), haul::Error>(())
    /// })??;
    /// assert_eq!(dst[..2], [8, 7]);
    /// # Ok::<(), haul::Error>(())
    /// ```
    pub fn wait(self) -> Result<&'scope mut [T], Error> {
        self.ticket().wait()?;
        // SAFETY: the request is over, and `self`, which held the only access, ends here.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.begin(), self.len()) })
    }
}

impl<T> Deref for Pending<'_, T> {
    type Target = Destination<T>;
    fn deref(&self) -> &Destination<T> {
        &self.destination
    }
}
