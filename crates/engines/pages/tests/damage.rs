//! Bits that change in a store's memory: what was written comes back, or an error does, and nothing
//! waits for ever. Has `unsafe`: system calls to damage memory on purpose.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_checksum::crc32c;
use dyno_pages::check::page_of;
use dyno_pages::{
    Background, BackingFile, Damage, PAGE_BYTES, Page, Schedule, Settings, Store, StoreError,
    Tiers, WriteBack,
};

const INDEX_AT: i64 = 4096;
const PAGES: u64 = 64;

fn word(file: impl AsFd, at: i64) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: eight bytes read into a buffer of eight.
    let read = unsafe { libc::pread(file.as_fd().as_raw_fd(), bytes.as_mut_ptr().cast(), 8, at) };
    assert_eq!(read, 8);
    u64::from_le_bytes(bytes)
}

fn overwrite(file: impl AsFd, at: i64, bytes: &[u8]) {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: so many bytes written from a buffer of that length.
    let written = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), at) };
    assert_eq!(written, bytes.len() as isize);
}

fn entry_at(page: u64) -> i64 {
    INDEX_AT + page as i64 * 8
}

/// Pages of every kind: two bytes and eight bytes that repeat, packed by LZ4 and by zstd, as they
/// are, in the file, and none; and of each packed kind some of nearly the same length, which one
/// changed bit of a place can lead to.
fn content(page: u64) -> Page {
    match page % 8 {
        0 => [7; PAGE_BYTES],
        1 => std::array::from_fn(|at| (at % 8) as u8 ^ page as u8),
        2 | 3 => page_of(5 + 6 * page),
        4 => [0; PAGE_BYTES],
        _ => page_of(3 + 6 * page),
    }
}

fn filled(share: bool, file: &std::path::Path) -> Store {
    let store = Store::create(Settings {
        backing: Some(BackingFile {
            path: file.to_path_buf(),
            pages: PAGES as u32,
        }),
        share,
        ..Settings::new(PAGES, 1 << 20)
    })
    .expect("memory");
    let mut handle = store.handle().expect("memory");
    for page in 0..PAGES / 2 {
        handle.write(page, &content(page)).expect("room");
    }
    // Half of the pages so far go to zstd, and some of what nothing packs to the file.
    store.age();
    let mut recompressor = store.recompressor().expect("memory");
    let long = Duration::from_secs(60);
    recompressor
        .pass(0, 1, long, || Duration::ZERO)
        .expect("no damage");
    let raw = WriteBack {
        packed: None,
        raw: Some(1),
    };
    handle.write_back(0, 4, raw).expect("a disk");
    for page in PAGES / 2..PAGES {
        handle.write(page, &content(page)).expect("room");
    }
    drop((handle, recompressor));
    store
}

#[test]
fn a_changed_bit_of_any_entry_is_never_another_page() {
    let folder = tempfile::tempdir().expect("a directory");
    for share in [false, true] {
        let store = filled(share, &folder.path().join("pages"));
        let stats = store.stats().expect("figures");
        let kinds = [stats.lz4, stats.zstd, stats.raw, stats.file, stats.repeated];
        assert!(kinds.iter().all(|kind| kind.pages > 0), "{stats:?}");
        let file = store.memory_file();
        let mut handle = store.handle().expect("memory");
        for page in 0..PAGES {
            let before = word(file, entry_at(page));
            for bit in 1..64 {
                let damaged = before ^ 1 << bit;
                overwrite(file, entry_at(page), &damaged.to_le_bytes());
                let mut bytes = [1; PAGE_BYTES];
                match handle.read(page, &mut bytes) {
                    Ok(()) => assert!(bytes == content(page), "page {page}, bit {bit}"),
                    Err(error) => {
                        assert_eq!(error.errno(), libc::EIO, "{error}");
                        let after = word(file, entry_at(page));
                        // Reading may have set the age back, and nothing else.
                        assert_eq!(after & !0x30, damaged & !0x30, "page {page}, bit {bit}");
                    }
                }
                overwrite(file, entry_at(page), &before.to_le_bytes());
                handle.read(page, &mut bytes).expect("whole again");
            }
        }
        assert!(store.corrupt_reads() > PAGES && store.corrupt_pages() == PAGES);
        let reported = store.unreported_damage();
        assert_eq!(reported.len() as u64, PAGES);
        assert!(store.unreported_damage().is_empty(), "each is told once");
    }
}

