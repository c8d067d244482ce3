//! Processes that write until SIGKILL ends them, and their pages afterwards. This process holds the
//! memory, as a supervisor would; the dying one reports which writes had returned. Has `unsafe`:
//! descriptors that a child inherits.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::model::kept;
use super::{CheckError, Outcome, Plan, page_of};
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::store::{BackingFile, Settings, Store, WriteBack, thread_time};

/// The command line of a process of the check.
pub type Job = Vec<OsString>;

const PAGES: u64 = 400;
const LIMIT_BYTES: u64 = 4 << 20;
/// Tells a process its descriptor, its first round and the descriptor of its backing file.
const VARIABLE: &str = "DYNO_PAGES_CHECK_JOB";
/// A reported write: page and round, eight bytes each.
const RECORD_BYTES: usize = 16;
/// How many of the last bytes that a process said are shown if it ends by itself.
const LAST_WORDS_BYTES: usize = 600;

/// What page `page` holds in a round: the seed contains both numbers, so a page tells its own.
fn seed(page: u64, round: u64) -> u64 {
    (round * PAGES + page) * 6 + 3 + round % 3
}

/// What a process of the check does until it is killed: two threads write every page round after
/// round, and another one recompresses, writes back and compacts. Returns at once if this process
/// is not one.
///
/// # Errors
/// Errors of a store that cannot be opened. A later error, other than a full store, ends the
/// process.
///
/// # Panics
/// If a thread of the store's own code panics.
pub fn job() -> Result<(), StoreError> {
    let Ok(text) = env::var(VARIABLE) else {
        return Ok(());
    };
    let mut numbers = text
        .split(' ')
        .filter_map(|number| number.parse::<u64>().ok());
    let (Some(fd), Some(first_round), Some(back)) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(StoreError::Settings(format!("{VARIABLE} is `{text}`")));
    };
    // SAFETY: the parent opened the descriptor for this process alone.
    let file = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let (store, _) = Store::reopen(file, with_file(back as i32))?;
    let which = WriteBack {
        packed: Some(2),
        raw: Some(1),
    };
    thread::scope(|scope| {
        for half in 0..2 {
            let store = &store;
            scope.spawn(move || or_end(write_for_ever(store, half, first_round)));
        }
        or_end(tend(&store, which));
    });
    Ok(())
}

/// Ends this process with the error, if there is one. Otherwise the other threads would go on until
/// the kill, and the parent would never learn of it.
fn or_end(done: Result<(), StoreError>) {
    if let Err(error) = done {
        // If the parent is gone, this process ends all the same.
        let _ = writeln!(std::io::stderr(), "a process of the check: {error}");
        std::process::exit(1);
    }
}

/// Recompresses, writes back and compacts until it fails.
fn tend(store: &Store, which: WriteBack) -> Result<(), StoreError> {
    let mut recompressor = store.recompressor()?;
    let mut handle = store.handle()?;
    loop {
        store.age();
        recompressor.pass(0, 1, Duration::from_millis(3), thread_time)?;
        handle.write_back(0, PAGES / 8, which)?;
        store.compact(4)?;
    }
}

/// Settings of a store that is opened again with the backing file behind a descriptor.
fn with_file(back: i32) -> Settings {
    Settings {
        backing: Some(BackingFile {
            path: PathBuf::from(format!("/proc/self/fd/{back}")),
            pages: PAGES as u32,
        }),
        ..Settings::new(PAGES, LIMIT_BYTES)
    }
}

/// A backing file without a name, so that a killed check leaves none behind.
pub(super) fn file_without_name() -> Result<File, CheckError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Relaxed);
    let name = format!("dyno-pages-check-{}-{number}", std::process::id());
    let path = env::temp_dir().join(name);
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true);
    let made = options.open(&path).and_then(|file| {
        fs::remove_file(&path)?;
        Ok(file)
    });
    made.map_err(|e| CheckError::Job(format!("{}: {e}", path.display())))
}

fn write_for_ever(store: &Store, half: u64, first_round: u64) -> Result<(), StoreError> {
    let mut handle = store.handle()?;
    for round in first_round.. {
        for page in (half..PAGES).step_by(2) {
            match handle.write(page, &page_of(seed(page, round))) {
                Ok(()) => say(page, round),
                Err(StoreError::NoSpace { .. }) => {}
                Err(other) => return Err(other),
            }
        }
    }
    Ok(())
}

/// Reports a write in one call. A pipe takes so few bytes whole or not at all.
fn say(page: u64, round: u64) {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&page.to_le_bytes());
    record[8..].copy_from_slice(&round.to_le_bytes());
    if std::io::stderr().write_all(&record).is_err() {
        // The parent is gone, so what follows would not be judged.
        std::process::abort();
    }
}

