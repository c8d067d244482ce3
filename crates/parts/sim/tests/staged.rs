//! Whatever goes wrong, at whatever step: a file under its final name is complete, or it is the one
//! that was there before.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_io::{Caching, DirectSink, Existing, FileSink, IoError, Output, QueuedSink, Sink, Staged};
use dyno_sim::{Disk, Failure, Faults, SimQueue};
use proptest::prelude::*;

const OLD: &[u8] = b"what was there before";
const BLOCK_BYTES: usize = 8192;

#[derive(Debug, Clone, Copy)]
enum Way {
    Cached,
    Direct,
    Queued,
}

const WAYS: [Way; 3] = [Way::Cached, Way::Direct, Way::Queued];

/// One file to write.
#[derive(Debug, Clone)]
struct Job {
    way: Way,
    existing: Existing,
    len: usize,
    part_bytes: usize,
    expected_bytes: Option<u64>,
    seed: u64,
}

impl Job {
    fn plain(way: Way, existing: Existing) -> Self {
        Self {
            way,
            existing,
            len: 45_678,
            part_bytes: 5_000,
            expected_bytes: Some(40_000),
            seed: 1,
        }
    }

    fn data(&self) -> Vec<u8> {
        (0..self.len).map(|i| (i / 512 * 7 + i) as u8 | 1).collect()
    }

    fn disk(&self, faults: Faults) -> Disk {
        let disk = Disk::new(self.seed, faults);
        if self.existing == Existing::Replace {
            disk.write(&target(), OLD);
        }
        disk
    }

    fn sink(&self, disk: &Disk, path: &Path) -> Result<Box<dyn Sink>, IoError> {
        let caching = match self.way {
            Way::Cached => Caching::Cached,
            Way::Direct | Way::Queued => Caching::Direct,
        };
        let file = disk.create(path, caching)?;
        Ok(match self.way {
            Way::Cached => Box::new(FileSink::over(Box::new(file), BLOCK_BYTES)),
            Way::Direct => {
                let file = Box::new(file);
                Box::new(DirectSink::over(file, BLOCK_BYTES, self.expected_bytes))
            }
            Way::Queued => {
                let queue = SimQueue::new(file, 3, self.seed);
                Box::new(QueuedSink::over(queue, BLOCK_BYTES, self.expected_bytes))
            }
        })
    }

    fn write(&self, disk: &Disk) -> Result<u64, IoError> {
        let files = Arc::new(disk.clone());
        let open = |aside: &Path| self.sink(disk, aside);
        let mut staged = Staged::create(files, &target(), self.existing, open)?;
        for part in self.data().chunks(self.part_bytes) {
            staged.write(part)?;
        }
        Box::new(staged).publish()
    }

    /// Steps of a run in which nothing goes wrong.
    fn steps(&self) -> u64 {
        let disk = self.disk(Faults::default());
        self.write(&disk).unwrap();
        disk.steps()
    }

    /// Holds for a disk at any moment.
    fn check_whole(&self, disk: &Disk, done: bool, what: &str) {
        let before = (self.existing == Existing::Replace).then(|| OLD.to_vec());
        let found = disk.read(&target());
        let complete = found.as_ref() == Some(&self.data());
        assert!(complete || (!done && found == before), "{self:?}: {what}");
    }
}

fn target() -> PathBuf {
    PathBuf::from("/data/lineitem.parquet")
}

fn jobs() -> impl Iterator<Item = Job> {
    WAYS.into_iter().flat_map(|way| {
        [Existing::Refuse, Existing::Replace].map(|existing| Job::plain(way, existing))
    })
}

#[test]
fn without_faults_the_file_is_complete_and_stable() {
    for job in jobs() {
        let disk = job.disk(Faults::default());
        assert_eq!(job.write(&disk).unwrap(), job.len as u64);
        assert_eq!(disk.names(), [target()]);
        for seed in 0..50 {
            job.check_whole(&disk.after_crash(seed), true, "a crash after the end");
        }
    }
}

#[test]
fn a_crash_at_any_step_leaves_no_part_under_the_name() {
    for job in jobs() {
        for step in 0..job.steps() {
            let disk = job.disk(Faults {
                crash_step: Some(step),
                ..Faults::default()
            });
            job.write(&disk).unwrap_err();
            for seed in 0..12 {
                let after = disk.after_crash(seed);
                job.check_whole(&after, false, &format!("crash at {step}, seed {seed}"));
                // The next attempt is not in the way of what is left over.
                let existing = match after.read(&target()) {
                    Some(_) => Existing::Replace,
                    None => job.existing,
                };
                let again = Job {
                    existing,
                    ..job.clone()
                };
                again.write(&after).unwrap();
                again.check_whole(&after, true, "the attempt after the crash");
                assert_eq!(after.names(), [target()]);
            }
        }
    }
}