#[test]
fn a_lock_that_no_thread_holds_is_an_error_and_no_wait_for_ever() {
    let store = Store::create(Settings::new(PAGES, 1 << 20)).expect("memory");
    let mut handle = store.handle().expect("memory");
    handle.write(3, &page_of(3)).expect("room");
    handle.write(4, &page_of(9)).expect("room");
    let before = word(store.memory_file(), entry_at(3));
    overwrite(
        store.memory_file(),
        entry_at(3),
        &(before | 1).to_le_bytes(),
    );
    let mut bytes = [1; PAGE_BYTES];
    // Two that wait must not take each other for the holder.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut handle = store.handle().expect("memory");
                let error = handle.read(3, &mut [1; PAGE_BYTES]).expect_err("locked");
                let StoreError::Corrupt { page: 3, what } = &error else {
                    panic!("{error}");
                };
                assert_eq!(*what, Damage::Lock);
            });
        }
    });
    assert!(handle.write(3, &[7; PAGE_BYTES]).is_err());
    assert!(handle.discard(3).is_err());
    // What works in the background passes it by.
    store.age();
    store.compact(usize::MAX).expect("memory goes back");
    handle.read(4, &mut bytes).expect("another page is whole");
    assert_eq!(word(store.memory_file(), entry_at(3)), before | 1);
    let file = store.memory_file().try_clone_to_owned();
    drop(handle);
    drop(store);
    let file = file.expect("a descriptor");
    let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    assert_eq!(found.unlocked, 1);
    let mut handle = store.handle().expect("memory");
    handle
        .read(3, &mut bytes)
        .expect("nothing else was damaged");
    assert!(bytes == page_of(3));
}

/// Waits until `done`, a minute at most.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_damaged_page_does_not_end_the_work_in_the_background() {
    let folder = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        tiers: Tiers::Lz4ThenZstd,
        backing: Some(BackingFile {
            path: folder.path().join("pages"),
            pages: 2000,
        }),
        ..Settings::new(2000, 64 << 20)
    };
    let store = Arc::new(Store::create(settings).expect("memory"));
    let mut handle = store.handle().expect("memory");
    for page in 0..300 {
        handle.write(page, &page_of(3 + 6 * page)).expect("room");
    }
    // A byte of page 5's form: LZ4 pages begin with the first slot of their class.
    let place = word(store.memory_file(), entry_at(5)) >> 20 & ((1 << 33) - 1);
    let arena_at = 65536;
    let at = arena_at + place as i64 * 16 + 40;
    let damaged = word(store.memory_file(), at) ^ 0x20;
    overwrite(store.memory_file(), at, &damaged.to_le_bytes());
    let schedule = Schedule {
        age_every: Duration::from_millis(50),
        idle: 1,
        cpu_share: 1.0,
        write_back: Some(WriteBack {
            packed: Some(3),
            raw: Some(3),
        }),
        ..Schedule::default()
    };
    let background = Background::start(Arc::clone(&store), schedule).expect("a thread");
    wait_until("every other page leaves memory", || {
        store.stats().expect("figures").file.pages == 299
    });
    let progress = Arc::clone(background.progress());
    let passes = progress.passes();
    wait_until("it goes on", || progress.passes() > passes + 2);
    assert!(progress.is_running() && progress.damaged() > 0 && progress.failed() == 0);
    background.stop().expect("it ended as it was told");
    assert!(!progress.is_running());
    assert_eq!(store.corrupt_pages(), 1);
    assert_eq!(store.corrupt_reads(), 0, "nobody asked for it yet");
    assert!(handle.read(5, &mut [0; PAGE_BYTES]).is_err());
    assert_eq!(store.stats().expect("figures").corrupt_reads, 1);
}

/// Changes the last byte of the form of `page`, which lies in a slot: both a literal of an LZ4 block
/// and a byte of a page that is stored as it is.
fn damage_last_byte(store: &Store, page: u64) {
    let entry = word(store.memory_file(), entry_at(page));
    let (place, len) = match entry >> 1 & 7 {
        2 => ((entry >> 39) as i64 * PAGE_BYTES as i64, PAGE_BYTES as i64),
        _ => {
            let place = entry >> 20 & ((1 << 33) - 1);
            (place as i64 * 16, 4 + (entry >> 7 & 0x1fff) as i64)
        }
    };
    let at = 65536 + place + len - 8;
    let damaged = word(store.memory_file(), at) ^ 1 << 56;
    overwrite(store.memory_file(), at, &damaged.to_le_bytes());
}

const PACKED: u64 = 5;
const RAW: u64 = 8;

