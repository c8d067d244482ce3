//! A disk against a vector of bytes, and its writers against each other.

use std::sync::Arc;

use dyno_pages::{PAGE_BYTES, Settings, Store, StoreError};
use dyno_pages_disk::{Disk, Zeros};
use proptest::prelude::*;

const PAGES: u64 = 40;
const BYTES: usize = PAGES as usize * PAGE_BYTES;

fn disk() -> Disk {
    Disk::new(Arc::new(
        Store::create(Settings::new(PAGES, 1 << 20)).expect("memory"),
    ))
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize, u8),
    Zero(usize, usize, bool),
    Read(usize, usize),
}

/// Offsets near page boundaries, and anywhere.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..BYTES,
        (0..PAGES as usize, 0..3usize)
            .prop_map(|(page, near)| (page * PAGE_BYTES + near).saturating_sub(1)),
    ]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..3 * PAGE_BYTES,
        0..40usize,
        (0..38usize).prop_map(|pages| pages * PAGE_BYTES),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (place(), length(), any::<u8>()).prop_map(|(at, len, seed)| Step::Write(at, len, seed)),
        (place(), length(), any::<bool>()).prop_map(|(at, len, keep)| Step::Zero(at, len, keep)),
        (place(), length()).prop_map(|(at, len)| Step::Read(at, len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_is_a_vector_of_bytes(steps in proptest::collection::vec(step(), 1..60)) {
        let disk = disk();
        let mut head = disk.head().expect("memory");
        let mut model = vec![0u8; BYTES];
        for step in steps {
            match step {
                Step::Write(at, len, seed) => {
                    let end = (at + len).min(BYTES);
                    let bytes: Vec<u8> = (at..end)
                        .map(|at| (at as u32).wrapping_mul(2_654_435_761) as u8 ^ seed)
                        .collect();
                    head.write(at as u64, &bytes).expect("space");
                    model[at..end].copy_from_slice(&bytes);
                }
                Step::Zero(at, len, keep) => {
                    let end = (at + len).min(BYTES);
                    let zeros = if keep { Zeros::Keep } else { Zeros::Free };
                    head.zero(at as u64, (end - at) as u64, zeros).expect("space");
                    model[at..end].fill(0);
                }
                Step::Read(at, len) => {
                    let end = (at + len).min(BYTES);
                    let mut bytes = vec![9; end - at];
                    head.read(at as u64, &mut bytes).expect("whole");
                    prop_assert!(bytes == model[at..end]);
                }
            }
        }
        let mut all = vec![9; BYTES];
        head.read(0, &mut all).expect("whole");
        prop_assert!(all == model);
    }
}

#[test]
fn what_lies_beyond_the_end_is_refused_whole() {
    let disk = disk();
    let mut head = disk.head().expect("memory");
    let end = disk.bytes();
    for (at, len) in [
        (end, 1),
        (end - 1, 2),
        (u64::MAX, 1),
        (u64::MAX - 1, 4096),
        (end + 4096, 0),
    ] {
        let wrong = |done: Result<(), StoreError>| {
            assert!(
                matches!(done, Err(StoreError::OutOfRange { .. })),
                "{at} {len}: {done:?}"
            );
        };
        wrong(head.read(at, &mut vec![0; len as usize]));
        wrong(head.write(at, &vec![1; len as usize]));
        wrong(head.zero(at, len, Zeros::Free));
    }
    let mut last = [9];
    head.read(end - 1, &mut last).expect("it is there");
    assert_eq!(last, [0], "nothing was written by halves");
}

#[test]
fn writers_of_neighbouring_sectors_lose_nothing() {
    const SECTOR: usize = 512;
    let disk = disk();
    std::thread::scope(|scope| {
        for writer in 0..4usize {
            let disk = &disk;
            scope.spawn(move || {
                let mut head = disk.head().expect("memory");
                for round in 1..=20u8 {
                    for sector in (writer..BYTES / SECTOR).step_by(4) {
                        let at = (sector * SECTOR) as u64;
                        head.write(at, &[round; SECTOR]).expect("space");
                        let mut back = [0; SECTOR];
                        head.read(at, &mut back).expect("whole");
                        assert_eq!(back, [round; SECTOR], "sector {sector}");
                    }
                }
            });
        }
    });
    let mut all = vec![0; BYTES];
    disk.head()
        .expect("memory")
        .read(0, &mut all)
        .expect("whole");
    assert!(all.iter().all(|&byte| byte == 20));
}

#[test]
fn a_disk_counts_what_it_is_asked_for_and_a_null_one_keeps_nothing() {
    use std::sync::atomic::Ordering::Relaxed;
    let store = || Arc::new(Store::create(Settings::new(8, 1 << 20)).expect("memory"));
    for null in [false, true] {
        let disk = if null {
            Disk::null(store())
        } else {
            Disk::new(store())
        };
        let mut head = disk.head().expect("memory");
        head.write(4000, &[7; 200]).expect("inside");
        let mut bytes = [1; 100];
        head.read(4050, &mut bytes).expect("inside");
        assert_eq!(bytes, if null { [1; 100] } else { [7; 100] });
        assert!(head.read(8 * 4096, &mut bytes).is_err());
        head.zero(0, 8192, Zeros::Free).expect("inside");
        let figures = disk.figures();
        let counts = [
            &figures.reads,
            &figures.read_bytes,
            &figures.writes,
            &figures.written_bytes,
        ];
        assert_eq!(counts.map(|count| count.load(Relaxed)), [2, 200, 1, 200]);
        assert_eq!(disk.store().stats().expect("figures").stored_pages(), 0);
    }
}

#[test]
fn to_free_a_large_disk_takes_no_memory_for_pages_that_were_never_written() {
    let store = Store::create(Settings::new(1 << 24, 1 << 20)).expect("memory");
    let disk = Disk::new(Arc::new(store));
    let mut head = disk.head().expect("memory");
    for at in [0, disk.bytes() / 2 + 4000, disk.bytes() - 4096] {
        head.write(at, &[7; 4096]).expect("space");
    }
    head.zero(0, disk.bytes(), Zeros::Free).expect("inside");
    let stats = disk.store().stats().expect("figures");
    assert_eq!(stats.stored_pages(), 0);
    assert!(stats.resident_bytes < 1 << 20, "{stats:?}");
}
