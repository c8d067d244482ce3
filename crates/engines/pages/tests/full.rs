//! A store at its limit: what it still takes, and what it does for that.

use std::sync::Arc;

use dyno_pages::check::page_of;
use dyno_pages::{BackingFile, PAGE_BYTES, Page, Settings, Store, StoreError};

fn noise(page: u64) -> Page {
    page_of(5 + 6 * page)
}

fn text(page: u64) -> Page {
    page_of(3 + 6 * page)
}

/// Writes noise until there is no room; how many pages that were.
fn fill(store: &Store) -> u64 {
    let mut handle = store.handle().expect("memory");
    let full = (0..store.pages()).find(|&page| match handle.write(page, &noise(page)) {
        Ok(()) => false,
        Err(StoreError::NoSpace { .. }) => true,
        Err(other) => panic!("{other}"),
    });
    full.expect("it has a limit")
}

fn holds(store: &Store, content: impl Fn(u64) -> Page, pages: impl Iterator<Item = u64>) {
    let mut handle = store.handle().expect("memory");
    for page in pages {
        let mut bytes = [1; PAGE_BYTES];
        handle.read(page, &mut bytes).expect("whole");
        assert!(bytes == content(page), "page {page}");
    }
}

#[test]
fn a_full_store_overwrites_the_pages_that_it_has() {
    for share in [false, true] {
        let settings = Settings {
            share,
            ..Settings::new(1000, 1 << 20)
        };
        let store = Store::create(settings).expect("memory");
        let stored = fill(&store);
        assert_eq!(stored, 256, "sixteen spans of sixteen whole pages");
        let refused = store.stats().expect("figures").refused;
        let other = |page: u64| {
            if page.is_multiple_of(2) {
                noise(page + 5000)
            } else {
                text(page)
            }
        };
        // From several threads, more than there are slots in the reserve.
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    let mut handle = store.handle().expect("memory");
                    for page in (thread..stored).step_by(4) {
                        handle.write(page, &other(page)).expect("it has a slot");
                    }
                });
            }
        });
        holds(&store, other, 0..stored);
        let file = store
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor");
        assert_eq!(store.stats().expect("figures").refused, refused);
        drop(store);
        let (store, found) = Store::reopen(file, Settings::new(1, 1)).expect("a store");
        assert_eq!((found.pages, found.damaged), (stored, 0));
        assert!(store.check().expect("memory").is_empty());
    }
}

#[test]
fn a_form_that_is_longer_than_its_slot_is_refused_when_there_is_no_other() {
    let store = Store::create(Settings::new(1000, 64 << 10)).expect("memory");
    let mut handle = store.handle().expect("memory");
    // One span of short slots.
    let short: Page = std::array::from_fn(|at| (at % 8) as u8);
    handle.write(0, &short).expect("room");
    let refused = handle
        .write(0, &noise(0))
        .expect_err("a whole page is longer");
    assert_eq!(refused.errno(), libc::ENOSPC);
    holds(&store, |_| short, 0..1);
    assert_eq!(store.stats().expect("figures").refused, 1);
}

#[test]
fn pages_that_share_a_slot_keep_it_when_one_of_them_is_overwritten_in_a_full_store() {
    let settings = Settings {
        share: true,
        ..Settings::new(1000, 1 << 20)
    };
    let store = Store::create(settings).expect("memory");
    let mut handle = store.handle().expect("memory");
    let shared = noise(7777);
    for page in 500..503 {
        handle.write(page, &shared).expect("room");
    }
    let stored = fill(&store);
    assert!(
        handle.write(501, &noise(1)).is_ok(),
        "that page is there already"
    );
    assert!(
        handle.write(500, &noise(9999)).is_err(),
        "its slot is another's too"
    );
    holds(&store, |_| shared, [500, 502].into_iter());
    holds(&store, |_| noise(1), 501..502);
    handle.discard(502).expect("in range");
    handle
        .write(500, &noise(9999))
        .expect("its slot is its own now");
    holds(&store, |_| noise(9999), 500..501);
    holds(&store, noise, 0..stored);
}

