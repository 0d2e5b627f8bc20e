//! Memory that other processes may name in their requests.

use crate::buffer::BufferMut;
use crate::error::{check, Error};
use crate::memory::Memory;
use crate::owned::Failed;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::unix::io::{AsRawFd, RawFd};

/// What others may do with granted memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rights {
    /// They may read it.
    Read,
    /// They may write it.
    Write,
    /// They may do both.
    ReadWrite,
}

impl Rights {
    fn raw(self) -> u32 {
        match self {
            Rights::Read => haul_sys::HAUL_SHARE_READ,
            Rights::Write => haul_sys::HAUL_SHARE_WRITE,
            Rights::ReadWrite => haul_sys::HAUL_SHARE_READ | haul_sys::HAUL_SHARE_WRITE,
        }
    }
}

/// A buffer that other processes of the user may name in their requests, until it is taken back. The node's service
/// (`haul serve`) does the copying.
///
/// A grant owns its buffer: others may go on writing it when a grant is forgotten. Dropped, it is taken back.
///
/// ```
/// use haul::{Grant, Granted, Memory, Rights};
/// match Grant::new(Memory::new(1 << 20)?, Rights::Read) {
///     Ok(grant) => {
///         // Pass the descriptor over a socket, the index beside it; a process may open its own, too.
///         let granted = Granted::open(&grant, grant.index())?;
///         assert_eq!(granted.len(), 1 << 20);
///         drop(granted);
///         let _memory = grant.take_back().map_err(|(error, _)| error)?;
///     }
///     Err(refused) => println!("no service runs: {refused}"),
/// }
/// # Ok::<(), haul::Error>(())
/// ```
pub struct Grant<B: BufferMut = Memory> {
    raw: haul_sys::haul_grant,
    rights: Rights,
    // As in Owned: moving it asserts nothing about what it points to.
    buffer: MaybeUninit<B>,
}

impl<B: BufferMut> Grant<B> {
    /// Grants all of the buffer. Waits up to 2.5 s for a service. [`Memory`] is copied at the speed of memory, other
    /// buffers more slowly. A refusal hands the buffer back as its `dst`.
    pub fn new(buffer: B, rights: Rights) -> Result<Grant<B>, Failed<B, ()>> {
        let mut buffer = MaybeUninit::new(buffer);
        // SAFETY: it is there. The address holds when the MaybeUninit is moved.
        let items = unsafe { (*buffer.as_mut_ptr()).items_mut() };
        let (begin, bytes) = (items.as_mut_ptr(), std::mem::size_of_val(items));
        let mut raw = haul_sys::haul_grant { fd: -1, reserved: 0, index: 0 };
        // SAFETY: the Grant keeps the buffer until the grant is taken back.
        match check(unsafe { haul_sys::haul_share(begin.cast(), bytes, rights.raw(), &mut raw) }) {
            Ok(_) => Ok(Grant { raw, rights, buffer }),
            // SAFETY: it is there, and nothing is granted.
            Err(error) => Err(Failed { error, dst: unsafe { buffer.assume_init() }, src: (), good_bytes: 0 }),
        }
    }

    /// What names the grant beside its descriptor, which is [`AsRawFd`]: duplicate that or pass it on, but do not close
    /// it.
    pub fn index(&self) -> u64 {
        self.raw.index
    }

    /// The elements, where others may read them alone: what they may write is to be taken back first.
    pub fn items(&self) -> Option<&[B::Item]> {
        // SAFETY: it is there, and nobody writes it.
        (self.rights == Rights::Read).then(|| unsafe { (*self.buffer.as_ptr()).items() })
    }

    /// Takes the grant back: then nobody reads or writes there any more. Where the service does not answer, the grant
    /// stays, and is in the error.
    pub fn take_back(self) -> Result<B, (Error, Grant<B>)> {
        let this = ManuallyDrop::new(self);
        match this.end() {
            // SAFETY: it is there, and `this` is not dropped.
            Ok(()) => Ok(unsafe { this.buffer.as_ptr().read() }),
            Err(error) => Err((error, ManuallyDrop::into_inner(this))),
        }
    }

    fn end(&self) -> Result<(), Error> {
        // SAFETY: `raw` is read.
        check(unsafe { haul_sys::haul_unshare(&self.raw) }).map(drop)
    }
}

impl<B: BufferMut> Drop for Grant<B> {
    fn drop(&mut self) {
        // A buffer that others may still write is leaked.
        if self.end().is_ok() {
            // SAFETY: it is there, and nobody else uses it.
            unsafe { self.buffer.as_mut_ptr().drop_in_place() };
        }
    }
}

impl<B: BufferMut> AsRawFd for Grant<B> {
    fn as_raw_fd(&self) -> RawFd {
        self.raw.fd
    }
}

impl<B: BufferMut> fmt::Debug for Grant<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("raw", &self.raw).field("rights", &self.rights).finish_non_exhaustive()
    }
}
