//! The dictionary of idle pages: trained once, kept with the pages, and refused when it is damaged;
//! and pages that were taken for idle and are not.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_checksum::crc32c;
use dyno_pages::check::{page_of, page_of_length};
use dyno_pages::{Damage, PAGE_BYTES, Page, Recompressed, Settings, Store, StoreError};
use dyno_random::Random;

const PAGES: u64 = 4000;
const LIMIT_BYTES: u64 = 64 << 20;
/// Enough idle pages for a dictionary.
const IDLE: u64 = 1200;
/// Bytes behind the arena, with the head in front.
const DICTIONARY_BYTES: u64 = 64 * 1024;
const HEAD_BYTES: u64 = 8;

/// Strings of a vocabulary, each page in an order of its own: a page repeats little of itself and
/// much of the others. The strings are of sixteen letters, so that zstd alone beats LZ4.
fn text(number: u64) -> Page {
    let mut random = Random::new(number);
    let mut page = [0; PAGE_BYTES];
    for place in page.as_chunks_mut::<16>().0 {
        Random::new(random.bits() % 300).fill(place);
        place.iter_mut().for_each(|byte| *byte = b'a' + *byte % 16);
    }
    page
}

fn store(settings: Settings) -> Store {
    Store::create(settings).expect("memory")
}

fn filled(settings: Settings, contents: impl Fn(u64) -> Page) -> Store {
    let store = store(settings);
    let mut handle = store.handle().expect("memory");
    for page in 0..IDLE {
        handle.write(page, &contents(page)).expect("room");
    }
    drop(handle);
    store.age();
    store
}

fn settings() -> Settings {
    Settings::new(PAGES, LIMIT_BYTES)
}

fn trained(store: &Store) -> bool {
    let mut recompressor = store.recompressor().expect("memory");
    recompressor.train(1).expect("memory")
}

fn packed(store: &Store) -> Recompressed {
    let mut recompressor = store.recompressor().expect("memory");
    let endless = Duration::from_secs(1);
    let done = recompressor.pass(0, 1, endless, || Duration::ZERO);
    done.expect("no failure")
}

fn all_there(store: &Store, contents: impl Fn(u64) -> Page) {
    let mut handle = store.handle().expect("memory");
    let mut bytes = [1; PAGE_BYTES];
    for page in 0..IDLE {
        handle.read(page, &mut bytes).expect("whole");
        assert!(bytes == contents(page), "page {page}");
    }
    drop(handle);
    assert!(store.check().expect("memory").is_empty());
}

fn slot_bytes(store: &Store) -> u64 {
    store.stats().expect("figures").slot_bytes
}

/// The memory of a store whose process ends here.
fn left_by(store: Store) -> File {
    let file = store.memory_file().try_clone_to_owned();
    File::from(file.expect("a descriptor"))
}

/// A process that another test starts has this one's lock for the moment between its fork and its
/// exec, so a memory that is in use is tried again.
fn reopened(file: File) -> Store {
    let (store, found) = loop {
        let memory = file.try_clone().expect("a descriptor");
        match Store::reopen(memory.into(), Settings::new(1, 1)) {
            Err(StoreError::InUse) => thread::sleep(Duration::from_millis(5)),
            opened => break opened.expect("a store"),
        }
    };
    assert_eq!((found.pages, found.damaged), (IDLE, 0));
    store
}

fn dictionary_at(file: &File) -> u64 {
    file.metadata().expect("a size").len() - DICTIONARY_BYTES
}

/// The encoders are freed while nothing is packed. A page that was then packed without the
/// dictionary, and marked as packed with it, could not be read.
#[test]
fn what_is_packed_after_a_release_is_packed_with_the_dictionary_again() {
    let store = filled(settings(), text);
    let mut recompressor = store.recompressor().expect("memory");
    let mut pass = || {
        let done = recompressor.pass(0, 1, Duration::from_secs(1), || Duration::ZERO);
        let packed = done.expect("no failure").packed;
        recompressor.release();
        packed
    };
    assert!(trained(&store));
    assert_eq!(pass(), IDLE, "with the dictionary");
    let (first, others) = (slot_bytes(&store), 40);
    let mut handle = store.handle().expect("memory");
    for page in 0..others {
        handle.write(page, &text(page)).expect("room");
    }
    drop(handle);
    store.age();
    assert_eq!(pass(), others, "after the release");
    assert_eq!(slot_bytes(&store), first);
    all_there(&store, text);
}