#[test]
fn a_write_moves_pages_together_before_it_is_refused() {
    let store = Store::create(Settings::new(20_000, 4 << 20)).expect("memory");
    let mut handle = store.handle().expect("memory");
    let full = (0..20_000).find(|&page| handle.write(page, &text(page)).is_err());
    let full = full.expect("it has a limit");
    // Every span keeps a page.
    let kept = |page: u64| page.is_multiple_of(40);
    for page in (0..full).filter(|&page| !kept(page)) {
        handle.discard(page).expect("in range");
    }
    let used = store.stats().expect("figures").slot_bytes;
    let room = ((4 << 20) - used) / PAGE_BYTES as u64;
    let again = (10_000..20_000).take_while(|&page| handle.write(page, &noise(page)).is_ok());
    let again = again.count() as u64;
    // Some spans are not full, one of each class.
    assert!(again > room * 8 / 10, "{again} of {room} pages fit");
    holds(&store, text, (0..full).filter(|&page| kept(page)));
    holds(&store, noise, 10_000..10_000 + again);
    let before = store.stats().expect("figures").refused;
    assert!(handle.write(19_999, &noise(1)).is_err());
    assert_eq!(store.stats().expect("figures").refused, before + 1);
}

#[test]
fn a_write_makes_room_by_writing_back_while_the_file_has_some() {
    let folder = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        backing: Some(BackingFile {
            path: folder.path().join("pages"),
            pages: 3000,
        }),
        ..Settings::new(8000, 1 << 20)
    };
    let store = Arc::new(Store::create(settings).expect("memory"));
    let stored = fill(&store);
    assert_eq!(stored, 3000 + 256, "all that the file and the memory hold");
    assert_eq!(store.stats().expect("figures").file.pages, 3000);
    holds(&store, noise, 0..stored);
    let mut handle = store.handle().expect("memory");
    // A page that is in the file has no slot to be overwritten in.
    let refused = handle.write(9, &noise(1 << 20)).expect_err("both are full");
    assert_eq!(refused.errno(), libc::ENOSPC);
    holds(&store, noise, 9..10);
}

#[test]
fn blocks_of_the_file_that_no_page_has_go_back_to_the_file_system() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("pages");
    let settings = Settings {
        backing: Some(BackingFile {
            path: path.clone(),
            pages: 3000,
        }),
        ..Settings::new(8000, 1 << 20)
    };
    let store = Store::create(settings).expect("memory");
    let stored = fill(&store);
    let blocks = || std::fs::metadata(&path).expect("a file").blocks() * 512;
    let full = blocks();
    let mut handle = store.handle().expect("memory");
    for page in (0..stored).filter(|page| !page.is_multiple_of(100)) {
        handle.discard(page).expect("in range");
    }
    store.compact(usize::MAX).expect("memory goes back");
    if blocks() == full {
        println!("skipped: holes in a file: the file system has none");
        return;
    }
    assert!(blocks() < full / 20, "{} of {full}", blocks());
    holds(&store, noise, (0..stored).step_by(100));
}

/// Prints how fast a store is at how much of its limit; `--nocapture` shows it.
#[test]
#[ignore = "a measurement: cargo test --release -p dyno-pages --test full -- --ignored --nocapture"]
fn rates_against_fill() {
    const LIMIT: u64 = 64 << 20;
    const CALLS: u64 = 30_000;
    println!("used  write/s  read/s  refused");
    for percent in [10, 50, 80, 90, 95, 98, 99, 100] {
        let store = Store::create(Settings::new(200_000, LIMIT)).expect("memory");
        let mut handle = store.handle().expect("memory");
        let pages: Vec<Page> = (0..4096).map(page_of).collect();
        let page = |number: u64| &pages[(number % 4096) as usize];
        let mut stored = 0;
        loop {
            let used = store.stats().expect("figures").slot_bytes;
            if used * 100 >= LIMIT * percent {
                break;
            }
            let some = ((LIMIT * percent / 100 - used) / 4096).clamp(1, 2000);
            let full = (0..some).any(|at| handle.write(stored + at, page(stored + at)).is_err());
            stored += some;
            if full {
                break;
            }
        }
        let mut bytes = [0; PAGE_BYTES];
        let number = |call: u64| call.wrapping_mul(0x9e37_79b9_7f4a_7c15) % stored;
        let began = std::time::Instant::now();
        for call in 0..CALLS {
            handle.read(number(call), &mut bytes).expect("whole");
        }
        let read = CALLS as f64 / began.elapsed().as_secs_f64();
        let began = std::time::Instant::now();
        let mut refused = 0;
        for call in 0..CALLS {
            // Other bytes than before, as often shorter as longer.
            let done = handle.write(number(call), page(number(call) + call));
            refused += u64::from(done.is_err());
        }
        let write = CALLS as f64 / began.elapsed().as_secs_f64();
        let used = store.stats().expect("figures").slot_bytes as f64 * 100.0 / LIMIT as f64;
        println!("{used:4.1}%  {write:7.0}  {read:6.0}  {refused}");
    }
}
