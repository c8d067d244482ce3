//! A region against a vector: by one thread, by several on their own parts and on the same words,
//! and by system calls. Has `unsafe`: bytes as atomic words.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_region::{Access, Region, RegionError};

const PAGES: u64 = 600;

fn store(pages: u64, limit_bytes: u64) -> Arc<Store> {
    Arc::new(Store::create(Settings::new(pages, limit_bytes)).expect("memory"))
}

/// A region, or the word that this machine has none.
fn region(store: Arc<Store>, resident: u64) -> Option<Region> {
    match Region::new(store, resident) {
        Err(error @ (RegionError::NotAllowed { .. } | RegionError::NotSupported { .. })) => {
            println!("skipped: memory region: {error}");
            None
        }
        made => Some(made.expect("memory")),
    }
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Writes and reads runs of bytes at random, in a slice and its model.
fn exercise(slice: &mut [u8], model: &mut [u8], seed: u64, steps: usize) {
    let mut draws = Draws(seed | 1);
    for step in 0..steps {
        let at = draws.below(slice.len());
        let end = (at + 1 + draws.below(3000)).min(slice.len());
        match draws.below(5) {
            0 => {
                slice[at..end].fill(step as u8);
                model[at..end].fill(step as u8);
            }
            1 => {
                for byte in at..end {
                    let value = draws.below(256) as u8;
                    slice[byte] = value;
                    model[byte] = value;
                }
            }
            _ => assert!(slice[at..end] == model[at..end], "step {step}"),
        }
    }
    assert!(slice == model);
}

#[test]
fn it_is_a_slice_of_which_few_pages_are_in_memory() {
    let store = store(PAGES, 8 << 20);
    let Some(mut region) = region(Arc::clone(&store), 8) else {
        return;
    };
    let mut model = vec![0; region.len()];
    exercise(&mut region, &mut model, 5, 3000);
    let figures = region.figures();
    assert!(figures.resident_pages <= 8, "{figures:?}");
    assert!(figures.packed > 100 && figures.dropped > 100, "{figures:?}");
    region.store_all().expect("space");
    drop(region);
    let mut handle = store.handle().expect("memory");
    let mut page = [9; PAGE_BYTES];
    for (number, expected) in model.chunks(PAGE_BYTES).enumerate() {
        handle.read(number as u64, &mut page).expect("whole");
        assert!(page == expected, "page {number}");
    }
}

#[test]
fn threads_have_their_parts() {
    let Some(mut region) = region(store(PAGES, 8 << 20), 24) else {
        return;
    };
    let mut model = vec![0; region.len()];
    // Parts begin within pages, so that threads share some.
    let part = region.len() / 4 + 1000;
    std::thread::scope(|scope| {
        for (seed, (mine, model)) in region
            .chunks_mut(part)
            .zip(model.chunks_mut(part))
            .enumerate()
        {
            scope.spawn(move || exercise(mine, model, 77 + seed as u64, 1500));
        }
    });
    assert!(*region == model);
    assert!(region.figures().resident_pages <= 24);
}

#[test]
fn no_addition_is_lost_while_pages_come_and_go() {
    const THREADS: u64 = 4;
    const ADDITIONS: u64 = 4000;
    let Some(mut region) = region(store(64, 1 << 20), 8) else {
        return;
    };
    // SAFETY: any bytes are an atomic word, and the borrow is the only one.
    let (before, words, _) = unsafe { region.align_to_mut::<AtomicU64>() };
    assert!(before.is_empty(), "a region begins with a page");
    let words: Vec<&AtomicU64> = words.iter().step_by(PAGE_BYTES / 16).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let words = &words;
            scope.spawn(move || {
                let mut draws = Draws(thread * 1234 + 1);
                for _ in 0..ADDITIONS {
                    words[draws.below(words.len())].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, THREADS * ADDITIONS);
}

#[test]
fn system_calls_touch_it_too() {
    let Some(mut region) = region(store(256, 4 << 20), 16) else {
        return;
    };
    if region.access() == Access::ProgramOnly {
        return println!(
            "skipped: memory region in system calls: only the program may touch it here"
        );
    }
    let mut draws = Draws(3);
    let bytes: Vec<u8> = (0..region.len())
        .map(|at| (at / 999 + draws.below(9)) as u8)
        .collect();
    let mut file = a_file();
    file.write_all(&bytes).expect("space");
    file.rewind().expect("a file");
    file.read_exact(&mut region)
        .expect("the system writes into it");
    assert!(*region == bytes);
    let mut copy = a_file();
    copy.write_all(&region).expect("the system reads from it");
    copy.rewind().expect("a file");
    let mut back = Vec::new();
    copy.read_to_end(&mut back).expect("a file");
    assert!(back == bytes);
}

#[test]
fn direct_reads_into_it_lose_nothing_while_pages_come_and_go() {
    const BYTES: usize = 4 << 20;
    let Some(mut region) = region(store(BYTES as u64 / 4096, 16 << 20), 16) else {
        return;
    };
    if region.access() != Access::Everybody {
        return println!(
            "skipped: direct I/O into a region: Linux 6.8 and CAP_SYS_PTRACE are needed"
        );
    }
    let mut draws = Draws(11);
    let bytes: Vec<u8> = (0..BYTES).map(|_| draws.below(256) as u8).collect();
    // Below the build's own directory, as a file in memory has no direct I/O.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = folder.path().join("file");
    std::fs::write(&path, &bytes).expect("space");
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let Ok(file) = direct else {
        return println!("skipped: direct I/O into a region: the file system has none");
    };
    // One call pins up to so many pages at once, far more than stay in memory.
    for piece in [64 << 10, 256 << 10, 1 << 20] {
        region.fill(0);
        for (number, part) in region.chunks_mut(piece).enumerate() {
            file.read_exact_at(part, (number * piece) as u64)
                .expect("a disk");
        }
        let wrong = region.chunks(4096).zip(bytes.chunks(4096));
        let wrong = wrong.filter(|(page, expected)| page != expected).count();
        assert_eq!(wrong, 0, "pages wrong after reads of {piece} bytes");
    }
    // Several at once into neighbouring parts, while what changed is stored in between.
    region.fill(0);
    std::thread::scope(|scope| {
        for (number, part) in region.chunks_mut(BYTES / 4).enumerate() {
            let file = &file;
            scope.spawn(move || {
                for (step, part) in part.chunks_mut(128 << 10).enumerate() {
                    let at = number * (BYTES / 4) + step * (128 << 10);
                    file.read_exact_at(part, at as u64).expect("a disk");
                }
            });
        }
    });
    region.store_all().expect("space");
    assert!(*region == bytes);
    let figures = region.figures();
    assert!(figures.pinned > 0 && figures.packed > 1000, "{figures:?}");
    // The pages that had to stay leave again when others come.
    let sum: u64 = region
        .iter()
        .step_by(4096)
        .map(|&byte| u64::from(byte))
        .sum();
    assert!(sum > 0 && region.figures().resident_pages <= 16);
}

fn a_file() -> File {
    tempfile::tempfile().expect("a file")
}

#[test]
fn pages_that_the_store_has_no_space_for_stay_in_memory() {
    let Some(mut region) = region(store(256, 256 << 10), 8) else {
        return;
    };
    let mut draws = Draws(9);
    let noise: Vec<u8> = (0..region.len()).map(|_| draws.below(256) as u8).collect();
    region.copy_from_slice(&noise);
    assert!(*region == noise);
    let figures = region.figures();
    assert!(
        figures.refused > 0 && figures.resident_pages > 8,
        "{figures:?}"
    );
    assert!(region.store_all().is_err());
    // What can be packed makes place again.
    region.fill(0);
    assert!(region.iter().all(|&byte| byte == 0));
    region.store_all().expect("space");
}

#[test]
fn too_few_pages_are_refused() {
    let made = Region::new(store(64, 1 << 20), 7);
    assert!(
        matches!(made, Err(RegionError::TooFew { pages: 7 })),
        "{made:?}"
    );
}
