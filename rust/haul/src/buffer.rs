//! Buffers that a request may own.

use crate::memory::Memory;
use crate::plain::Plain;
use std::sync::Arc;

/// A buffer that a request may read: it owns its elements, or borrows them for ever.
///
/// # Safety
/// The elements that [`items`](Buffer::items) gives stay where they are, valid and unchanged, until the buffer is
/// dropped or borrowed mutably, also while it is moved.
pub unsafe trait Buffer: 'static {
    /// What it holds.
    type Item: Plain;
    /// Its elements.
    fn items(&self) -> &[Self::Item];
}

/// A buffer that a request may write.
///
/// # Safety
/// As for [`Buffer`]; and nobody else has access to the elements.
pub unsafe trait BufferMut: Buffer {
    /// Its elements: the same as those of [`items`](Buffer::items).
    fn items_mut(&mut self) -> &mut [Self::Item];
}

macro_rules! buffer {
    ($(<$t:ident> $name:ty,)*) => {
        $(
            // SAFETY: the elements lie on the heap, or live for ever; none of these types gives them away while it lives.
            unsafe impl<$t: Plain> Buffer for $name {
                type Item = $t;
                fn items(&self) -> &[$t] {
                    self
                }
            }
        )*
    };
}
buffer! {
    <T> Vec<T>,
    <T> Box<[T]>,
    <T> Arc<[T]>,
    <T> Arc<Vec<T>>,
    <T> &'static [T],
    <T> &'static mut [T],
}

macro_rules! buffer_mut {
    ($(<$t:ident> $name:ty,)*) => {
        $(
            // SAFETY: it owns its elements, or is their only borrower.
            unsafe impl<$t: Plain> BufferMut for $name {
                fn items_mut(&mut self) -> &mut [$t] {
                    self
                }
            }
        )*
    };
}
buffer_mut! {
    <T> Vec<T>,
    <T> Box<[T]>,
    <T> &'static mut [T],
}

// SAFETY: the pages stay mapped until it is dropped, and it owns them.
unsafe impl Buffer for Memory {
    type Item = u8;
    fn items(&self) -> &[u8] {
        self
    }
}
// SAFETY: as above.
unsafe impl BufferMut for Memory {
    fn items_mut(&mut self) -> &mut [u8] {
        self
    }
}
