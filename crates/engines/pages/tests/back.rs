//! Pages that leave memory for a file, and what packs pages.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dyno_pages::check::page_of;
use dyno_pages::{
    Background, BackingFile, Damage, PAGE_BYTES, Schedule, Settings, Store, StoreError, Tiers,
    WriteBack,
};

const NOISE: u64 = 5;
const TEXT: u64 = 3;
const ALL: WriteBack = WriteBack {
    packed: Some(1),
    raw: Some(1),
};

fn settings(path: &Path, file_pages: u32) -> Settings {
    Settings {
        backing: Some(BackingFile {
            path: path.to_path_buf(),
            pages: file_pages,
        }),
        ..Settings::new(64, 1 << 20)
    }
}

/// Pages 0 to 9 are text, 10 to 19 noise.
fn filled(settings: Settings) -> Store {
    let store = Store::create(settings).expect("memory");
    let mut handle = store.handle().expect("memory");
    for page in 0..20 {
        handle.write(page, &content(page)).expect("room");
    }
    drop(handle);
    store
}

fn content(page: u64) -> [u8; PAGE_BYTES] {
    page_of(6 * page + if page < 10 { TEXT } else { NOISE })
}

fn all_there(store: &Store) {
    let mut handle = store.handle().expect("memory");
    let mut bytes = [0; PAGE_BYTES];
    for page in 0..20 {
        handle.read(page, &mut bytes).expect("whole");
        assert!(bytes == content(page), "page {page}");
    }
}

#[test]
fn idle_and_incompressible_pages_leave_memory_each_by_its_own_age() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = filled(settings(&folder.path().join("pages"), 64));
    let mut handle = store.handle().expect("memory");
    let raw_first = WriteBack {
        packed: Some(2),
        raw: Some(1),
    };
    let moved = |handle: &mut dyno_pages::Handle<'_>| {
        let done = handle.write_back(0, 100, raw_first).expect("a disk");
        assert_eq!(done.next_page, 0);
        done.pages
    };
    assert_eq!(moved(&mut handle), 0, "all were touched just now");
    store.age();
    assert_eq!(moved(&mut handle), 10, "noise");
    store.age();
    assert_eq!(moved(&mut handle), 10, "text");
    let stats = store.stats().expect("figures");
    assert_eq!((stats.file.pages, stats.slot_bytes), (20, 0));
    all_there(&store);
}

#[test]
fn a_call_moves_no_more_than_it_was_told_and_says_where_to_go_on() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = filled(settings(&folder.path().join("pages"), 15));
    store.age();
    let mut handle = store.handle().expect("memory");
    let first = handle.write_back(0, 5, ALL).expect("a disk");
    assert_eq!((first.pages, first.next_page), (5, 5));
    let rest = handle
        .write_back(first.next_page, 100, ALL)
        .expect("a disk");
    assert_eq!((rest.pages, rest.next_page), (10, 0), "the file is full");
    all_there(&store);
}

#[test]
fn a_damaged_page_of_the_file_is_refused_and_its_neighbours_are_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("pages");
    let store = filled(settings(&path, 64));
    store.age();
    let mut handle = store.handle().expect("memory");
    handle.write_back(0, 100, ALL).expect("a disk");
    let file = OpenOptions::new().write(true).open(&path).expect("there");
    // Places are taken in order: page 7 is the eighth.
    file.write_all_at(&[0xee], 7 * PAGE_BYTES as u64 + 100)
        .expect("room");
    file.sync_all().expect("a disk");
    let mut bytes = [0; PAGE_BYTES];
    let damaged = handle.read(7, &mut bytes);
    assert!(
        matches!(
            damaged,
            Err(StoreError::Corrupt {
                page: 7,
                what: Damage::Checksum { .. }
            })
        ),
        "{damaged:?}"
    );
    assert!(bytes == [0; PAGE_BYTES], "nothing wrong is handed out");
    handle.read(8, &mut bytes).expect("whole");
    handle
        .write(7, &content(7))
        .expect("written over it is well");
    all_there(&store);
}

#[test]
fn who_opens_the_memory_again_with_the_file_has_every_page() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("pages");
    let store = filled(settings(&path, 64));
    store.age();
    let mut handle = store.handle().expect("memory");
    handle.write_back(0, 13, ALL).expect("a disk");
    drop(handle);
    let held: OwnedFd = store.memory_file().try_clone_to_owned().expect("held");
    drop(store);
    let (store, found) = Store::reopen(held, settings(&path, 64)).expect("the store");
    assert_eq!((found.pages, found.damaged), (20, 0));
    all_there(&store);
    let held: OwnedFd = store.memory_file().try_clone_to_owned().expect("held");
    drop(store);
    // Without it, what is in the file is refused and the rest is there.
    let (_, found) = Store::reopen(held, Settings::new(1, 1)).expect("the store");
    assert_eq!((found.pages, found.damaged), (7, 13));
}

#[test]
fn the_background_writes_back_what_is_idle() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = Arc::new(filled(settings(&folder.path().join("pages"), 64)));
    let schedule = Schedule {
        age_every: Duration::from_millis(100),
        write_back: Some(ALL),
        ..Schedule::default()
    };
    let background = Background::start(Arc::clone(&store), schedule).expect("a thread");
    while store.stats().expect("figures").file.pages < 20 {
        std::thread::yield_now();
    }
    background.stop().expect("nothing failed");
    all_there(&store);
}

#[test]
fn each_choice_of_tiers_packs_as_it_says() {
    for (tiers, lz4, zstd) in [
        (Tiers::Lz4, 10, 0),
        (Tiers::Zstd, 0, 10),
        (Tiers::Lz4ThenZstd, 10, 0),
    ] {
        let store = filled(Settings {
            tiers,
            ..Settings::new(64, 1 << 20)
        });
        let stats = store.stats().expect("figures");
        assert_eq!(
            (stats.lz4.pages, stats.zstd.pages),
            (lz4, zstd),
            "{tiers:?}"
        );
        all_there(&store);
    }
    let level = Settings {
        level: 20,
        ..Settings::new(64, 1 << 20)
    };
    let refused = Store::create(level).expect_err("no such level").to_string();
    assert!(refused.contains("level 20"), "{refused}");
}
