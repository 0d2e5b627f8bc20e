//! Memory of another process: this program runs itself as that process. HAUL_TEST_SERVICE=1 says that the node's service
//! runs (tests/e2e/rust.sh starts one); without a service, what is asserted is that haul says so.

use haul::{Code, Grant, Granted, Memory, Request, Rights, Space};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::io::{AsRawFd, BorrowedFd};
use std::process::{Command, Stdio};

const BYTES: usize = 3 << 20;

fn byte(index: usize) -> u8 {
    (index * 7 + index / 4096) as u8
}

/// This program, as one of the tests below that do nothing unless they are told a role.
fn as_child(test: &str, role: String) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("HAUL_TEST_ROLE", role);
    command
}

fn role() -> Option<String> {
    std::env::var("HAUL_TEST_ROLE").ok()
}

fn granted_to_a_child(rights: Rights) -> Option<Memory> {
    let mut memory = Memory::new(BYTES).unwrap();
    memory.iter_mut().enumerate().for_each(|(index, value)| *value = byte(index));
    let grant = match Grant::new(memory, rights) {
        Ok(grant) => grant,
        Err(refused) => {
            assert!(std::env::var_os("HAUL_TEST_SERVICE").is_none(), "{refused}");
            assert_eq!(refused.error.code(), Code::NotSupported);
            assert_eq!(refused.dst[4097], byte(4097));
            println!("nothing is granted here: {refused}");
            return None;
        }
    };
    assert_eq!(grant.items().is_some(), rights == Rights::Read);
    // SAFETY: it is open for as long as the grant.
    let descriptor = unsafe { BorrowedFd::borrow_raw(grant.as_raw_fd()) }.try_clone_to_owned().unwrap();
    let role = format!("{rights:?} {}", grant.index());
    let status = as_child("the_one_who_was_granted", role).stdin(Stdio::from(descriptor)).status().unwrap();
    assert!(status.success());
    Some(grant.take_back().map_err(|(error, _)| error).unwrap())
}

#[test]
fn granted_memory_is_read() {
    if let Some(memory) = granted_to_a_child(Rights::Read) {
        assert!(memory.iter().enumerate().all(|(index, &value)| value == byte(index)));
    }
}

#[test]
fn granted_memory_is_written() {
    if let Some(memory) = granted_to_a_child(Rights::ReadWrite) {
        assert!(memory[..100_000].iter().all(|&value| value == 0x77));
        assert!(memory.iter().enumerate().skip(100_000).all(|(index, &value)| value == byte(index)));
    }
}

/// The grant is its standard input.
#[test]
fn the_one_who_was_granted() {
    let role = match role() {
        Some(role) => role,
        None => return,
    };
    let (rights, index) = role.split_once(' ').unwrap();
    let granted = Granted::open(&std::io::stdin(), index.parse().unwrap()).unwrap();
    assert_eq!(granted.len(), BYTES);

    let mut copy = Memory::new(BYTES).unwrap();
    haul::scope(|s| s.submit(Request::copy().dst(&mut copy).src_granted(&granted, 0..BYTES)).unwrap().wait())
        .unwrap()
        .unwrap();
    assert!(copy.iter().enumerate().all(|(index, &value)| value == byte(index)));

    copy.fill(0x77);
    let part = &copy[..100_000];
    let request = Request::copy().dst_granted(&granted, 0..100_000).src(part);
    let written = haul::scope(|s| s.submit(request)?.wait());
    if rights == "Read" {
        let error = written.unwrap_err(); // the scope's, which ends with what its requests report
        assert_eq!(error.code(), Code::NotPermitted, "{error}");
    } else {
        written.unwrap().unwrap();
    }
}

#[test]
fn memory_of_another_process_is_read() {
    let mut child =
        as_child("the_one_who_is_read", "read".into()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address =
        lines.by_ref().map(|line| line.unwrap()).find_map(|line| line.strip_prefix("at ")?.parse().ok()).unwrap();
    let space = Space::of_process(child.id());
    let copied = space.and_then(|space| {
        let mut copy = vec![0u8; BYTES];
        haul::scope(|s| s.submit(Request::copy().dst(&mut copy).src_at(&space, address, BYTES))?.wait())??;
        Ok(copy)
    });
    match copied {
        Ok(copy) => assert!(copy.iter().enumerate().all(|(index, &value)| value == byte(index))),
        // Where the kernel lets nobody read other processes, haul says so.
        Err(error) => assert_eq!(error.code(), Code::NotPermitted, "{error}"),
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_one_who_is_read() {
    if role().is_some() {
        let bytes: Vec<u8> = (0..BYTES).map(byte).collect();
        println!("\nat {}", bytes.as_ptr() as usize);
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    assert_eq!(Space::of_process(u32::MAX).unwrap_err().code(), Code::Invalid);
    assert_eq!(Space::of_device("abacus").unwrap_err().code(), Code::Invalid);
    assert_eq!(Space::of_device("a\0b").unwrap_err().code(), Code::Invalid);
    assert!(Granted::open(&std::io::stderr(), 1).is_err());
}
