//! Which values may be copied byte by byte, in any order, and be looked at when half of their bytes are there.

/// Types that are nothing but their bytes: integers, floats, and arrays of them.
///
/// # Safety
/// Every pattern of bits is a value of the type, for a copy that fails leaves a mix of old and new bytes; it has no
/// padding, for a fill reads all bytes of a value; and none of its bytes change behind a shared reference.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i64,
/// }
/// // SAFETY: repr(C), eight-byte fields alone: no padding, and every pattern of bits is one.
/// unsafe impl haul::Plain for Particle {}
/// ```
///
/// What is not every pattern of bits is none:
/// ```compile_fail,E0277
/// let (mut dst, src) = (vec![false; 4], vec![true; 4]);
/// haul::scope(|s| s.copy(&mut dst, &src).wait().is_ok());
/// ```
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($name:ty)*) => {
        $(
            // SAFETY: a number: every pattern of bits is one, and it has no padding.
            unsafe impl Plain for $name {}
        )*
    };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array has no padding between its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The bytes of a value that fills memory, and how many.
pub(crate) fn pattern<T: Plain>(value: T) -> (u64, u8) {
    let () = Fills::<T>::OR_IS_REFUSED;
    let mut bytes = [0u8; 8];
    let size = std::mem::size_of::<T>();
    // SAFETY: `size` is at most 8, and all bytes of a Plain value are initialised.
    unsafe { std::ptr::copy_nonoverlapping((&value as *const T).cast(), bytes.as_mut_ptr(), size) };
    (u64::from_le_bytes(bytes), size as u8)
}

struct Fills<T>(T);
impl<T> Fills<T> {
    const OR_IS_REFUSED: () =
        assert!(matches!(std::mem::size_of::<T>(), 1 | 2 | 4 | 8), "haul fills with values of 1, 2, 4 or 8 bytes");
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_pattern_is_the_bytes_of_the_value() {
        assert_eq!(pattern(0xabu8), (0xab, 1));
        assert_eq!(pattern(-2i16), (0xfffe, 2));
        assert_eq!(pattern(1.0f32), (0x3f80_0000, 4));
        assert_eq!(pattern([1u16, 2, 3, 4]), (0x0004_0003_0002_0001, 8));
        assert_eq!(pattern(u64::MAX - 1), (u64::MAX - 1, 8));
    }
}
