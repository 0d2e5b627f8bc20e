//! Requests that own their buffers: they may outlive every scope, and hand the buffers back. One that is forgotten
//! leaks its buffers, which harms nobody.

use crate::buffer::{Buffer, BufferMut};
use crate::error::Error;
use crate::options::Options;
use crate::plain::pattern;
use crate::raw;
use crate::ticket::{Destination, Ticket};
use std::fmt;
use std::mem::{size_of, ManuallyDrop, MaybeUninit};
use std::ops::Deref;

/// A request that is under way and owns its buffers: `D` it writes, `S` it reads. Derefs to its [`Destination`].
/// Dropped, it waits.
#[must_use = "dropped at once, the request is waited for at once"]
pub struct Owned<D: BufferMut, S = ()> {
    destination: Destination<D::Item>,
    // Moving a Box asserts that nobody else has access to what it points to. Moving a MaybeUninit of one does not.
    dst: MaybeUninit<D>,
    src: MaybeUninit<S>,
}

/// Copies all of `src` to `dst`, which must be of the same length, else it panics.
///
/// ```
/// let src: std::sync::Arc<[u8]> = vec![7u8; 1 << 20].into();
/// let copy = haul::copy_owned(vec![0u8; 1 << 20], src.clone()); // may be kept, sent, returned
/// let (dst, _) = copy.wait()?;
/// assert_eq!(dst[..], src[..]);
/// # Ok::<(), haul::Error>(())
/// ```
///
/// What is borrowed belongs into a [`scope`](crate::scope()):
/// ```compile_fail,E0597
/// let src = vec![7u8; 1 << 20];
/// let copy = haul::copy_owned(vec![0u8; 1 << 20], &src[..]);
/// ```
pub fn copy_owned<D, S>(dst: D, src: S) -> Owned<D, S>
where
    D: BufferMut,
    S: Buffer<Item = D::Item>,
{
    let parts = Parts::of_copy(dst, src);
    // SAFETY: the Owned keeps both buffers, and gives no access to them, until the request has ended.
    let ticket = unsafe { raw::copy(parts.begin, parts.source(), parts.len) };
    parts.under_way(ticket)
}