#[test]
fn an_error_at_any_step_is_named_and_leaves_no_part() {
    for job in jobs() {
        for step in 0..job.steps() {
            for failure in [Failure::Once { step }, Failure::From { step }] {
                let disk = job.disk(Faults {
                    failure: Some(failure),
                    ..Faults::default()
                });
                let text = job.write(&disk).unwrap_err().to_string();
                let what = format!("{failure:?}: {text}");
                assert!(
                    text.starts_with("cannot ") && text.contains("/data"),
                    "{what}"
                );
                assert!(text.contains("Input/output error"), "{what}");
                job.check_whole(&disk, false, &what);
                for seed in 0..4 {
                    job.check_whole(&disk.after_crash(seed), false, &what);
                }
                if matches!(failure, Failure::Once { .. }) {
                    let aside = disk.names().iter().any(|name| *name != target());
                    assert!(!aside, "{what} left {:?}", disk.names());
                }
            }
        }
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_nothing_new() {
    for job in jobs() {
        let held = if job.existing == Existing::Replace {
            OLD.len()
        } else {
            0
        };
        // Up to one block more than the file is needed while its tail is padded.
        for space_bytes in (0..job.len + held).step_by(3_001) {
            let disk = job.disk(Faults {
                space_bytes: Some(space_bytes as u64),
                ..Faults::default()
            });
            let error = job.write(&disk).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
            assert_eq!(disk.names().len(), usize::from(held > 0));
            job.check_whole(&disk, false, "a full disk");
        }
        let disk = job.disk(Faults {
            space_bytes: Some((job.len + held + 4096) as u64),
            ..Faults::default()
        });
        job.write(&disk).unwrap();
        job.check_whole(&disk, true, "a disk just large enough");
    }
}

#[test]
fn a_disk_that_takes_nothing_is_given_up() {
    struct Full;
    impl std::fmt::Debug for Full {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Full")
        }
    }
    impl dyno_io::Device for Full {
        fn path(&self) -> &Path {
            Path::new("/data/a")
        }
        fn caching(&self) -> Caching {
            Caching::Direct
        }
        fn write_some_at(&self, _: u64, block: &[u8]) -> Result<usize, IoError> {
            Ok(block.len().min(512))
        }
        fn allocate(&self, _: u64) -> Result<bool, IoError> {
            Ok(false)
        }
        fn set_len(&self, _: u64) -> Result<(), IoError> {
            Ok(())
        }
        fn sync(&self) -> Result<(), IoError> {
            Ok(())
        }
    }
    let mut sink = DirectSink::over(Box::new(Full), 4096, None);
    let error = sink.write(&[1; 5000]).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot write to /data/a: no progress at byte 0 in 8 attempts"
    );
}

/// Shows that the model has teeth: it must catch the shortcuts that people take.
#[test]
fn the_model_catches_what_staging_is_for() {
    let job = Job::plain(Way::Cached, Existing::Refuse);
    let mut found_part = false;
    let mut found_nothing = false;
    for seed in 0..50 {
        let job = Job {
            seed,
            ..job.clone()
        };
        let unsynced = job.disk(Faults::default());
        let mut sink = job.sink(&unsynced, Path::new("/data/aside")).unwrap();
        sink.write(&job.data()).unwrap();
        sink.finish(dyno_io::Durability::Handed).unwrap();
        let files: &dyn dyno_io::FileSystem = &unsynced;
        let aside = Path::new("/data/aside");
        files.rename(aside, &target(), Existing::Refuse).unwrap();
        match unsynced.after_crash(seed).read(&target()) {
            Some(bytes) => found_part |= bytes != job.data(),
            None => found_nothing = true,
        }
    }
    assert!(found_part && found_nothing);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_mixture_of_faults_leaves_no_part(
        way in prop::sample::select(&WAYS[..]), replace: bool,
        len in 0usize..60_000, part_bytes in 1usize..20_000, expected in 0u64..80_000, seed: u64,
        space in prop::option::of(0u64..120_000), crash in prop::option::of(0u64..40),
        fail in prop::option::of(0u64..40), lasting: bool,
    ) {
        let existing = if replace { Existing::Replace } else { Existing::Refuse };
        let expected_bytes = (expected > 0).then_some(expected);
        let job = Job { way, existing, len, part_bytes, expected_bytes, seed };
        let failure = fail.map(|step| if lasting { Failure::From { step } } else { Failure::Once { step } });
        let disk = job.disk(Faults {
            short_writes: true, space_bytes: space, failure, crash_step: crash,
            ..Faults::default()
        });
        let done = job.write(&disk).is_ok();
        job.check_whole(&disk, done, "now");
        for seed in 0..5 {
            job.check_whole(&disk.after_crash(seed), done, "after a crash");
        }
    }

    /// Short writes alone are no error.
    #[test]
    fn short_writes_are_gone_on_with(
        way in prop::sample::select(&WAYS[..]), len in 0usize..60_000,
        part_bytes in 1usize..20_000, seed: u64,
    ) {
        let job = Job {
            way, existing: Existing::Refuse, len, part_bytes, expected_bytes: None, seed,
        };
        let disk = job.disk(Faults { short_writes: true, ..Faults::default() });
        match job.write(&disk) {
            Ok(_) => job.check_whole(&disk, true, "short writes"),
            // Eight writes in a row that take nothing are given up, which is rare.
            Err(error) => prop_assert!(error.to_string().contains("no progress"), "{error}"),
        }
    }
}