#[test]
fn idle_pages_are_shorter_with_the_dictionary_and_it_outlives_the_process() {
    for share in [false, true] {
        let settings = || Settings {
            share,
            ..settings()
        };
        let alone = filled(settings(), text);
        assert_eq!(packed(&alone).packed, IDLE);
        let store = filled(settings(), text);
        assert!(trained(&store));
        assert!(!trained(&store), "there is one already");
        assert_eq!(packed(&store).packed, IDLE);
        let (with, without) = (slot_bytes(&store), slot_bytes(&alone));
        assert!(
            with < without / 10 * 9,
            "{with} bytes, {without} without it"
        );
        assert_eq!(store.stats().expect("figures").zstd.pages, IDLE);
        all_there(&store, text);
        let store = reopened(left_by(store));
        all_there(&store, text);
        assert!(!trained(&store), "it is still there");
    }
}

#[test]
fn pages_packed_before_the_dictionary_was_there_are_packed_again() {
    let store = filled(settings(), text);
    assert_eq!(packed(&store).packed, IDLE);
    let before = slot_bytes(&store);
    assert!(trained(&store));
    let again = packed(&store);
    assert_eq!(again.packed + again.stubborn, IDLE);
    assert_eq!(before - slot_bytes(&store), again.won_bytes);
    assert!(again.won_bytes > before / 10, "{again:?} of {before}");
    assert_eq!(packed(&store), Recompressed::default(), "once");
    all_there(&store, text);
}

#[test]
fn a_store_with_few_idle_pages_or_with_pages_that_share_nothing_trains_none() {
    let few = store(settings());
    let mut handle = few.handle().expect("memory");
    for page in 0..1000 {
        handle.write(page, &text(page)).expect("room");
    }
    few.age();
    assert!(!trained(&few));
    // Half noise and half zeros: a codec halves such a page, and a dictionary wins nothing.
    let unlike = |page| page_of_length(page, PAGE_BYTES / 2);
    let store = filled(settings(), unlike);
    assert!(!trained(&store));
    assert!(packed(&store).packed + packed(&store).stubborn <= IDLE);
    all_there(&store, unlike);
}

#[test]
fn a_damaged_dictionary_refuses_the_pages_packed_with_it_and_no_others() {
    let store = filled(settings(), text);
    assert!(trained(&store));
    assert_eq!(packed(&store).packed, IDLE);
    let mut handle = store.handle().expect("memory");
    handle.write(7, &text(7)).expect("room");
    drop(handle);
    let file = left_by(store);
    let at = dictionary_at(&file) + HEAD_BYTES + 1000;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("memory");
    file.write_all_at(&[byte[0] ^ 4], at).expect("memory");
    let store = reopened(file);
    let mut handle = store.handle().expect("memory");
    let mut bytes = [1; PAGE_BYTES];
    handle.read(7, &mut bytes).expect("packed by LZ4");
    assert!(bytes == text(7));
    let error = handle.read(8, &mut bytes).expect_err("no dictionary");
    let StoreError::Corrupt { page: 8, what } = &error else {
        panic!("{error}");
    };
    assert_eq!(*what, Damage::Dictionary);
    assert_eq!(bytes, [0; PAGE_BYTES]);
    assert!(!trained(&store), "none takes its place: pages refer to it");
    assert_eq!(store.check().expect("memory").len() as u64, IDLE - 1);
    // The store goes on, and packs without one.
    for page in 0..IDLE {
        handle.write(page, &text(page)).expect("room");
    }
    store.age();
    assert_eq!(packed(&store).packed, IDLE);
    all_there(&store, text);
}

/// A process that is killed while it writes the dictionary has not set its head.
#[test]
fn bytes_without_a_head_are_no_dictionary() {
    let file = left_by(filled(settings(), text));
    let at = dictionary_at(&file) + HEAD_BYTES;
    file.write_all_at(&[0xa5; 5000], at).expect("memory");
    let store = reopened(file);
    assert!(trained(&store), "another one is made");
    assert_eq!(packed(&store).packed, IDLE);
    all_there(&reopened(left_by(store)), text);
}

