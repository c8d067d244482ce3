//! What a store refuses, and what it says. Has `unsafe`: a system call to damage memory on purpose.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use dyno_pages::check::page_of;
use dyno_pages::{Background, Damage, PAGE_BYTES, Page, Schedule, Settings, Store, StoreError};

const NOISE: u64 = 5;
const TEXT: u64 = 3;

fn store(pages: u64, limit_bytes: u64) -> Store {
    Store::create(Settings::new(pages, limit_bytes)).expect("memory")
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_has() {
    let store = store(100, 2 * 64 * 1024);
    let mut handle = store.handle().expect("memory");
    let noise = |page: u64| page_of(NOISE + 6 * page);
    let mut stored = 0;
    let error = loop {
        match handle.write(stored, &noise(stored)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(stored, 32, "two spans of 16 whole pages");
    assert_eq!(error.errno(), libc::ENOSPC);
    let text = error.to_string();
    assert!(
        text.contains("4096 bytes") && text.contains("131072 bytes"),
        "{text}"
    );
    // A page that it has can be overwritten, as its slot is long enough; one that it has not is
    // refused.
    handle.write(3, &noise(99)).expect("it has a slot");
    assert!(handle.write(40, &noise(40)).is_err());
    let mut page = [0; PAGE_BYTES];
    handle.read(3, &mut page).expect("whole");
    assert!(page == noise(99));
    handle
        .write(50, &[7; PAGE_BYTES])
        .expect("repeated bytes take no slot");
    handle.discard(3).expect("in range");
    handle.write(60, &noise(60)).expect("there is room again");
    assert_eq!(store.stats().expect("figures").refused, 2);
}

#[test]
fn a_full_class_borrows_a_longer_slot() {
    let store = store(1000, 2 * 64 * 1024);
    let mut handle = store.handle().expect("memory");
    let noise = |page: u64| page_of(NOISE + 6 * page);
    for page in 0..32 {
        handle.write(page, &noise(page)).expect("room");
    }
    handle.discard(5).expect("in range");
    let text = page_of(TEXT);
    handle
        .write(900, &text)
        .expect("a whole page's slot is free");
    let mut page = [0; PAGE_BYTES];
    handle.read(900, &mut page).expect("whole");
    assert!(page == text);
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    drop(store);
    let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    assert_eq!((found.pages, found.damaged), (32, 0));
    store
        .handle()
        .expect("memory")
        .read(900, &mut page)
        .expect("whole");
    assert!(page == text);
}

#[test]
fn pages_that_are_not_there_are_refused() {
    let store = store(10, 1 << 20);
    let mut handle = store.handle().expect("memory");
    let mut page = [0; PAGE_BYTES];
    for error in [
        handle.write(10, &page).expect_err("out"),
        handle.read(u64::MAX, &mut page).expect_err("out"),
        handle.discard(10).expect_err("out"),
        handle
            .read_many(&[0, 10], &mut [page, page])
            .expect_err("out"),
    ] {
        assert!(
            matches!(error, StoreError::OutOfRange { pages: 10, .. }),
            "{error}"
        );
    }
    for (pages, limit) in [(0, 1 << 20), (10, 0), (10, 1 << 60)] {
        assert!(matches!(
            Store::create(Settings::new(pages, limit)),
            Err(StoreError::Settings(_))
        ));
    }
}

fn flip(file: impl AsFd, at: i64) {
    let fd = file.as_fd().as_raw_fd();
    let mut byte = [0u8];
    // SAFETY: one byte read and written, from and to a buffer of one byte.
    unsafe {
        assert_eq!(libc::pread(fd, byte.as_mut_ptr().cast(), 1, at), 1);
        byte[0] ^= 0x20;
        assert_eq!(libc::pwrite(fd, byte.as_ptr().cast(), 1, at), 1);
    }
}

#[test]
fn any_damaged_byte_of_a_slot_is_found_before_it_is_handed_out() {
    for seed in [TEXT, NOISE, 4, 2] {
        let store = store(10, 1 << 20);
        let mut handle = store.handle().expect("memory");
        let bytes = page_of(seed + 600);
        handle.write(0, &bytes).expect("room");
        let stats = store.stats().expect("figures");
        let len = (stats.lz4.bytes + stats.raw.bytes + stats.repeated.bytes) as i64;
        assert!(len > 0);
        for at in (0..len).step_by(1 + len as usize / 90) {
            flip(store.memory_file(), 64 * 1024 + at);
            let mut page = [1; PAGE_BYTES];
            let error = handle.read(0, &mut page).expect_err("damaged");
            assert!(
                matches!(error, StoreError::Corrupt { page: 0, .. }),
                "{error}"
            );
            assert_eq!(error.errno(), libc::EIO);
            assert!(page == [0; PAGE_BYTES], "damaged bytes are not handed out");
            assert_eq!(store.check().expect("memory").len(), 1);
            flip(store.memory_file(), 64 * 1024 + at);
        }
        let mut page = [1; PAGE_BYTES];
        handle.read(0, &mut page).expect("whole again");
        assert!(page == bytes);
    }
}

#[test]
fn a_damaged_entry_is_found_and_costs_its_page_alone() {
    for (page, byte) in [(0i64, 1), (1, 2), (2, 4), (3, 6), (3, 7)] {
        let store = store(10, 1 << 20);
        let mut handle = store.handle().expect("memory");
        for seed in 2..6 {
            handle.write(seed - 2, &page_of(seed)).expect("room");
        }
        let file = store
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor");
        drop(store);
        flip(&file, 4096 + page * 8 + byte);
        let (store, _) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
        let bad: Vec<u64> = store
            .check()
            .expect("memory")
            .iter()
            .map(|b| b.page)
            .collect();
        assert_eq!(bad, [page as u64], "byte {byte}");
        let mut handle = store.handle().expect("memory");
        handle
            .write(page as u64, &page_of(9))
            .expect("writing mends");
        assert!(store.check().expect("memory").is_empty());
    }
}

#[test]
fn two_entries_at_one_slot_are_found() {
    let store = store(10, 1 << 20);
    store
        .handle()
        .expect("memory")
        .write(0, &page_of(TEXT))
        .expect("room");
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    drop(store);
    let mut entry = [0u8; 8];
    // SAFETY: eight bytes read and written, from and to a buffer of eight.
    unsafe {
        assert_eq!(
            libc::pread(file.as_raw_fd(), entry.as_mut_ptr().cast(), 8, 4096),
            8
        );
        assert_eq!(
            libc::pwrite(file.as_raw_fd(), entry.as_ptr().cast(), 8, 4096 + 8),
            8
        );
    }
    let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    assert_eq!((found.pages, found.damaged), (1, 1));
    let bad = store.check().expect("memory");
    assert!(matches!(
        bad[0].error,
        StoreError::Corrupt {
            page: 1,
            what: Damage::Entry { .. }
        }
    ));
}

#[test]
fn what_is_no_store_is_refused() {
    let file = OwnedFd::from(tempfile::tempfile().expect("a file"));
    let error = Store::reopen(file, Settings::new(1, 1)).expect_err("empty");
    assert!(matches!(error, StoreError::Format(_)), "{error}");
    let store = store(10, 1 << 20);
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    drop(store);
    flip(&file, 8);
    let error = Store::reopen(file, Settings::new(1, 1)).expect_err("another version");
    assert!(error.to_string().contains("version 37"), "{error}");
}

#[test]
fn memory_has_one_store_at_a_time() {
    let store = store(10, 1 << 20);
    let file = || {
        store
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor")
    };
    // Twice: closing a descriptor of the first attempt must not open the door.
    for _ in 0..2 {
        let error = Store::reopen(file(), Settings::new(1, 1)).expect_err("in use");
        assert!(matches!(error, StoreError::InUse), "{error}");
        assert_eq!(error.errno(), libc::EBUSY);
    }
    let file = file();
    drop(store);
    Store::reopen(file, Settings::new(1, 1)).expect("free now");
}

#[test]
fn compaction_gives_memory_back() {
    let store = store(20_000, 64 << 20);
    let mut handle = store.handle().expect("memory");
    for page in 0..6000 {
        handle.write(page, &page_of(TEXT + 6 * page)).expect("room");
    }
    let full = store.stats().expect("figures");
    for page in (0..6000).filter(|page| page % 8 != 0) {
        handle.discard(page).expect("in range");
    }
    let done = store.compact(usize::MAX).expect("memory given back");
    assert!(done.moved > 0 && done.freed_spans > 0, "{done:?}");
    let thin = store.stats().expect("figures");
    assert!(thin.resident_bytes < full.resident_bytes / 4, "{thin:?}");
    assert!(store.check().expect("memory").is_empty());
    let mut page = [0; PAGE_BYTES];
    for number in (0..6000).step_by(8) {
        handle.read(number, &mut page).expect("whole");
        assert!(page == page_of(TEXT + 6 * number));
    }
}

#[test]
fn idle_pages_take_less_after_the_second_tier() {
    let store = store(2000, 64 << 20);
    let mut handle = store.handle().expect("memory");
    for page in 0..500 {
        handle.write(page, &page_of(TEXT + 6 * page)).expect("room");
    }
    let first = store.stats().expect("figures");
    store.age();
    let mut page = [0; PAGE_BYTES];
    handle.read(17, &mut page).expect("whole");
    let mut recompressor = store.recompressor().expect("memory");
    let endless = Duration::from_secs(1);
    let done = recompressor
        .pass(0, 1, endless, || Duration::ZERO)
        .expect("whole pages");
    assert_eq!(
        done.packed + done.stubborn,
        499,
        "the page just read is not idle: {done:?}"
    );
    let second = store.stats().expect("figures");
    assert!(second.slot_bytes < first.slot_bytes * 9 / 10, "{second:?}");
    assert_eq!(first.slot_bytes - second.slot_bytes, done.won_bytes);
    // Without a budget nothing is done, and the pass says where it stopped.
    store.age();
    let none = recompressor
        .pass(0, 1, Duration::ZERO, || Duration::ZERO)
        .expect("whole pages");
    assert_eq!((none.packed, none.next_page), (0, 17));
    assert!(store.check().expect("memory").is_empty());
}

#[test]
fn the_background_thread_does_all_of_it_and_ends() {
    let store = Arc::new(store(2000, 64 << 20));
    let mut handle = store.handle().expect("memory");
    for page in 0..300 {
        handle.write(page, &page_of(TEXT + 6 * page)).expect("room");
    }
    let schedule = Schedule {
        age_every: Duration::from_millis(50),
        idle: 1,
        cpu_share: 1.0,
        ..Schedule::default()
    };
    let background = Background::start(Arc::clone(&store), schedule).expect("a thread");
    let packed = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        store.stats().expect("figures").zstd.pages > 250
    });
    background.stop().expect("no damage");
    assert!(packed);
    assert!(store.check().expect("memory").is_empty());
}

#[test]
fn overhead_is_at_most_24_bytes_a_page() {
    let limit = 1 << 30;
    for (pages, mean_bytes) in [(600_000, 1800), (262_144, PAGE_BYTES), (4_000_000, 200)] {
        let bytes = store(pages, limit).overhead_bytes_per_page(mean_bytes);
        assert!(
            bytes <= 24.0,
            "{bytes:.1} bytes beside pages of {mean_bytes}"
        );
    }
}

#[test]
fn a_class_takes_no_more_memory_than_its_slots_and_a_piece_ahead() {
    let store = store(1000, 8 << 20);
    let mut handle = store.handle().expect("memory");
    // Nine spans of sixteen whole pages, and one page in the tenth.
    for page in 0..9 * 16 + 1 {
        handle
            .write(page, &page_of(NOISE + 6 * page))
            .expect("room");
    }
    let stats = store.stats().expect("figures");
    let index = 4096 + 8192 + 4096;
    let most = stats.slot_bytes + index + 16 * 1024;
    assert!(stats.resident_bytes <= most, "{stats:?}, at most {most}");
}

#[test]
fn a_page_in_another_place_is_not_taken_for_this_one() {
    let store = store(10, 1 << 20);
    let mut handle = store.handle().expect("memory");
    let zeros: Page = [0; PAGE_BYTES];
    handle.write(0, &zeros).expect("room");
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    let mut entry = [0u8; 8];
    // SAFETY: eight bytes read and written, from and to a buffer of eight.
    unsafe {
        assert_eq!(
            libc::pread(file.as_raw_fd(), entry.as_mut_ptr().cast(), 8, 4096),
            8
        );
        assert_eq!(
            libc::pwrite(file.as_raw_fd(), entry.as_ptr().cast(), 8, 4096 + 8),
            8
        );
    }
    let mut page = [1; PAGE_BYTES];
    assert!(
        handle.read(1, &mut page).is_err(),
        "the entry of page 0 in the place of page 1"
    );
}

#[test]
fn equal_pages_share_a_slot_when_asked_to_and_part_when_one_changes() {
    let settings = Settings {
        share: true,
        ..Settings::new(100, 8 << 20)
    };
    let store = Store::create(settings.clone()).expect("memory");
    let mut handle = store.handle().expect("memory");
    for seed in [TEXT, NOISE] {
        let page = page_of(seed);
        for number in 0..40 {
            handle.write(number, &page).expect("room");
        }
        let stats = store.stats().expect("figures");
        assert_eq!(stats.shared, 39);
        let used: u64 = stats.classes.iter().map(|class| class.used).sum();
        assert_eq!(used, 1, "one slot for all");
    }
    handle.write(7, &page_of(TEXT)).expect("room");
    store.age();
    store.compact(usize::MAX).expect("memory given back");
    let mut recompressor = store.recompressor().expect("memory");
    let budget = Duration::from_secs(1000);
    recompressor
        .pass(0, 1, budget, || Duration::ZERO)
        .expect("whole pages");
    let file = store
        .memory_file()
        .try_clone_to_owned()
        .expect("a descriptor");
    drop((handle, recompressor));
    drop(store);
    let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    assert_eq!((found.pages, found.damaged), (40, 0));
    assert_eq!(store.stats().expect("figures").shared, 38, "counted anew");
    assert!(store.check().expect("memory").is_empty());
    let mut handle = store.handle().expect("memory");
    let mut bytes = [0; PAGE_BYTES];
    for number in 0..40 {
        handle.read(number, &mut bytes).expect("whole");
        assert!(bytes == page_of(if number == 7 { TEXT } else { NOISE }));
        handle.discard(number).expect("in range");
    }
    assert_eq!(store.stats().expect("figures").slot_bytes, 0);
}

#[test]
fn memory_gathered_in_huge_pages_holds_the_same_pages() {
    let store = store(20_000, 64 << 20);
    let mut handle = store.handle().expect("memory");
    for page in 0..12_000 {
        handle
            .write(page, &page_of(NOISE + 6 * page))
            .expect("room");
    }
    match store.gather() {
        0 => println!("skipped: huge pages: this kernel gives none to files in memory"),
        some => assert!(some >= 20, "{some} of about 23"),
    }
    assert_eq!(store.gather(), 0, "each is asked for once");
    assert!(store.check().expect("memory").is_empty());
    for page in 0..12_000 {
        handle.discard(page).expect("in range");
    }
    store.compact(usize::MAX).expect("memory given back");
    assert!(store.stats().expect("figures").resident_bytes < 1 << 20);
}
