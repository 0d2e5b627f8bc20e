//! Memory that other processes can reach at the speed of memory.

use crate::error::{Code, Error};
use crate::plain::Plain;
use std::fmt;
use std::mem::size_of;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Whole pages, zeroed, that the node's service and messages reach by mapping them (`haul_alloc()`). Otherwise memory
/// like any other: it derefs to its bytes.
///
/// ```
/// let mut memory = haul::Memory::new(1 << 20)?;
/// memory.as_plain_mut::<f64>()[0] = 1.5;
/// assert_eq!(memory.len(), 1 << 20);
/// assert_eq!(memory.as_plain::<f64>()[..2], [1.5, 0.0]);
/// # Ok::<(), haul::Error>(())
/// ```
pub struct Memory {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns bytes, and any thread may free any thread's.
unsafe impl Send for Memory {}
// SAFETY: a shared reference reads bytes alone.
unsafe impl Sync for Memory {}

impl Memory {
    /// As many bytes, zeroed, at the beginning of a page. Makes system calls: allocate buffers, not objects.
    pub fn new(bytes: usize) -> Result<Memory, Error> {
        // SAFETY: no requirements.
        let begin = unsafe { haul_sys::haul_alloc(bytes) };
        let code = if bytes == 0 { haul_sys::HAUL_EINVAL } else { haul_sys::HAUL_ENOMEM };
        NonNull::new(begin.cast()).map(|begin| Memory { begin, bytes }).ok_or_else(|| Error::last(code))
    }

    /// The memory as elements; bytes beyond the last whole one are left out.
    pub fn as_plain<T: Plain>(&self) -> &[T] {
        // SAFETY: aligned to a page, which every Plain type's alignment divides as checked; every pattern of bits is a T.
        unsafe { std::slice::from_raw_parts(self.begin_as::<T>(), elements::<T>(self.bytes)) }
    }

    /// As [`as_plain`](Memory::as_plain), to be written.
    pub fn as_plain_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.begin_as::<T>(), elements::<T>(self.bytes)) }
    }

    fn begin_as<T>(&self) -> *mut T {
        assert!(std::mem::align_of::<T>() <= 4096, "haul::Memory is aligned to pages of 4096 bytes");
        self.begin.as_ptr().cast()
    }
}

fn elements<T>(bytes: usize) -> usize {
    bytes.checked_div(size_of::<T>()).unwrap_or(0)
}

impl Deref for Memory {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_plain()
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_plain_mut()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: from haul_alloc(), and no request uses it: those that do own it, or borrow it.
        let result = unsafe { haul_sys::haul_free(self.begin.as_ptr().cast()) };
        debug_assert!(result == 0 || Code::of(result) == Code::Io);
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("begin", &self.begin).field("bytes", &self.bytes).finish()
    }
}
