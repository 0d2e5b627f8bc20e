//! haul moves bulk memory without stalling the program that asked: a copy is handed to a dedicated core, the program
//! computes, and waits only for the bytes that it touches. This is the safe face of libhaul; `haul_sys` is the raw one.
//!
//! ```
//! let state = vec![1.0f64; 1 << 17];
//! let mut checkpoint = vec![0.0; 1 << 17];
//! let sum = haul::scope(|s| {
//!     let copy = s.copy(&mut checkpoint, &state); // on its way
//!     let sum: f64 = state.iter().sum(); // compute: the source may be read
//!     copy.wait()?; // every byte of `checkpoint` is visible
//!     Ok::<f64, haul::Error>(sum)
//! })??;
//! assert_eq!((sum, &checkpoint), (131072.0, &state));
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! While a request is under way nobody may write its source or touch its destination, and both must live. There are
//! three ways to see to that:
//! - [`scope()`] borrows them, and waits for all requests at its end, as [`std::thread::scope`] does for threads;
//! - [`copy_owned`] and [`fill_owned`] take the buffers, and hand them back when they are waited for;
//! - [`raw`] leaves it to the caller.
//!
//! No ticket has to be dropped, or waited for, to make that sound. A request that fails leaves a mix of old and new
//! bytes in its destination, so elements are [`Plain`]: every pattern of bits is one.
//!
//! What haul.h says of threads, signals, fork and exit holds here, too. In particular each call may come from any thread,
//! and a child of fork, which is unsafe in Rust, may go on using what it has.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod buffer;
mod error;
mod grant;
mod memory;
mod options;
mod owned;
mod plain;
mod queue;
pub mod raw;
mod request;
mod scope;
mod space;
mod state;
mod ticket;

pub use buffer::{Buffer, BufferMut};
pub use error::{Code, Error};
pub use grant::{Grant, Rights};
pub use memory::Memory;
pub use options::{Affinity, Options};
pub use owned::{copy_owned, copy_owned_with, fill_owned, fill_owned_with, Failed, Owned};
pub use plain::Plain;
pub use queue::{Completion, Queue};
pub use request::{Refused, Request};
pub use scope::{scope, Pending, Scope};
pub use space::{Granted, Space};
pub use state::{engines, query, tune, wake, Engine, Mover, Plan, Service, State};
pub use ticket::{Destination, Ticket};

/// The raw declarations, for [`raw::submit`] and [`Ticket::from_raw`].
pub use haul_sys;

use std::ffi::CStr;

/// The version of the libhaul that is loaded: "0.1.0".
///
/// ```
/// assert!(haul::version().starts_with("0."));
/// ```
pub fn version() -> &'static str {
    // SAFETY: static storage.
    unsafe { CStr::from_ptr(haul_sys::haul_version()) }.to_str().unwrap_or("unknown")
}

/// Blocks until everything that the calling thread has submitted has ended. Gives the first error among what was under
/// way.
///
/// ```
/// let copies: Vec<_> = (0..4).map(|_| haul::copy_owned(vec![0u8; 1 << 20], vec![7u8; 1 << 20])).collect();
/// haul::drain()?;
/// assert!(copies.iter().all(|copy| copy.is_done() == Ok(true)));
/// # Ok::<(), haul::Error>(())
/// ```
pub fn drain() -> Result<(), Error> {
    // SAFETY: no requirements.
    error::check(unsafe { haul_sys::haul_drain() }).map(drop)
}

/// Finishes everything in flight and stops the movers; later requests fail with [`Code::Closed`]. exit() does as much.
///
/// ```
/// haul::shutdown();
/// let failed = haul::copy_owned(vec![0u8; 100], vec![7u8; 100]).wait().unwrap_err();
/// assert_eq!(failed.error.code(), haul::Code::Closed);
/// assert_eq!(failed.dst[0], 0);
/// ```
pub fn shutdown() {
    // SAFETY: no requirements; always 0.
    unsafe { haul_sys::haul_shutdown() };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
