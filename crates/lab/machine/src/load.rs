//! Loads that can be run beside a measurement: they keep one part of the machine busy until they
//! are stopped, and compute nothing that anybody wants.

use std::fs::{self, OpenOptions};
use std::hint::{black_box, spin_loop};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dyno_random::Random;

use crate::error::MachineError;
use crate::facts::{cpu, memory};
use crate::root::Root;
use crate::usage::kill_own_group;

/// A part of the machine to keep busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltInLoad {
    /// Every logical processor, by threads that spin.
    Cpu,
    /// The way to memory, by one thread that copies between arrays larger than the caches. One
    /// thread leaves the other processors to the measured program.
    Memory,
    /// The disk, by writes of 1 MiB that are each made durable.
    Disk,
}

/// Bytes that are written between two looks at the stop flag.
const WRITE_BYTES: usize = 1 << 20;
/// The load on the disk starts again at the beginning of its file after so many bytes, so that it
/// never fills the disk.
const FILE_BYTES: u64 = 256 << 20;
/// A copy is interrupted after so many numbers to look at the stop flag.
const COPY_WORDS: usize = 1 << 20;
/// How often a load looks whether the program that started it is still there.
const PARENT_EVERY: Duration = Duration::from_millis(500);

impl BuiltInLoad {
    /// All loads, in the order in which help texts name them.
    pub const ALL: [BuiltInLoad; 3] = [Self::Cpu, Self::Memory, Self::Disk];

    /// The load that the command line calls `name`.
    pub fn named(name: &str) -> Option<BuiltInLoad> {
        Self::ALL.into_iter().find(|load| load.name() == name)
    }

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// Loads the machine until `stop` becomes true. The load on the disk writes a file in `dir`,
    /// and removes it at the stop; when it is killed, its parent removes the directory.
    ///
    /// # Errors
    /// [`MachineError::Load`] when the disk refuses a write.
    pub fn run(self, root: &Root, dir: &Path, stop: &AtomicBool) -> Result<(), MachineError> {
        match self {
            Self::Cpu => {
                let threads = cpu::logical(root).unwrap_or(1);
                spin(threads, stop);
                Ok(())
            }
            Self::Memory => {
                copy(array_words(root), stop);
                Ok(())
            }
            Self::Disk => write(dir, stop).map_err(|source| MachineError::Load {
                load: self.name(),
                source,
            }),
        }
    }
}

fn spin(threads: usize, stop: &AtomicBool) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut count = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    // Arithmetic that the compiler must do: a loop of pauses alone would leave
                    // most of a core to its other hardware thread.
                    for _ in 0..1_000 {
                        count = black_box(count.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1);
                    }
                    spin_loop();
                }
            });
        }
    });
}

/// Numbers in one array: four times the last cache and at least 256 MiB, so that no copy finds its
/// lines there, but no more than an eighth of the memory, so that the load makes no program swap.
fn array_words(root: &Root) -> usize {
    let cache_bytes = cpu::last_level_cache_bytes(root).unwrap_or(0);
    let wanted_bytes = (4 * cache_bytes).max(256 << 20);
    let memory_bytes = memory::total_bytes(root).unwrap_or(u64::MAX);
    (wanted_bytes.min(memory_bytes / 8) / 8) as usize
}

fn copy(words: usize, stop: &AtomicBool) {
    // Numbers that differ: the kernel may give equal pages, or pages of zeros, one place in memory,
    // and a copy of those would stay in a cache.
    let mut from: Vec<u64> = (0..words as u64).collect();
    let mut to = vec![1u64; words];
    while !stop.load(Ordering::Relaxed) {
        for (to, from) in to.chunks_mut(COPY_WORDS).zip(from.chunks(COPY_WORDS)) {
            black_box(&mut *to).copy_from_slice(black_box(from));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
}

fn write(dir: &Path, stop: &AtomicBool) -> io::Result<()> {
    let path = dir.join("load");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)?;
    // Bytes that no disk or file system compresses away.
    let mut block = vec![0; WRITE_BYTES];
    Random::new(1).fill(&mut block);
    let mut written: u64 = 0;
    while !stop.load(Ordering::Relaxed) {
        if written >= FILE_BYTES {
            file.seek(SeekFrom::Start(0))?;
            written = 0;
        }
        file.write_all(&block)?;
        file.sync_data()?;
        written += block.len() as u64;
    }
    drop(file);
    fs::remove_file(&path)
}

/// From now on the whole process group of this process is killed once the program that started it
/// is gone: that program ends its loads, unless it is killed itself, and a load that is never ended
/// would run for ever.
pub fn end_with_parent() {
    let parent = parent_id();
    thread::spawn(move || {
        // A process whose parent ends gets another one.
        while parent_id() == parent {
            thread::sleep(PARENT_EVERY);
        }
        kill_own_group();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_has_a_name_of_its_own() {
        for load in BuiltInLoad::ALL {
            assert_eq!(BuiltInLoad::named(load.name()), Some(load));
        }
        assert_eq!(BuiltInLoad::named("stress-ng --vm 1"), None);
    }

    #[test]
    fn a_load_that_is_told_to_stop_ends_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let stop = AtomicBool::new(true);
        spin(2, &stop);
        copy(1_000, &stop);
        let disk = BuiltInLoad::Disk;
        disk.run(&Root::system(), dir.path(), &stop).expect("ended");
        let left = fs::read_dir(dir.path()).expect("readable").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn the_disk_is_loaded_until_the_stop() {
        let dir = tempfile::tempdir().expect("a directory");
        let stop = AtomicBool::new(false);
        let file = dir.path().join("load");
        thread::scope(|scope| {
            let running = scope.spawn(|| write(dir.path(), &stop));
            // The first durable block shows that it runs; nothing but the flag ends it.
            while !fs::metadata(&file).is_ok_and(|file| file.len() >= WRITE_BYTES as u64) {
                assert!(!running.is_finished(), "it ended by itself");
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            running.join().expect("no panic").expect("it wrote");
        });
    }

    #[test]
    fn a_directory_that_is_not_there_is_named_as_the_cause() {
        let stop = AtomicBool::new(false);
        let error = BuiltInLoad::Disk
            .run(&Root::system(), Path::new("/nowhere/at/all"), &stop)
            .expect_err("it cannot write");
        assert!(
            error.to_string().starts_with("the load on the disk"),
            "{error}"
        );
    }
}