/// A store whose reads are not verified, with damage in a packed page and in one that is stored as
/// it is.
fn damaged_and_not_verified(folder: &std::path::Path) -> (Store, Settings) {
    let settings = Settings {
        verify: false,
        backing: Some(BackingFile {
            path: folder.join("pages"),
            pages: PAGES as u32,
        }),
        ..Settings::new(PAGES, 1 << 20)
    };
    let store = Store::create(settings.clone()).expect("memory");
    let mut handle = store.handle().expect("memory");
    handle
        .write(PACKED, &page_of(3 + 6 * PACKED))
        .expect("room");
    handle.write(RAW, &page_of(5 + 6 * RAW)).expect("room");
    for page in [PACKED, RAW] {
        damage_last_byte(&store, page);
        let read = handle.read(page, &mut [0; PAGE_BYTES]);
        read.expect("reads are not verified");
    }
    drop(handle);
    (store, settings)
}

#[test]
fn the_check_of_every_page_compares_checksums_also_if_reads_do_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let (store, _) = damaged_and_not_verified(folder.path());
    let bad = store.check().expect("memory");
    let bad: Vec<u64> = bad.iter().map(|bad| bad.page).collect();
    assert_eq!(bad, [PACKED, RAW]);
}

/// The second tier and the write-back store a page with a new checksum, which must not be that of
/// damaged bytes.
#[test]
fn a_damaged_page_that_reads_do_not_verify_is_not_moved_under_a_checksum_that_fits_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let (store, settings) = damaged_and_not_verified(folder.path());
    let mut handle = store.handle().expect("memory");
    let mut recompressor = store.recompressor().expect("memory");
    store.age();
    let long = Duration::from_secs(60);
    let packed = recompressor.pass(0, 1, long, || Duration::ZERO);
    packed.expect("damage is not an error");
    let which = WriteBack {
        packed: Some(1),
        raw: Some(1),
    };
    handle.write_back(0, PAGES, which).expect("a disk");
    let file = store.memory_file().try_clone_to_owned();
    drop((handle, recompressor));
    drop(store);
    let settings = Settings {
        verify: true,
        ..settings
    };
    let (store, _) = Store::reopen(file.expect("a descriptor"), settings).expect("a store");
    let mut handle = store.handle().expect("memory");
    for page in [PACKED, RAW] {
        let read = handle.read(page, &mut [0; PAGE_BYTES]);
        assert!(
            matches!(read, Err(StoreError::Corrupt { .. })),
            "page {page}: {read:?}"
        );
    }
}

#[test]
fn memories_of_versions_1_and_2_are_read_and_upgraded() {
    let folder = tempfile::tempdir().expect("a directory");
    for share in [false, true] {
        let path = folder.path().join("pages");
        let store = filled(share, &path);
        let file = store.memory_file().try_clone_to_owned();
        let file: OwnedFd = file.expect("a descriptor");
        drop(store);
        // Those versions end behind the arena; their entries had no check, and the header another
        // number.
        let file = File::from(file);
        let len = file.metadata().expect("a size").len();
        file.set_len(len - 64 * 1024).expect("memory");
        let file = OwnedFd::from(file);
        for page in 0..PAGES {
            let entry = word(&file, entry_at(page));
            if entry >> 1 & 7 >= 4 {
                overwrite(
                    &file,
                    entry_at(page),
                    &(entry & ((1 << 53) - 1)).to_le_bytes(),
                );
            }
        }
        let mut header: Vec<u8> = (0..4)
            .flat_map(|at| word(&file, at * 8).to_le_bytes())
            .collect();
        header[8] = 1 + u8::from(share);
        let sum = crc32c(&header);
        header.extend(sum.to_le_bytes());
        overwrite(&file, 0, &header);
        let settings = Settings {
            backing: Some(BackingFile {
                path,
                pages: PAGES as u32,
            }),
            ..Settings::new(1, 1)
        };
        let (store, found) = Store::reopen(file, settings).expect("an old store");
        assert_eq!(found.damaged, 0);
        let mut handle = store.handle().expect("memory");
        for page in 0..PAGES {
            let mut bytes = [1; PAGE_BYTES];
            handle.read(page, &mut bytes).expect("whole");
            assert!(bytes == content(page), "page {page}");
        }
        assert_eq!(word(store.memory_file(), 8) as u32, 3 + u32::from(share));
    }
}

#[test]
fn a_large_store_takes_memory_for_the_part_of_its_index_that_is_used() {
    let store = Store::create(Settings::new(1 << 30, 1 << 20)).expect("memory");
    let mut handle = store.handle().expect("memory");
    for page in [0, 77_777_777, (1 << 30) - 1] {
        handle.write(page, &page_of(3)).expect("room");
    }
    store.age();
    store.compact(usize::MAX).expect("memory goes back");
    let stats = store.stats().expect("figures");
    assert_eq!((stats.stored_pages(), stats.empty), (3, (1 << 30) - 3));
    assert!(stats.resident_bytes < 1 << 20, "{stats:?}");
    let file = store.memory_file().try_clone_to_owned();
    drop(handle);
    drop(store);
    let file = file.expect("a descriptor");
    let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
    assert_eq!(found.pages, 3);
    assert!(store.check().expect("memory").is_empty());
    assert!(store.stats().expect("figures").resident_bytes < 1 << 20);
    let mut handle = store.handle().expect("memory");
    handle.discard_all().expect("no damage");
    assert_eq!(store.stats().expect("figures").stored_pages(), 0);
}

