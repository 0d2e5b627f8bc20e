//! What a request may ask for beyond its bytes.

use std::sync::atomic::AtomicU64;

/// What a copy leaves of one side in the cache. A hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Affinity {
    /// Brought into the cache as it is accessed.
    #[default]
    Cacheable,
    /// Not brought in, and evicted where it was cached: for what nobody reads soon.
    NonCacheable,
    /// Nothing new is brought in, and what is cached stays.
    Neutral,
}

/// Affinities, flags, a notification word and a completion entry. The default asks for none of them.
///
/// ```
/// use haul::{Affinity, Options};
/// let (mut log, page) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20]);
/// haul::scope(|s| {
///     // Nobody reads the log soon, so it need not take the cache from the page.
///     s.copy_with(&mut log, &page, Options::new().dst_affinity(Affinity::NonCacheable))?.wait()?;
///     Ok::<(), haul::Error>(())
/// })??;
/// assert_eq!(log, page);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    dst_affinity: Affinity,
    src_affinity: Affinity,
    flags: u32,
    notify: Option<(&'a AtomicU64, u64)>,
    user_data: u64,
}

impl<'a> Options<'a> {
    /// The default: both sides cacheable, no flags.
    pub fn new() -> Options<'a> {
        Options::default()
    }

    /// What is left of the destination in the cache.
    pub fn dst_affinity(self, affinity: Affinity) -> Self {
        Options { dst_affinity: affinity, ..self }
    }

    /// What is left of the source in the cache. A fill ignores it.
    pub fn src_affinity(self, affinity: Affinity) -> Self {
        Options { src_affinity: affinity, ..self }
    }

    /// Starts only after every earlier request of this thread has ended.
    pub fn fence(self) -> Self {
        self.flag(haul_sys::HAUL_FENCE)
    }

    /// An inaccessible range fails with [`Code::Fault`](crate::Code::Fault) instead of raising SIGSEGV; the kernel
    /// copies.
    pub fn checked(self) -> Self {
        self.flag(haul_sys::HAUL_CHECKED)
    }

    /// Is refused with [`Code::Again`](crate::Code::Again) where there is no room, instead of running inline.
    pub fn nonblock(self) -> Self {
        self.flag(haul_sys::HAUL_NONBLOCK)
    }

    /// The submitting thread moves the bytes, now.
    pub fn inline(self) -> Self {
        self.flag(haul_sys::HAUL_INLINE)
    }

    /// A dedicated core moves the bytes whatever their number is, unless there is none.
    pub fn dedicated(self) -> Self {
        self.flag(haul_sys::HAUL_DEDICATED)
    }

    /// Stores `value` in `word`, with release order, after the data. A request that fails stores nothing.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// let (mut dst, src, word) = (vec![0u8; 1 << 20], vec![7u8; 1 << 20], AtomicU64::new(0));
    /// haul::scope(|s| s.copy_with(&mut dst, &src, haul::Options::new().notify(&word, 3)).map(drop))??;
    /// assert_eq!(word.load(Ordering::Acquire), 3);
    /// # Ok::<(), haul::Error>(())
    /// ```
    pub fn notify(self, word: &'a AtomicU64, value: u64) -> Self {
        Options { notify: Some((word, value)), ..self }
    }

    /// Posts an entry with this number to the submitting thread's [`Queue`](crate::Queue), also on failure. Is refused
    /// with [`Code::Again`](crate::Code::Again) while 1024 entries wait to be reaped.
    pub fn complete(self, user_data: u64) -> Self {
        Options { user_data, ..self.flag(haul_sys::HAUL_COMPLETE) }
    }

    fn flag(self, flag: u32) -> Self {
        Options { flags: self.flags | flag, ..self }
    }

    pub(crate) fn put_into(&self, request: &mut haul_sys::haul_request) {
        request.dst_affinity = self.dst_affinity.raw();
        request.src_affinity = self.src_affinity.raw();
        request.flags = self.flags;
        request.user_data = self.user_data;
        if let Some((word, value)) = self.notify {
            request.notify = word as *const AtomicU64 as *mut u64;
            request.notify_value = value;
        }
    }
}

impl Affinity {
    fn raw(self) -> u8 {
        match self {
            Affinity::Cacheable => haul_sys::HAUL_CACHEABLE,
            Affinity::NonCacheable => haul_sys::HAUL_NON_CACHEABLE,
            Affinity::Neutral => haul_sys::HAUL_NEUTRAL,
        }
    }
}
