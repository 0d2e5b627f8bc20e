//! Requests in full: pieces, order, words, refusals, plans, raw ones, and the completion queue.

use haul::{raw, Affinity, Code, Options, Queue, Request};
use std::os::unix::io::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn pieces_need_not_be_cut_alike() {
    let src = numbers(1 << 20);
    let mut dst = vec![0u8; 1 << 20];
    haul::scope(|s| {
        let mut request = Request::copy().with(Options::new().dedicated());
        for piece in src.chunks(1234) {
            request = request.src(piece);
        }
        for piece in dst.chunks_mut(4321) {
            request = request.dst(piece);
        }
        s.submit(request).unwrap();
    })
    .unwrap();
    assert!(dst == src);
}

#[test]
fn every_pair_of_affinities_copies() {
    let src = numbers(300_000);
    for to in [Affinity::Cacheable, Affinity::NonCacheable, Affinity::Neutral] {
        for from in [Affinity::Cacheable, Affinity::NonCacheable, Affinity::Neutral] {
            let options = Options::new().dst_affinity(to).src_affinity(from);
            let mut dst = vec![0u8; src.len()];
            haul::scope(|s| s.copy_with(&mut dst, &src, options).map(drop)).unwrap().unwrap();
            assert!(dst == src, "{to:?} {from:?}");
        }
    }
}

#[test]
fn a_fence_orders_and_a_word_tells() {
    let src = numbers(4 << 20);
    let (mut middle, word) = (vec![0u8; src.len()], AtomicU64::new(0));
    let (begin, mut last) = (middle.as_mut_ptr(), vec![0u8; src.len()]);
    // SAFETY: `middle` and `last` are left alone until drain(); the fence has the second copy read after the first.
    let (tickets, refused) = unsafe {
        let mut first = haul_sys::haul_request_copy(begin.cast(), src.as_ptr().cast(), src.len());
        first.flags = haul_sys::HAUL_DEDICATED;
        let mut second = haul_sys::haul_request_copy(last.as_mut_ptr().cast(), begin.cast(), src.len());
        second.flags = haul_sys::HAUL_FENCE;
        second.notify = &word as *const AtomicU64 as *mut u64;
        second.notify_value = 9;
        raw::submit(&[first, second])
    };
    assert_eq!((tickets.len(), refused), (2, Ok(())));
    tickets[1].wait().unwrap();
    assert_eq!((tickets[0].is_done(), word.load(Ordering::Acquire)), (Ok(true), 9));
    haul::drain().unwrap();
    assert!(middle == src && last == src);
}

#[test]
fn a_refused_request_comes_back() {
    let (mut dst, src) = (vec![0u8; 1025], numbers(1025));
    haul::scope(|s| {
        let mut request = Request::copy().src(&src);
        for piece in dst.chunks_mut(1) {
            request = request.dst(piece); // 1025 of them
        }
        let refused = s.submit(request).unwrap_err();
        assert_eq!(refused.error().code(), Code::Invalid);
        let text = refused.to_string();
        assert!(text.len() > 10, "{text}");
        assert_eq!(s.submit(refused.into_request()).unwrap_err().to_string(), text);
    })
    .unwrap();
    assert!(dst.iter().all(|&byte| byte == 0), "a refused request has copied");

    let (mut dst, src) = ([0u8; 10], [7u8; 11]);
    let differ = haul::scope(|s| s.submit(Request::copy().src(&src).dst(&mut dst)).map_err(haul::Error::from)).unwrap();
    assert_eq!(differ.unwrap_err().code(), Code::Invalid);
}

#[test]
fn what_is_refused_first_does_not_stop_what_was_taken() {
    let (mut dst, src) = (vec![0u8; 100], numbers(100));
    let good = haul_sys::haul_request_copy(dst.as_mut_ptr().cast(), src.as_ptr().cast(), 100);
    let bad = haul_sys::haul_request { flags: 1 << 31, ..good };
    // SAFETY: both are left alone until the wait.
    let (tickets, refused) = unsafe { raw::submit(&[good, bad, good]) };
    assert_eq!((tickets.len(), refused.unwrap_err().code()), (1, Code::Invalid));
    tickets[0].wait().unwrap();
    assert!(dst == src);
}