/// A page that is stored as it is.
fn noise(page: u64) -> Page {
    page_of(5 + 6 * page)
}

/// A store whose first pages are stored as they are, in the order of their numbers.
fn noisy(pages: u64, limit_bytes: u64) -> Store {
    let store = Store::create(Settings::new(PAGES, limit_bytes)).expect("memory");
    let mut handle = store.handle().expect("memory");
    for page in 0..pages {
        handle.write(page, &noise(page)).expect("room");
        let entry = word(store.memory_file(), entry_at(page));
        assert_eq!((entry >> 1 & 7, entry >> 39), (2, page));
    }
    drop(handle);
    store
}

/// Changes one bit of the entry of `page`, and returns the damaged entry.
fn flip(store: &Store, page: u64, bit: u32) -> u64 {
    let damaged = word(store.memory_file(), entry_at(page)) ^ 1 << bit;
    overwrite(store.memory_file(), entry_at(page), &damaged.to_le_bytes());
    damaged
}

fn assert_whole(store: &Store, pages: std::ops::Range<u64>) {
    let mut handle = store.handle().expect("memory");
    for page in pages {
        let mut bytes = [1; PAGE_BYTES];
        handle.read(page, &mut bytes).expect("whole");
        assert!(bytes == noise(page), "page {page}");
    }
}

/// Bit 39 is the lowest one of the place, so the slot of page 1 passes for that of page 0.
#[test]
fn a_page_whose_place_is_damaged_is_written_anew_and_frees_no_other_page() {
    let store = noisy(4, 1 << 20);
    flip(&store, 0, 39);
    let mut handle = store.handle().expect("memory");
    handle.write(0, &noise(0)).expect("room");
    handle.write(4, &noise(4)).expect("room");
    assert_whole(&store, 0..5);
}

#[test]
fn a_full_store_overwrites_no_other_page_for_one_whose_place_is_damaged() {
    let store = noisy(16, 64 << 10);
    flip(&store, 0, 39);
    let mut handle = store.handle().expect("memory");
    let refused = handle.write(0, &noise(20)).expect_err("no slot of its own");
    assert!(matches!(refused, StoreError::NoSpace { .. }), "{refused}");
    handle.write(15, &noise(15)).expect("it has a slot");
    assert_whole(&store, 1..16);
}

#[test]
fn a_page_whose_place_is_damaged_is_not_moved() {
    let store = noisy(20, 1 << 20);
    let mut handle = store.handle().expect("memory");
    // Page 16 and those behind it, which have a span of their own, fit here now.
    for page in 0..8 {
        handle.discard(page).expect("no damage");
    }
    let damaged = flip(&store, 16, 39);
    let done = store.compact(usize::MAX).expect("memory goes back");
    assert_eq!(done.moved, 3);
    assert_eq!(word(store.memory_file(), entry_at(16)), damaged);
    assert_whole(&store, 8..16);
    assert_whole(&store, 17..20);
}

#[test]
fn the_second_tier_passes_by_a_place_outside_the_arena() {
    let store = noisy(1, 1 << 20);
    flip(&store, 0, 62);
    store.age();
    let mut recompressor = store.recompressor().expect("memory");
    let long = Duration::from_secs(60);
    let done = recompressor.pass(0, 1, long, || Duration::ZERO);
    assert_eq!(done.expect("damage is not an error").damaged, 1);
}

#[test]
fn a_write_does_not_join_a_slot_whose_sum_is_damaged() {
    let settings = Settings {
        share: true,
        ..Settings::new(PAGES, 1 << 20)
    };
    let store = Store::create(settings).expect("memory");
    let mut handle = store.handle().expect("memory");
    handle.write(0, &page_of(3)).expect("room");
    let place = word(store.memory_file(), entry_at(0)) >> 20 & ((1 << 33) - 1);
    let at = 65536 + place as i64 * 16;
    let damaged = word(store.memory_file(), at) ^ 1;
    overwrite(store.memory_file(), at, &damaged.to_le_bytes());
    handle.write(1, &page_of(3)).expect("room");
    let mut bytes = [1; PAGE_BYTES];
    handle.read(1, &mut bytes).expect("whole");
    assert!(bytes == page_of(3));
    assert!(handle.read(0, &mut bytes).is_err());
}
