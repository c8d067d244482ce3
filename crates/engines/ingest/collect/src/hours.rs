//! Writes one file for each hour.
//!
//! During its hour a file is `NAME.jsonl.open`, with plain lines. Then it is renamed to
//! `NAME.jsonl.closing`, compressed to a partial file and synced, and that gets the final name. If
//! there is a file of the final name already, the closing one has been compressed. The next process
//! finishes what a killed one left: it cuts off and counts an unfinished line, compresses an hour
//! that is over, and continues the current one.
//!
//! A process that ends within an hour leaves a file of its part, and the parts of one hour have
//! numbers. A table replaces an archive by a later one of the same name, and a file may be removed
//! once the table has it, so the files alone do not tell which numbers were used. The lock's file
//! keeps them, as lines of `NAME NUMBER`: some 20 bytes an hour, which are never removed, because a
//! clock may go back to any hour.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use dyno_ingest_feeds::calendar::Day;
use dyno_ingest_feeds::psk::Capture;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::CollectError;

const HOUR_MS: i64 = 3_600_000;
const OPEN: &str = ".jsonl.open";
const CLOSING: &str = ".jsonl.closing";
const DONE: &str = ".jsonl.gz";
/// The compression level that gzip itself uses by default.
const LEVEL: u32 = 6;

/// The files of a folder, one of which is being written.
#[derive(Debug)]
pub struct Hours {
    folder: PathBuf,
    current: Option<Current>,
    /// The thread that compresses the file of the hour before.
    finishing: Option<JoinHandle<Result<PathBuf, CollectError>>>,
    /// Locked as long as this value lives. Its lines are the numbers of parts that were used.
    lock: File,
}

#[derive(Debug)]
struct Current {
    hour: i64,
    path: PathBuf,
    out: BufWriter<File>,
}

/// What was recovered of the files that an earlier process had left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files that were continued or compressed.
    pub files: u32,
    /// Bytes of unfinished lines, which were cut off.
    pub torn_bytes: u64,
}

impl Hours {
    /// Locks a folder for the one collector that writes there, and finishes what an earlier one
    /// left. The folder is created if it is missing.
    ///
    /// # Errors
    /// [`CollectError::Busy`], [`CollectError::Io`].
    pub fn open(folder: &Path, now_ms: i64) -> Result<(Hours, Recovery), CollectError> {
        fs::create_dir_all(folder).map_err(|e| CollectError::io("create", folder, e))?;
        let lock = lock(folder)?;
        let mut hours = Hours {
            folder: folder.to_owned(),
            current: None,
            finishing: None,
            lock,
        };
        let mut recovery = Recovery::default();
        for path in files_that_end_in(folder, CLOSING)? {
            recovery.files += 1;
            // These were closed but perhaps not compressed. Nothing is appended to them any more.
            compress(&path)?;
        }
        for path in files_that_end_in(folder, OPEN)? {
            recovery.files += 1;
            recovery.torn_bytes += cut_torn_line(&path)?;
            if path == hours.path_of(hour_of(now_ms)) {
                hours.take_up(hour_of(now_ms), path)?;
            } else {
                compress(&hours.closing(&path)?)?;
            }
        }
        Ok((hours, recovery))
    }

    /// Appends a line to the file of its hour. A clock that goes back does not reopen an hour.
    ///
    /// # Errors
    /// [`CollectError::Io`].
    pub fn append(&mut self, capture: &Capture, now_ms: i64) -> Result<(), CollectError> {
        let hour = hour_of(now_ms);
        if self
            .current
            .as_ref()
            .is_none_or(|current| current.hour < hour)
        {
            self.end_hour()?;
            self.take_up(hour, self.path_of(hour))?;
        }
        self.append_here(capture)
    }