#[test]
fn memories_of_versions_3_and_4_are_read_and_have_no_dictionary() {
    for share in [false, true] {
        let file = left_by(filled(
            Settings {
                share,
                ..settings()
            },
            text,
        ));
        // Those versions end behind the arena, and have another number.
        file.set_len(dictionary_at(&file)).expect("memory");
        let mut header = [0; 32];
        file.read_exact_at(&mut header, 0).expect("memory");
        header[8] = 3 + u8::from(share);
        file.write_all_at(&header, 0).expect("memory");
        let sum = crc32c(&header).to_le_bytes();
        file.write_all_at(&sum, 32).expect("memory");
        let store = reopened(file);
        assert!(!trained(&store), "there is no room for one");
        assert_eq!(packed(&store).packed, IDLE);
        all_there(&reopened(left_by(store)), text);
    }
}

/// Tells a child process the path of the memory that it works on.
const VARIABLE: &str = "DYNO_PAGES_DICTIONARY_JOB";

/// Not a test of its own: what a process does until it is killed.
#[test]
fn child() {
    let Ok(path) = std::env::var(VARIABLE) else {
        return;
    };
    let file = File::options().read(true).write(true).open(path);
    let store = reopened(file.expect("the memory"));
    trained(&store);
    packed(&store);
    loop {
        all_there(&store, text);
        packed(&store);
        store.age();
    }
}

#[test]
fn a_process_killed_while_it_trains_or_packs_leaves_every_page() {
    let start = Instant::now();
    let store = filled(settings(), text);
    assert!(trained(&store));
    packed(&store);
    let once = start.elapsed();
    let mut with_dictionary = 0;
    // From before the training to after the packing, however long they take here.
    for kill in 1..=10 {
        let file = left_by(filled(settings(), text));
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child"])
            .env(VARIABLE, path)
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        thread::sleep(once * kill / 5);
        child.kill().expect("it does not end by itself");
        child.wait().expect("it is dead");
        let store = reopened(file);
        all_there(&store, text);
        store.age();
        with_dictionary += u32::from(!trained(&store));
        packed(&store);
        all_there(&store, text);
    }
    assert!(with_dictionary > 0, "no process lived long enough to train");
}

/// Reads a page and returns what LZ4 packs after the next pass of the second tier.
fn lz4_pages_after_reads(store: &Store, page: u64, reads: u32) -> u64 {
    let mut handle = store.handle().expect("memory");
    for _ in 0..reads {
        handle.read(page, &mut [0; PAGE_BYTES]).expect("whole");
    }
    packed(store);
    store.stats().expect("figures").lz4.pages
}

#[test]
fn a_page_that_is_read_twice_goes_back_to_the_first_tier() {
    let store = filled(settings(), text);
    assert!(trained(&store));
    assert_eq!(packed(&store).packed, IDLE);
    assert_eq!(lz4_pages_after_reads(&store, 3, 1), 0, "once may be chance");
    assert_eq!(lz4_pages_after_reads(&store, 3, 1), 1);
    assert_eq!(lz4_pages_after_reads(&store, 3, 5), 1);
    // A pass of ageing between two reads means that they lie far apart.
    assert_eq!(lz4_pages_after_reads(&store, 4, 1), 1);
    store.age();
    assert_eq!(lz4_pages_after_reads(&store, 4, 1), 0, "3 is idle again");
    for _ in 0..2 {
        all_there(&store, text);
    }
    assert_eq!(packed(&store).unpacked, 1024, "as many as are remembered");
    all_there(&store, text);
}

#[test]
fn pages_stay_packed_while_memory_is_short() {
    let store = filled(Settings::new(PAGES, 8 << 20), text);
    assert_eq!(packed(&store).packed, IDLE);
    let mut handle = store.handle().expect("memory");
    let noise = IDLE..IDLE + 1300;
    for page in noise.clone() {
        handle.write(page, &page_of(5 + 6 * page)).expect("room");
    }
    let read_all = || {
        for _ in 0..2 {
            all_there(&store, text);
        }
    };
    read_all();
    assert_eq!(packed(&store).unpacked, 0);
    for page in noise {
        handle.discard(page).expect("in range");
    }
    read_all();
    assert_eq!(packed(&store).unpacked, 1024, "as many as are remembered");
    all_there(&store, text);
}
