//! Requests that own their buffers: handed back, dropped or forgotten, the buffers outlive the request.

use haul::{copy_owned, copy_owned_with, fill_owned, Memory, Options, Owned};
use std::mem::forget;
use std::sync::Arc;

const LARGE: usize = 16 << 20;

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn buffers_of_all_kinds_come_back() {
    let bytes = numbers(300_000);
    let (dst, src) = copy_owned(vec![0; bytes.len()], bytes.clone()).wait().unwrap();
    assert!(dst == bytes && src == bytes);

    let boxed: Box<[u8]> = bytes.clone().into();
    let (dst, src) = copy_owned(vec![0; bytes.len()].into_boxed_slice(), boxed).wait().unwrap();
    assert!(dst[..] == bytes[..] && src[..] == bytes[..]);

    let mut memory = Memory::new(bytes.len()).unwrap();
    memory.copy_from_slice(&bytes);
    let (dst, memory) = copy_owned(Memory::new(bytes.len()).unwrap(), memory).wait().unwrap();
    assert!(dst[..] == bytes[..] && memory[..] == bytes[..]);

    let leaked: &'static mut [u8] = Box::leak(vec![0; bytes.len()].into_boxed_slice());
    let (leaked, _) = copy_owned(leaked, Arc::new(bytes.clone())).wait().unwrap();
    assert!(leaked == bytes);
    let (again, _) = copy_owned(vec![0; bytes.len()], &*leaked).wait().unwrap();
    assert!(again == bytes);

    let (empty, _) = copy_owned(Vec::<u32>::new(), Vec::new()).wait().unwrap();
    assert!(empty.is_empty());
}

#[test]
fn it_may_be_moved_while_it_is_under_way() {
    let shared: Arc<[u8]> = numbers(LARGE).into();
    let start = |_| {
        let dst = vec![0; LARGE].into_boxed_slice();
        copy_owned_with(dst, shared.clone(), Options::new().dedicated()).unwrap()
    };
    let copies: Vec<_> = (0..4).map(start).collect();
    let waiters: Vec<_> = copies.into_iter().map(|copy| std::thread::spawn(move || copy.wait().unwrap().0)).collect();
    for waiter in waiters {
        assert!(waiter.join().unwrap()[..] == shared[..]);
    }
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn dropped_it_waits_and_ends_its_buffers() {
    let shared: Arc<[u8]> = numbers(LARGE).into();
    let copy = copy_owned_with(vec![0; LARGE], shared.clone(), Options::new().dedicated()).unwrap();
    let ticket = copy.ticket();
    drop(copy);
    assert_eq!(ticket.is_done(), Ok(true));
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn forgotten_it_leaks_its_buffers() {
    let shared: Arc<[u8]> = numbers(LARGE).into();
    let mut tickets = Vec::new();
    for _ in 0..4 {
        let copy = copy_owned_with(vec![0; LARGE], shared.clone(), Options::new().dedicated()).unwrap();
        tickets.push(copy.ticket());
        forget(copy);
    }
    // New memory that the copies would write to if theirs had been freed.
    let fresh = vec![vec![0x55u8; LARGE]; 4];
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert!(fresh.iter().flatten().all(|&byte| byte == 0x55));
    assert_eq!(Arc::strong_count(&shared), 5);
}

#[test]
fn parts_are_seen_while_the_rest_is_under_way() {
    let bytes = numbers(LARGE);
    let copy = copy_owned_with(vec![0; LARGE], bytes.clone(), Options::new().dedicated()).unwrap();
    assert!(copy.wait_range(LARGE - 5000..LARGE).unwrap() == &bytes[LARGE - 5000..]);
    assert!(copy.wait_range(0..5000).unwrap() == &bytes[..5000]);
    assert!(copy.wait().unwrap().0 == bytes);
}

#[test]
fn fills_come_back() {
    let (numbers, ()) = fill_owned(vec![0i32; 1 << 20], -3).wait().unwrap();
    assert!(numbers.iter().all(|&number| number == -3));
}

#[test]
fn lengths_that_differ_panic() {
    assert!(std::panic::catch_unwind(|| copy_owned(vec![0u8; 3], vec![0u8; 4])).is_err());
}

#[test]
fn what_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Owned<Vec<u64>, Arc<[u64]>>>();
    crosses::<haul::Pending<'_, f32>>();
    crosses::<haul::Scope<'_, '_>>();
    crosses::<haul::Request<'_>>();
    crosses::<haul::Grant>();
    crosses::<haul::Space>();
    crosses::<Memory>();
    crosses::<haul::Error>();
}
