//! A request of several pieces, or of other spaces.

use crate::error::Error;
use crate::options::Options;
use crate::plain::{pattern, Plain};
use crate::space::{Granted, Space};
use crate::state::{plan_of, Plan};
use haul_sys::haul_extent;
use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::ops::Range;

/// A copy or a fill in full: up to 1024 pieces a side, which need not be cut alike but are of the same length in all.
/// [`Scope::submit`](crate::Scope::submit) takes it.
///
/// ```
/// use haul::Request;
/// let (first, second) = (vec![1u8; 5000], vec![2u8; 3000]);
/// let mut joined = vec![0u8; 8000];
/// haul::scope(|s| {
///     s.submit(Request::copy().src(&first).src(&second).dst(&mut joined))?; // waited for at the scope's end
///     Ok::<(), haul::Error>(())
/// })??;
/// assert_eq!((joined[4999], joined[5000]), (1, 2));
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
pub struct Request<'a> {
    pattern: Option<(u64, u8)>,
    options: Options<'a>,
    dst: Vec<haul_extent>,
    src: Vec<haul_extent>,
    borrows: PhantomData<&'a mut [u8]>,
}

// SAFETY: the addresses in it are those of borrowed memory of Plain elements, which are Send and Sync, or of other spaces.
unsafe impl Send for Request<'_> {}
// SAFETY: as above; a shared reference gives no access to that memory.
unsafe impl Sync for Request<'_> {}

impl<'a> Request<'a> {
    /// A copy, of nothing yet.
    pub fn copy() -> Request<'a> {
        Request { pattern: None, options: Options::new(), dst: Vec::new(), src: Vec::new(), borrows: PhantomData }
    }

    /// A fill with a value of 1, 2, 4 or 8 bytes, of nothing yet. The value's bytes are repeated from the first piece's
    /// first byte on.
    ///
    /// ```
    /// let (mut red, mut blue) = (vec![0u16; 3000], vec![0u16; 3000]);
    /// haul::scope(|s| s.submit(haul::Request::fill(9u16).dst(&mut red).dst(&mut blue))?.wait())??;
    /// assert_eq!((red[2999], blue[0]), (9, 9));
    /// # Ok::<(), haul::Error>(())
    /// ```
    pub fn fill<T: Plain>(value: T) -> Request<'a> {
        Request { pattern: Some(pattern(value)), ..Request::copy() }
    }

    /// Affinities, flags and the like.
    pub fn with(mut self, options: Options<'a>) -> Self {
        self.options = options;
        self
    }

    /// Adds a piece to the destination.
    pub fn dst<T: Plain>(mut self, piece: &'a mut [T]) -> Self {
        let length = size_of_val(piece);
        self.dst.push(extent(haul_sys::HAUL_SPACE_SELF, piece.as_mut_ptr() as usize, length));
        self
    }

    /// Adds a piece to the source. A fill has none.
    pub fn src<T: Plain>(mut self, piece: &'a [T]) -> Self {
        self.src.push(extent(haul_sys::HAUL_SPACE_SELF, piece.as_ptr() as usize, size_of_val(piece)));
        self
    }

    /// Adds bytes of granted memory to the destination. All pieces of a side lie in one space.
    pub fn dst_granted(mut self, granted: &'a Granted, bytes: Range<usize>) -> Self {
        self.dst.push(extent(granted.space().handle(), bytes.start, bytes.len()));
        self
    }

    /// Adds bytes of granted memory to the source.
    pub fn src_granted(mut self, granted: &'a Granted, bytes: Range<usize>) -> Self {
        self.src.push(extent(granted.space().handle(), bytes.start, bytes.len()));
        self
    }

    /// Adds `len` bytes at an address of another space to the source.
    pub fn src_at(mut self, space: &'a Space, address: usize, len: usize) -> Self {
        self.src.push(extent(space.handle(), address, len));
        self
    }

    /// Adds `len` bytes at an address of another space to the destination.
    ///
    /// # Safety
    /// The request overwrites them. Nothing of that space, which may be this process's own memory under its pid, may
    /// rely on them.
    pub unsafe fn dst_at(mut self, space: &'a Space, address: usize, len: usize) -> Self {
        self.dst.push(extent(space.handle(), address, len));
        self
    }

    /// What the planner would do with the request now, and why. Nothing is copied.
    ///
    /// ```
    /// let (mut dst, src) = (vec![0u8; 1 << 22], vec![7u8; 1 << 22]);
    /// let plan = haul::Request::copy().src(&src).dst(&mut dst).explain()?;
    /// println!("{} by {}: {}", plan.scheme, plan.mover, plan.reasons.join(" "));
    /// # Ok::<(), haul::Error>(())
    /// ```
    pub fn explain(&self) -> Result<Plan, Error> {
        // SAFETY: what the request names is borrowed; two bytes of its source are read.
        unsafe { plan_of(&self.raw()) }
    }

    /// As C has it. It points into `self`.
    pub(crate) fn raw(&self) -> haul_sys::haul_request {
        let mut request = haul_sys::haul_request_copy(std::ptr::null_mut(), std::ptr::null(), 0);
        if let Some((pattern, pattern_bytes)) = self.pattern {
            request.operation = haul_sys::HAUL_OP_FILL;
            request.pattern = pattern;
            request.pattern_bytes = pattern_bytes;
        }
        self.options.put_into(&mut request);
        match self.dst.as_slice() {
            [] => {}
            [one] => request.dst = *one,
            several => {
                request.dst_vector = several.as_ptr();
                request.dst_count = several.len() as u32;
            }
        }
        match self.src.as_slice() {
            [] => {}
            [one] => request.src = *one,
            several => {
                request.src_vector = several.as_ptr();
                request.src_count = several.len() as u32;
            }
        }
        request
    }
}

fn extent(space: haul_sys::haul_space, address: usize, length: usize) -> haul_extent {
    haul_extent { space, reserved: 0, address: address as *mut _, length }
}

/// A request that was refused, and why. Nothing of it was moved.
pub struct Refused<'a> {
    error: Error,
    request: Box<Request<'a>>,
}

impl<'a> Refused<'a> {
    pub(crate) fn new(error: Error, request: Request<'a>) -> Refused<'a> {
        Refused { error, request: Box::new(request) }
    }

    /// Why it was refused.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The request, with what it borrows, to be submitted again.
    pub fn into_request(self) -> Request<'a> {
        *self.request
    }
}

impl From<Refused<'_>> for Error {
    fn from(refused: Refused<'_>) -> Error {
        refused.error
    }
}

impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for Refused<'_> {}
