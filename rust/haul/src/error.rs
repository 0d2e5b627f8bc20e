//! What goes wrong: a code of haul.h and the sentence that goes with it.

use std::ffi::CStr;
use std::fmt;
use std::os::raw::c_int;

/// What kind of failure an [`Error`] is. The numbers are those of haul.h.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// `HAUL_EINVAL`: an argument is wrong.
    Invalid,
    /// `HAUL_EAGAIN`: something is full, or the mover core is leased: try later.
    Again,
    /// `HAUL_EFAULT`: part of a range is not accessible.
    Fault,
    /// `HAUL_ENOMEM`: memory, descriptors, threads or spaces are exhausted.
    NoMemory,
    /// `HAUL_ESTALE`: a ticket of another process, or one whose failure is forgotten.
    Stale,
    /// `HAUL_EPERM`: the kernel, or a grant, refuses access.
    NotPermitted,
    /// `HAUL_EPEER`: the peer process is gone.
    PeerGone,
    /// `HAUL_ENOTSUP`: no engine here can do this, or no mover can run here.
    NotSupported,
    /// `HAUL_ETIMEDOUT`: the time ran out.
    TimedOut,
    /// `HAUL_EIO`: the engine failed and no other could take over.
    Io,
    /// `HAUL_ECLOSED`: after [`shutdown()`](crate::shutdown), or the space is not open.
    Closed,
    /// A code of a newer libhaul.
    Other(i32),
}

impl Code {
    pub(crate) fn of(status: c_int) -> Code {
        match status {
            haul_sys::HAUL_EINVAL => Code::Invalid,
            haul_sys::HAUL_EAGAIN => Code::Again,
            haul_sys::HAUL_EFAULT => Code::Fault,
            haul_sys::HAUL_ENOMEM => Code::NoMemory,
            haul_sys::HAUL_ESTALE => Code::Stale,
            haul_sys::HAUL_EPERM => Code::NotPermitted,
            haul_sys::HAUL_EPEER => Code::PeerGone,
            haul_sys::HAUL_ENOTSUP => Code::NotSupported,
            haul_sys::HAUL_ETIMEDOUT => Code::TimedOut,
            haul_sys::HAUL_EIO => Code::Io,
            haul_sys::HAUL_ECLOSED => Code::Closed,
            other => Code::Other(other),
        }
    }
}

/// A failure: its [`Code`], and as its text one sentence with cause and remedy.
///
/// ```
/// let refused = haul::Memory::new(0).unwrap_err();
/// assert_eq!(refused.code(), haul::Code::Invalid);
/// println!("{refused}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    sentence: String,
}

impl Error {
    /// The failure of the haul call that this thread made just now.
    pub(crate) fn last(status: c_int) -> Error {
        // SAFETY: never NULL, and valid until this thread's next failing call.
        let mut sentence = unsafe { CStr::from_ptr(haul_sys::haul_last_error()) };
        if sentence.to_bytes().is_empty() {
            // SAFETY: never NULL, static storage.
            sentence = unsafe { CStr::from_ptr(haul_sys::haul_strerror(status)) };
        }
        Error { code: Code::of(status), sentence: sentence.to_string_lossy().into_owned() }
    }

    /// What kind of failure this is.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

/// The result of a call of haul.h: a count, or the failure.
pub(crate) fn check(result: c_int) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| Error::last(result))
}