#[test]
fn raw_copies_may_overlap() {
    for len in [1000, 300_000, 4 << 20] {
        let original = numbers(len + 5000);
        for (to, from) in [(5000, 0), (0, 5000), (1, 0), (0, 1), (7, 7)] {
            let (mut bytes, mut expected) = (original.clone(), original.clone());
            expected.copy_within(from..from + len, to);
            let begin = bytes.as_mut_ptr();
            // SAFETY: within `bytes`, which is left alone until the wait.
            unsafe { raw::copy(begin.add(to), begin.add(from), len) }.wait().unwrap();
            assert!(bytes == expected, "{len} bytes from {from} to {to}");
        }
    }
}

#[test]
fn a_checked_request_reports_what_is_not_there() {
    let mut dst = vec![0u8; 8192];
    let mut request = haul_sys::haul_request_copy(dst.as_mut_ptr().cast(), 4096 as *const _, 8192);
    request.flags = haul_sys::HAUL_CHECKED;
    // SAFETY: nothing is mapped at the source, which a checked request reports.
    let (tickets, refused) = unsafe { raw::submit(&[request]) };
    refused.unwrap();
    assert_eq!(tickets[0].wait().unwrap_err().code(), Code::Fault);
    assert_eq!(tickets[0].good_bytes(), 0);
}

#[test]
fn a_plan_says_why() {
    let (mut dst, src) = (vec![0u8; 8 << 20], numbers(8 << 20));
    let plan = Request::copy().src(&src).dst(&mut dst).explain().unwrap();
    assert!(plan.chunks >= 1 && !plan.reasons.is_empty() && plan.engine == "cpu", "{plan:?}");
    assert!(plan.reasons.iter().all(|reason| reason.len() > 10), "{plan:?}");
    let inline = Request::copy().src(&src).dst(&mut dst).with(Options::new().inline()).explain().unwrap();
    assert_eq!(inline.mover, "caller");
}

#[test]
fn counters_count() {
    let before = haul::query().unwrap();
    let copy = haul::copy_owned_with(vec![0u8; 1 << 20], numbers(1 << 20), Options::new().dedicated()).unwrap();
    copy.wait().unwrap();
    let after = haul::query().unwrap();
    assert!(after.submitted > before.submitted && !after.mover_status.is_empty(), "{before:?} {after:?}");
}

#[test]
fn a_panic_passes_through_tune() {
    let tuned = std::panic::catch_unwind(|| haul::tune(|percent| panic!("at {percent} %")));
    match tuned {
        Err(panic) => assert!(panic.downcast_ref::<String>().unwrap().starts_with("at ")),
        Ok(result) => println!("nothing was measured: {}", result.unwrap_err()),
    }
}

#[repr(C)]
struct Polled {
    descriptor: RawFd,
    events: i16,
    happened: i16,
}
extern "C" {
    fn poll(polled: *mut Polled, count: std::os::raw::c_ulong, timeout_ms: i32) -> i32;
}
const POLLIN: i16 = 1;

#[test]
fn an_event_loop_reaps_everything() {
    let queue = Queue::of_this_thread().unwrap();
    let (src, mut dst, mut done) = (numbers(256 << 10), vec![0u8; 25 << 20], Vec::new());
    haul::scope(|s| {
        for (number, part) in dst.chunks_mut(256 << 10).enumerate() {
            let options = Options::new().dedicated().complete(number as u64);
            s.copy_with(part, &src, options).unwrap();
        }
        while done.len() < 100 {
            queue.reap(&mut done).unwrap();
            if done.len() < 100 && !queue.arm().unwrap() {
                let mut polled = Polled { descriptor: queue.as_raw_fd(), events: POLLIN, happened: 0 };
                // SAFETY: one of them. It is called again where a signal ends it.
                unsafe { poll(&mut polled, 1, 1000) };
            }
        }
    })
    .unwrap();
    let mut numbers: Vec<u64> = done.iter().map(|entry| entry.user_data).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..100), "{done:?}");
    assert!(done.iter().all(|entry| entry.result == Ok(()) && entry.good_bytes == 256 << 10));
    assert!(dst.chunks(256 << 10).all(|part| part == src));
}
