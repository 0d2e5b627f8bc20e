//! Scopes: whatever becomes of tickets, the memory is nobody else's once the scope has ended.

use haul::Options;
use std::mem::forget;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::time::Duration;

const LARGE: usize = 16 << 20;

/// Bytes that differ from place to place and from seed to seed.
fn numbers(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(byte).collect()
}

#[test]
fn copies_of_all_sizes_arrive() {
    for len in [0, 1, 2, 63, 255, 256, 4095, 4097, 65536, (1 << 20) + 3, 3 << 20] {
        let src = numbers(len, len as u64);
        let mut dst = vec![0; len];
        let mut around = vec![0xaa; len + 2];
        haul::scope(|s| {
            s.copy(&mut dst, &src);
            s.copy_with(&mut around[1..=len], &src, Options::new().dedicated()).unwrap();
        })
        .unwrap();
        assert!(dst == src, "{len} bytes");
        assert!(around[1..=len] == src[..] && around[0] == 0xaa && around[len + 1] == 0xaa, "{len} bytes");
    }
}

#[test]
fn elements_of_all_kinds_arrive() {
    fn roundtrip<T: haul::Plain + PartialEq>(values: [T; 3]) {
        let src: Vec<T> = values.iter().copied().cycle().take(1000).collect();
        let mut dst = vec![values[2]; 1000];
        let filled = haul::scope(|s| s.copy(&mut dst, &src).wait().is_ok()).unwrap();
        assert!(filled && dst == src);
    }
    roundtrip([1u8, 2, 3]);
    roundtrip([-1i16, 2, 3]);
    roundtrip([1.5f32, f32::INFINITY, -0.25]);
    roundtrip([u128::MAX, 0, 1]);
    roundtrip([[1u32, 2, 3], [4, 5, 6], [7, 8, 9]]);
    roundtrip([[0u64; 0], [], []]); // elements without bytes
}

#[test]
fn forgotten_tickets_are_waited_for() {
    let src = numbers(LARGE, 1);
    for _ in 0..4 {
        let mut dst = vec![0; LARGE];
        haul::scope(|s| {
            let (front, back) = dst.split_at_mut(LARGE / 2);
            forget(s.copy_with(front, &src[..LARGE / 2], Options::new().dedicated()));
            s.copy_with(back, &src[LARGE / 2..], Options::new().dedicated()).unwrap();
        })
        .unwrap();
        assert!(dst == src);
    }
}

#[test]
fn a_panic_waits_first() {
    let src = numbers(LARGE, 2);
    let mut dst = vec![0; LARGE];
    let panic = catch_unwind(AssertUnwindSafe(|| {
        haul::scope(|s| {
            let _copy = s.copy_with(&mut dst, &src, Options::new().dedicated()).unwrap();
            resume_unwind(Box::new("a panic")); // without the message, which takes as long as a copy
        })
    }))
    .unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a panic"));
    assert!(dst == src, "the scope ended before its copy");
}

#[test]
fn what_was_waited_for_is_ours_within_the_scope() {
    let mut buffers = vec![vec![0u8; 1 << 20]; 2];
    let src = numbers(1 << 20, 3);
    haul::scope(|s| {
        let (first, second) = buffers.split_at_mut(1);
        // A chain: the first copy's destination is the second one's source.
        let copied: &mut [u8] = s.copy(&mut first[0], &src).wait().unwrap();
        copied[0] = !copied[0];
        s.copy(&mut second[0], copied).wait().unwrap();
    })
    .unwrap();
    assert!(buffers[0] == buffers[1] && buffers[0][1..] == src[1..] && buffers[0][0] == !src[0]);
}

#[test]
fn parts_are_seen_while_the_rest_is_under_way() {
    let src: Vec<u64> = (0..LARGE as u64 / 8).collect();
    let mut dst = vec![0u64; src.len()];
    haul::scope(|s| {
        let copy = s.copy_with(&mut dst, &src, Options::new().dedicated()).unwrap();
        let last = copy.len() - 1000..copy.len();
        assert_eq!(copy.wait_range(last.clone()).unwrap(), &src[last.clone()]);
        assert_eq!(copy.test_range(last.clone()).unwrap().unwrap(), &src[last]);
        assert_eq!(copy.wait_range(5..5).unwrap(), &[0u64; 0]);
        let finished = copy.finished();
        assert!(finished == &src[..finished.len()]);
        assert!(copy.wait_timeout(std::time::Duration::from_secs(60)).unwrap() && copy.is_done().unwrap());
        assert_eq!(copy.finished().len(), copy.len());
    })
    .unwrap();
}