/// As [`copy_owned`], with [`Options`]. One that is refused is handed back.
pub fn copy_owned_with<D, S>(dst: D, src: S, options: Options<'static>) -> Result<Owned<D, S>, Failed<D, S>>
where
    D: BufferMut,
    S: Buffer<Item = D::Item>,
{
    let parts = Parts::of_copy(dst, src);
    let bytes = parts.len * size_of::<D::Item>();
    let mut request = haul_sys::haul_request_copy(parts.begin.cast(), parts.source().cast(), bytes);
    options.put_into(&mut request);
    // SAFETY: as for copy_owned(); the word lives for ever.
    unsafe { parts.submit(&request) }
}

/// Fills all of `dst` with a value of 1, 2, 4 or 8 bytes.
///
/// ```
/// let (numbers, ()) = haul::fill_owned(vec![0u64; 1 << 20], 7).wait()?;
/// assert!(numbers.iter().all(|&number| number == 7));
/// # Ok::<(), haul::Error>(())
/// ```
pub fn fill_owned<D: BufferMut>(dst: D, value: D::Item) -> Owned<D> {
    let parts = Parts::of(dst, ());
    // SAFETY: as for copy_owned().
    let ticket = unsafe { raw::fill(parts.begin, value, parts.len) };
    parts.under_way(ticket)
}

/// As [`fill_owned`], with [`Options`]. One that is refused is handed back.
pub fn fill_owned_with<D: BufferMut>(
    dst: D,
    value: D::Item,
    options: Options<'static>,
) -> Result<Owned<D>, Failed<D, ()>> {
    let (pattern, pattern_bytes) = pattern(value);
    let parts = Parts::of(dst, ());
    let bytes = parts.len * size_of::<D::Item>();
    let mut request = haul_sys::haul_request_fill(parts.begin.cast(), pattern, pattern_bytes, bytes);
    options.put_into(&mut request);
    // SAFETY: as for copy_owned_with().
    unsafe { parts.submit(&request) }
}

/// The buffers of a request that is not submitted yet, and where the first one's elements begin. Both are there.
struct Parts<D: BufferMut, S> {
    dst: MaybeUninit<D>,
    src: MaybeUninit<S>,
    begin: *mut D::Item,
    len: usize,
}

impl<D: BufferMut, S: Buffer<Item = D::Item>> Parts<D, S> {
    fn of_copy(dst: D, src: S) -> Parts<D, S> {
        let lengths = (dst.items().len(), src.items().len());
        assert_eq!(lengths.0, lengths.1, "haul::copy_owned: source and destination differ in length");
        Parts::of(dst, src)
    }

    fn source(&self) -> *const D::Item {
        // SAFETY: it is there. The address holds when the MaybeUninit is moved.
        unsafe { (*self.src.as_ptr()).items().as_ptr() }
    }
}

impl<D: BufferMut, S> Parts<D, S> {
    fn of(dst: D, src: S) -> Parts<D, S> {
        let (mut dst, src) = (MaybeUninit::new(dst), MaybeUninit::new(src));
        // SAFETY: it is there. The address holds when the MaybeUninit is moved.
        let items = unsafe { (*dst.as_mut_ptr()).items_mut() };
        let (begin, len) = (items.as_mut_ptr(), items.len());
        Parts { dst, src, begin, len }
    }

    /// # Safety
    /// The request is one on these buffers, and its word lives for ever.
    unsafe fn submit(self, request: &haul_sys::haul_request) -> Result<Owned<D, S>, Failed<D, S>> {
        // SAFETY: the Owned keeps both buffers, and gives no access to them, until the request has ended.
        match unsafe { raw::submit_one(request) } {
            Ok(ticket) => Ok(self.under_way(ticket)),
            Err(error) => {
                // SAFETY: both are there, and nothing is under way.
                let (dst, src) = unsafe { (self.dst.assume_init(), self.src.assume_init()) };
                Err(Failed { error, dst, src, good_bytes: 0 })
            }
        }
    }

    fn under_way(self, ticket: Ticket) -> Owned<D, S> {
        // SAFETY: the elements live for as long as the buffer, which the Owned keeps.
        let destination = unsafe { Destination::new(ticket.into_raw(), self.begin, self.len) };
        Owned { destination, dst: self.dst, src: self.src }
    }
}

impl<D: BufferMut, S> Owned<D, S> {
    /// Blocks until the request has ended, helping, and hands the buffers back.
    pub fn wait(self) -> Result<(D, S), Failed<D, S>> {
        let this = ManuallyDrop::new(self);
        let result = this.ticket().wait();
        let good_bytes = this.ticket().good_bytes();
        // SAFETY: the request has ended, both are there, and `this` is neither used nor dropped any more.
        let (dst, src) = unsafe { (this.dst.as_ptr().read(), this.src.as_ptr().read()) };
        match result {
            Ok(()) => Ok((dst, src)),
            Err(error) => Err(Failed { error, dst, src, good_bytes }),
        }
    }
}

impl<D: BufferMut, S> Drop for Owned<D, S> {
    fn drop(&mut self) {
        // Its failure, if it has one, is nobody's concern: the buffers end here.
        let _ = self.ticket().wait();
        // SAFETY: the request has ended, and both are there.
        unsafe {
            self.dst.as_mut_ptr().drop_in_place();
            self.src.as_mut_ptr().drop_in_place();
        }
    }
}

impl<D: BufferMut, S> Deref for Owned<D, S> {
    type Target = Destination<D::Item>;
    fn deref(&self) -> &Destination<D::Item> {
        &self.destination
    }
}

impl<D: BufferMut, S> fmt::Debug for Owned<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// What was refused, or has failed, with its buffers.
pub struct Failed<D, S> {
    /// Why.
    pub error: Error,
    /// The buffer that was to be written.
    pub dst: D,
    /// The buffer that was to be read.
    pub src: S,
    /// How many bytes of `dst`, from the front, are as they should be.
    pub good_bytes: usize,
}

impl<D, S> From<Failed<D, S>> for Error {
    fn from(failed: Failed<D, S>) -> Error {
        failed.error
    }
}

impl<D, S> fmt::Debug for Failed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<D, S> fmt::Display for Failed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<D, S> std::error::Error for Failed<D, S> {}
