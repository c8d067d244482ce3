//! A real process, killed with SIGKILL at any moment, and its pages afterwards. The test holds the
//! memory, as a supervisor would; the process says which writes had returned. Has `unsafe`: descriptors.

mod pages;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use dyno_pages::{PAGE_BYTES, Settings, Store, StoreError, thread_time};
use pages::page_of;

const PAGES: u64 = 400;
const CHILD: &str = "DYNO_PAGES_KILLED_CHILD";
const BLOWS: u64 = 12;
const RECORD_BYTES: usize = 16;

fn seed(page: u64, round: u64) -> u64 {
    (round * PAGES + page) * 6 + 3 + round % 3
}

/// Not a test of its own: what the process does until it is killed.
#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else {
        return;
    };
    let mut numbers = text.split(' ').map(|n| n.parse::<u64>().expect("a number"));
    let (fd, first_round) = (numbers.next().expect("fd"), numbers.next().expect("round"));
    // SAFETY: the parent opened the descriptor for this process alone.
    let file = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let (store, _) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    std::thread::scope(|scope| {
        for half in 0..2u64 {
            let store = &store;
            scope.spawn(move || {
                let mut lane = store.lane().expect("memory");
                for round in first_round.. {
                    for page in (half..PAGES).step_by(2) {
                        match lane.write(page, &page_of(seed(page, round))) {
                            Ok(()) => say(page, round),
                            Err(StoreError::NoSpace { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            });
        }
        let mut recompressor = store.recompressor().expect("memory");
        loop {
            store.age();
            recompressor
                .pass(0, 1, Duration::from_millis(3), thread_time)
                .expect("whole pages");
            store.compact(4).expect("memory given back");
        }
    });
}

/// One write to a pipe, so it is whole or not there.
fn say(page: u64, round: u64) {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&page.to_le_bytes());
    record[8..].copy_from_slice(&round.to_le_bytes());
    std::io::stderr()
        .write_all(&record)
        .expect("the parent listens");
}

#[test]
fn what_was_written_before_a_kill_is_there_after_it() {
    let store = Store::create(Settings::new(PAGES, 4 << 20)).expect("memory");
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    drop(store);
    let mut said: HashMap<u64, u64> = HashMap::new();
    let mut next_round = 1;
    for blow in 0..BLOWS {
        run_and_kill(
            &file,
            next_round,
            Duration::from_millis(150 + 37 * blow),
            &mut said,
        );
        next_round = said.values().max().map_or(next_round, |round| round + 2);
        let ours = file.try_clone().expect("a descriptor");
        let (store, found) = Store::reopen(ours, Settings::new(1, 1)).expect("a store");
        assert_eq!(found.damaged, 0);
        assert!(store.check().expect("memory").is_empty());
        let mut lane = store.lane().expect("memory");
        let mut bytes = [0; PAGE_BYTES];
        for (&page, &round) in &said {
            lane.read(page, &mut bytes).expect("whole");
            let tail = bytes.last_chunk().copied().map_or(0, u64::from_le_bytes);
            assert!(bytes == page_of(tail), "page {page} is torn");
            let stored = (tail / 6) / PAGES;
            assert_eq!(tail / 6 % PAGES, page);
            // The call under way at the kill may have gone through without a word.
            assert!(stored >= round, "page {page}: {stored}, {round} was said");
        }
    }
    assert_eq!(said.len(), PAGES as usize);
}

fn run_and_kill(file: &OwnedFd, round: u64, after: Duration, said: &mut HashMap<u64, u64>) {
    let theirs = file.try_clone().expect("a descriptor");
    // SAFETY: a flag of a descriptor that is open.
    unsafe { libc::fcntl(theirs.as_raw_fd(), libc::F_SETFD, 0) };
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{} {round}", theirs.as_raw_fd()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    drop(theirs);
    let mut pipe = child.stderr.take().expect("a pipe");
    let listener = std::thread::spawn(move || {
        let mut records = Vec::new();
        pipe.read_to_end(&mut records).map(|_| records)
    });
    std::thread::sleep(after);
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
    let records = listener.join().expect("no panic").expect("the pipe");
    let (records, rest) = records.as_chunks::<RECORD_BYTES>();
    assert!(rest.is_empty(), "the process said something else: {rest:?}");
    for record in records {
        let word = |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| record[at + i]));
        assert!(
            word(0) < PAGES,
            "the process said something else: {record:?}"
        );
        let last = said.entry(word(0)).or_default();
        *last = word(8).max(*last);
    }
}