#[test]
fn a_range_is_waited_for_with_a_limit() {
    let (mut dst, src) = (vec![0u8; LARGE], numbers(LARGE, 5));
    haul::scope(|s| {
        let copy = s.copy(&mut dst, &src);
        let mut turns = 0;
        let first = loop {
            match copy.wait_range_timeout(100..5000, Duration::from_micros(10)).unwrap() {
                Some(elements) => break elements,
                None => turns += 1,
            }
        };
        assert!(first == &src[100..5000], "after {turns} turns");
        assert!(copy.wait_range_timeout(0..0, Duration::ZERO).unwrap().is_some());
        assert!(copy.wait_range_timeout(0..copy.len(), Duration::MAX).unwrap() == Some(&src[..]));
    })
    .unwrap();
}

#[test]
fn a_range_beyond_the_request_panics() {
    for range in [0..101, 101..101] {
        let (mut dst, src) = ([0u8; 100], [7u8; 100]);
        let past = || haul::scope(|s| s.copy(&mut dst, &src).wait_range(range).map(<[u8]>::len));
        assert!(catch_unwind(AssertUnwindSafe(past)).is_err());
    }
}

#[test]
fn sides_of_different_lengths_panic() {
    let (mut dst, src) = ([0u8; 100], [7u8; 99]);
    let differ = || haul::scope(|s| s.copy(&mut dst, &src).len());
    assert!(catch_unwind(AssertUnwindSafe(differ)).is_err());
}

#[test]
fn a_long_scope_forgets_what_is_over() {
    let src = numbers(64 << 10, 4);
    let mut dst = vec![0u8; src.len() * 100];
    for _ in 0..3 {
        dst.fill(0);
        haul::scope(|s| {
            // More than a ring holds, some waited for and some not.
            for (index, part) in dst.chunks_mut(1000).enumerate() {
                let from = &src[..part.len()];
                let copy = s.copy_with(part, from, Options::new().dedicated()).unwrap();
                if index % 7 == 0 {
                    copy.wait().unwrap();
                }
            }
        })
        .unwrap();
        assert!(dst.chunks(1000).all(|part| part == &src[..part.len()]));
    }
}

#[test]
fn threads_share_a_scope() {
    let src = numbers(1 << 20, 5);
    let mut dst = vec![0u8; 8 << 20];
    haul::scope(|s| {
        std::thread::scope(|threads| {
            for part in dst.chunks_mut(1 << 20) {
                let src = &src;
                threads.spawn(move || {
                    // The thread ends before its copy does.
                    s.copy_with(part, src, Options::new().dedicated()).unwrap();
                });
            }
        });
    })
    .unwrap();
    assert!(dst.chunks(1 << 20).all(|part| part == src));
}

#[test]
fn scopes_nest_and_return_values() {
    let (mut outer, mut inner, src) = (vec![0u8; 1 << 20], vec![0u8; 1 << 20], numbers(1 << 20, 6));
    let count = haul::scope(|s| {
        s.copy(&mut outer, &src);
        haul::scope(|s| s.copy(&mut inner, &src).len()).unwrap()
    });
    assert_eq!(count, Ok(1 << 20));
    assert!(outer == src && inner == src);
}

#[test]
fn fills_of_all_widths_arrive() {
    fn fill<T: haul::Plain + PartialEq>(empty: T, value: T) {
        for len in [0, 1, 100, 1 << 20] {
            let mut dst = vec![empty; len];
            haul::scope(|s| {
                s.fill_with(&mut dst, value, Options::new().dedicated()).unwrap();
            })
            .unwrap();
            assert!(dst.iter().all(|element| *element == value));
        }
    }
    fill(0u8, 7);
    fill(0i16, -7);
    fill(0.0f32, 1.25);
    fill([0u8; 8], [1, 2, 3, 4, 5, 6, 7, 8]);
}
