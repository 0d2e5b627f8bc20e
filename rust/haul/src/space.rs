//! Other address spaces, for the pieces of a [`Request`](crate::Request).

use crate::error::{check, Error};
use std::ffi::CString;
use std::os::unix::io::AsRawFd;

/// Another process's memory, or a GPU's. Closed when it is dropped.
///
/// ```
/// let secret = [7u8; 5000];
/// let mut copy = [0u8; 5000];
/// // A process may open itself, too; another one's pid needs the right to ptrace it.
/// let space = haul::Space::of_process(std::process::id())?;
/// haul::scope(|s| {
///     let address = secret.as_ptr() as usize; // as the other process would tell it
///     s.submit(haul::Request::copy().dst(&mut copy).src_at(&space, address, 5000))?.wait()
/// })??;
/// assert_eq!(copy, secret);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
pub struct Space(haul_sys::haul_space);

impl Space {
    /// The memory of the process with this pid. Each transfer needs the right to ptrace it, and the kernel checks it
    /// every time.
    pub fn of_process(pid: u32) -> Result<Space, Error> {
        // A pid beyond i32 is none, and haul says so of -1.
        let pid = i32::try_from(pid).unwrap_or(-1);
        // SAFETY: `space` is written, or not.
        Space::opened(|space| unsafe { haul_sys::haul_space_open(pid, space) })
    }

    /// The memory of a GPU: "cuda:0". Addresses are those that `cudaMalloc()` gives.
    ///
    /// ```
    /// match haul::Space::of_device("cuda:0") {
    ///     Ok(_) => println!("the first GPU is open"),
    ///     Err(error) => println!("no GPU: {error}"),
    /// }
    /// ```
    pub fn of_device(name: &str) -> Result<Space, Error> {
        // A name that C cannot have is none, and haul says so of "".
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a string of C; `space` is written, or not.
        Space::opened(|space| unsafe { haul_sys::haul_space_open_device(name.as_ptr(), space) })
    }

    fn opened(open: impl FnOnce(*mut haul_sys::haul_space) -> i32) -> Result<Space, Error> {
        let mut space = haul_sys::HAUL_SPACE_SELF;
        check(open(&mut space)).map(|_| Space(space))
    }

    /// For `haul_sys::haul_extent.space`.
    pub fn handle(&self) -> haul_sys::haul_space {
        self.0
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: no requirements; what has not begun fails.
        unsafe { haul_sys::haul_space_close(self.0) };
    }
}

/// Memory that another process has granted, as a space: its addresses are 0 to [`len`](Granted::len).
/// [`Grant`](crate::Grant) is the other side.
#[derive(Debug)]
pub struct Granted {
    space: Space,
    len: usize,
}

impl Granted {
    /// Opens what a grant's descriptor and index name. The descriptor may be closed afterwards.
    pub fn open(descriptor: &impl AsRawFd, index: u64) -> Result<Granted, Error> {
        let grant = haul_sys::haul_grant { fd: descriptor.as_raw_fd(), reserved: 0, index };
        let mut len = 0;
        // SAFETY: `grant` is read, `space` and `len` are written, or not.
        let space = Space::opened(|space| unsafe { haul_sys::haul_space_open_grant(&grant, space, &mut len) })?;
        Ok(Granted { space, len })
    }

    /// How many bytes were granted.
    #[allow(clippy::len_without_is_empty)] // An empty range is not granted.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }
}