/// Kills one process after the other, and judges the memory after each.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool, outcome: &mut Outcome) -> Result<(), CheckError> {
    let back = file_without_name()?;
    let settings = Settings {
        share: plan.share,
        ..with_file(back.as_raw_fd())
    };
    let file = kept(&Store::create(settings)?)?;
    let mut reported: HashMap<u64, u64> = HashMap::new();
    let mut next_round = 1;
    for kill in 0..plan.kills {
        if stop() || !outcome.holds() {
            break;
        }
        // A different life time each time kills the process at a different moment of its rounds.
        let life = plan.life + Duration::from_millis(37) * kill;
        let killed = run_and_kill(plan, (&file, &back), next_round, life, &mut reported);
        if killed.is_err() && stop() {
            // An interrupt from the terminal goes to the process too, which then ends by itself.
            break;
        }
        outcome.acknowledged += killed?;
        outcome.kills += 1;
        // Rounds that the dead process began but did not report must not come again, or its last
        // pages could not be told from those of the next process.
        next_round = reported
            .values()
            .max()
            .map_or(next_round, |round| round + 2);
        judge((&file, &back), &reported, outcome)?;
    }
    // Without an acknowledged write there was nothing that a kill could have lost.
    let proves_nothing = outcome.kills > 0 && outcome.acknowledged == 0;
    if proves_nothing && outcome.holds() && !stop() {
        return Err(CheckError::Job(format!(
            "no write was acknowledged before any of {} kills",
            outcome.kills
        )));
    }
    Ok(())
}

fn judge(
    (file, back): (&OwnedFd, &File),
    reported: &HashMap<u64, u64>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    let ours = file
        .try_clone()
        .map_err(|e| CheckError::Job(e.to_string()))?;
    let (store, found) = Store::reopen(ours, with_file(back.as_raw_fd()))?;
    outcome.written_back = outcome.written_back.max(store.stats()?.file.pages);
    outcome.unlocked += found.unlocked;
    let kill = outcome.kills;
    let mut wrong = |what: String| outcome.broken.push(format!("kill {kill}: {what}"));
    if found.damaged > 0 {
        wrong(format!("{} entries are damaged", found.damaged));
    }
    for bad in store.check()? {
        wrong(bad.error.to_string());
    }
    let mut handle = store.handle()?;
    let mut bytes = [0; PAGE_BYTES];
    for (&page, &round) in reported {
        if let Err(error) = handle.read(page, &mut bytes) {
            wrong(error.to_string());
            continue;
        }
        let tail = bytes.last_chunk().copied().map_or(0, u64::from_le_bytes);
        if bytes != page_of(tail) || tail / 6 % PAGES != page {
            wrong(format!("page {page} is torn, or another one"));
        } else if tail / 6 / PAGES < round {
            // A later round may be there: the call under way at the kill may have gone through.
            wrong(format!(
                "page {page}: round {} is there, {round} was acknowledged",
                tail / 6 / PAGES
            ));
        }
    }
    Ok(())
}

fn run_and_kill(
    plan: &Plan,
    (file, back): (&OwnedFd, &File),
    round: u64,
    life: Duration,
    reported: &mut HashMap<u64, u64>,
) -> Result<u64, CheckError> {
    let failed = |e: std::io::Error| CheckError::Job(e.to_string());
    let theirs = file.try_clone().map_err(failed)?;
    let back = back.try_clone().map_err(failed)?;
    // SAFETY: a flag of descriptors that are open.
    unsafe {
        libc::fcntl(theirs.as_raw_fd(), libc::F_SETFD, 0);
        libc::fcntl(back.as_raw_fd(), libc::F_SETFD, 0);
    }
    let (program, arguments) = plan
        .job
        .split_first()
        .ok_or_else(|| CheckError::Job("no program was named".to_string()))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env(
            VARIABLE,
            format!("{} {round} {}", theirs.as_raw_fd(), back.as_raw_fd()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    drop((theirs, back));
    let pipe = child.stderr.take();
    let listener = thread::spawn(move || {
        let mut records = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut records))
            .map(|_| records)
    });
    thread::sleep(life);
    let early = child.try_wait().map_err(failed)?;
    let status = child.kill().and_then(|()| child.wait()).map_err(failed)?;
    let said = listener
        .join()
        .map_err(|_| CheckError::Panicked)?
        .map_err(failed)?;
    // It may also have ended between the two calls, which its status then tells.
    if early.is_some() || status.signal() != Some(libc::SIGKILL) {
        let words = last_words(&said);
        let how = format!("it ended by itself ({status}): {words}");
        return Err(CheckError::Job(how));
    }
    let (records, rest) = said.as_chunks::<RECORD_BYTES>();
    for record in records {
        let word = |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| record[at + i]));
        if word(0) >= PAGES || !rest.is_empty() {
            return Err(CheckError::Job(format!(
                "it said something else: {record:?}"
            )));
        }
        let last = reported.entry(word(0)).or_default();
        *last = word(8).max(*last);
    }
    Ok(records.len() as u64)
}

/// The end of what a process said, without what is not text. Most of it are records.
fn last_words(said: &[u8]) -> String {
    let tail = &said[said.len().saturating_sub(LAST_WORDS_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let is_text = |c: &char| !c.is_control() && *c != char::REPLACEMENT_CHARACTER;
    text.chars().filter(is_text).collect()
}