    /// Appends a line to the current file, whatever the hour. If there is no current file, the line
    /// is dropped.
    ///
    /// # Errors
    /// [`CollectError::Io`].
    pub fn append_here(&mut self, capture: &Capture) -> Result<(), CollectError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let failed = |e: io::Error| CollectError::io("write", &current.path, e);
        serde_json::to_writer(&mut current.out, capture).map_err(|e| failed(e.into()))?;
        current.out.write_all(b"\n").map_err(failed)
    }

    /// Whether a line of this moment would begin another file.
    pub fn ends_at(&self, now_ms: i64) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.hour < hour_of(now_ms))
    }

    /// Passes to the operating system what is still in memory, so that a killed process does not
    /// lose it. Nothing is synced before the hour ends.
    ///
    /// # Errors
    /// [`CollectError::Io`].
    pub fn flush(&mut self) -> Result<(), CollectError> {
        match &mut self.current {
            Some(current) => {
                let flushed = current.out.flush();
                flushed.map_err(|e| CollectError::io("write", &current.path, e))
            }
            None => Ok(()),
        }
    }

    /// Ends the file that is being written; it is compressed by a thread of its own.
    ///
    /// # Errors
    /// [`CollectError::Io`], also of the file before.
    pub fn end_hour(&mut self) -> Result<(), CollectError> {
        self.flush()?;
        // At most one file is being compressed. If that took a whole hour, this one waits for it.
        self.wait()?;
        if let Some(current) = self.current.take() {
            // The buffer was flushed above, so nothing is lost here without an error.
            drop(current.out);
            let closing = self.closing(&current.path)?;
            self.finishing = Some(std::thread::spawn(move || compress(&closing)));
        }
        Ok(())
    }

    /// Ends the file, waits until it has its final name, and returns that.
    ///
    /// # Errors
    /// [`CollectError::Io`].
    pub fn close(mut self) -> Result<Option<PathBuf>, CollectError> {
        self.end_hour()?;
        self.wait()
    }

    fn wait(&mut self) -> Result<Option<PathBuf>, CollectError> {
        match self.finishing.take().map(JoinHandle::join) {
            None => Ok(None),
            Some(Ok(finished)) => finished.map(Some),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }

    /// Renames a file whose hour is over to its closing name, which has a number from the second
    /// part of an hour on.
    fn closing(&self, open: &Path) -> Result<PathBuf, CollectError> {
        let stem = stem_of(open, OPEN);
        let numbered = |number: u32, end: &str| match number {
            1 => open.with_file_name(format!("{stem}{end}")),
            _ => open.with_file_name(format!("{stem}-{number}{end}")),
        };
        let last = self.last_number(&stem);
        let last = last.map_err(|e| CollectError::io("number", open, e))?;
        let mut number = last.saturating_add(1);
        // A process of an earlier version kept no numbers, and its files must not be written over.
        while [CLOSING, DONE]
            .iter()
            .any(|end| numbered(number, end).exists())
        {
            number += 1;
        }
        // The number is durable before a file has it. If we are killed in between, it is left out.
        self.keep_number(&stem, number)
            .map_err(|e| CollectError::io("number", open, e))?;
        let path = numbered(number, CLOSING);
        fs::rename(open, &path).map_err(|e| CollectError::io("rename", open, e))?;
        Ok(path)
    }

    /// The highest number that a part of this hour has had; 0 before the first.
    fn last_number(&self, stem: &str) -> io::Result<u32> {
        let mut kept = Vec::new();
        let mut file = &self.lock;
        file.rewind()?;
        file.read_to_end(&mut kept)?;
        let kept = String::from_utf8_lossy(&kept);
        let numbers = kept.lines().filter_map(|line| {
            let (of, number) = line.split_once(' ')?;
            let number = number.parse::<u32>().ok()?;
            (of == stem).then_some(number)
        });
        Ok(numbers.max().unwrap_or(0))
    }

    fn keep_number(&self, stem: &str, number: u32) -> io::Result<()> {
        // A power cut may have left an unfinished line, so each begins with a line feed of its own.
        // The number of an unfinished line was never used, because its sync did not return.
        (&self.lock).write_all(format!("\n{stem} {number}\n").as_bytes())?;
        self.lock.sync_data()
    }

    fn take_up(&mut self, hour: i64, path: PathBuf) -> Result<(), CollectError> {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|e| CollectError::io("open", &path, e))?;
        self.current = Some(Current {
            hour,
            path,
            out: BufWriter::with_capacity(64 * 1024, file),
        });
        Ok(())
    }

    fn path_of(&self, hour: i64) -> PathBuf {
        let day = Day::from_ms(hour * HOUR_MS);
        let of_day = hour - day.start_ms() / HOUR_MS;
        self.folder.join(format!("pskr-{day}T{of_day:02}{OPEN}"))
    }
}

fn hour_of(moment_ms: i64) -> i64 {
    moment_ms.div_euclid(HOUR_MS)
}

fn lock(folder: &Path) -> Result<File, CollectError> {
    let path = folder.join("collector.lock");
    let file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(&path);
    let file = file.map_err(|e| CollectError::io("open", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(CollectError::Busy {
            folder: folder.to_owned(),
        }),
        Err(fs::TryLockError::Error(e)) => Err(CollectError::io("lock", &path, e)),
    }
}

fn files_that_end_in(folder: &Path, end: &str) -> Result<Vec<PathBuf>, CollectError> {
    let failed = |e| CollectError::io("list", folder, e);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("pskr-") && name.ends_with(end) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Cuts off a last line that has no line feed, and returns how many bytes it had.
fn cut_torn_line(path: &Path) -> Result<u64, CollectError> {
    const STEP: u64 = 64 * 1024;
    let failed = |e| CollectError::io("mend", path, e);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    // A line may be long, so its beginning is searched from the end of the file, step by step.
    let mut end = length;
    while end > 0 {
        let from = end.saturating_sub(STEP);
        let mut bytes = vec![0; (end - from) as usize];
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < length {
        file.set_len(end).map_err(failed)?;
    }
    Ok(length - end)
}

/// Compresses a closing file, and returns its final name. A file without a line is only removed.
fn compress(closing: &Path) -> Result<PathBuf, CollectError> {
    let failed = |e| CollectError::io("compress", closing, e);
    let stem = stem_of(closing, CLOSING);
    let done = closing.with_file_name(format!("{stem}{DONE}"));
    let aside = closing.with_file_name(format!("{stem}{DONE}.partial"));
    let mut plain = File::open(closing).map_err(failed)?;
    // A finished file means that a killed process had only to remove the plain one.
    if plain.metadata().map_err(failed)?.len() > 0 && !done.exists() {
        let file = File::create(&aside).map_err(|e| CollectError::io("create", &aside, e))?;
        let mut gzip = GzEncoder::new(BufWriter::new(file), Compression::new(LEVEL));
        io::copy(&mut plain, &mut gzip).map_err(failed)?;
        let file = gzip.finish().map_err(failed)?;
        let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
        // The compressed file is durable under its name before the plain one is removed, so a power
        // cut leaves at least one of them.
        file.sync_all().map_err(failed)?;
        fs::rename(&aside, &done).map_err(failed)?;
        let folder = done.parent().unwrap_or(Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed)?;
    }
    fs::remove_file(closing).map_err(failed)?;
    Ok(done)
}

fn stem_of(path: &Path, end: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(end).unwrap_or(&name).to_owned()
}
