//! Runs the threads that make the pieces of all files, and writes the pieces in their order.
//!
//! A thread takes the next piece of the next file, makes it, and queues it with the file. If the
//! piece that the file needs next is in the queue, the thread writes it, and those behind it that
//! are there too. A thread that is ahead of a slow file waits before it makes a piece, so the
//! number of pieces in memory has a bound.

use std::collections::BTreeMap;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_tpch::{Batch, Generator, TextPool};
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Refused};
use crate::format::{Append, Encode, Format};
use crate::plan::FilePlan;
use crate::progress::Progress;
use crate::report::FileReport;
use crate::target::{Out, Target};

/// The most units of a batch. They are few enough that its columns stay in a core's second-level
/// cache.
const UNITS_AT_ONCE: u64 = 2_048;
/// The time between two looks at whether to stop, while a thread waits for a file.
const TICK: Duration = Duration::from_millis(50);

type Piece<F> = <<F as Format>::Encoder as Encode>::Piece;

/// What all threads of a job share.
pub(crate) struct Run<'a, F: Format> {
    pub(crate) generator: &'a Generator,
    pub(crate) pool: &'a TextPool,
    pub(crate) target: &'a Target,
    pub(crate) progress: &'a Progress,
    /// How many pieces may wait in the queue of one file.
    pub(crate) waiting: u64,
    pub(crate) files: Vec<FileRun<F>>,
    next: AtomicU64,
    failed: AtomicBool,
}

/// A file of the job, from its plan to its report.
pub(crate) struct FileRun<F: Format> {
    plan: FilePlan,
    /// Dropped when the file is finished, to free the buffers that its pieces have used again and
    /// again.
    format: Mutex<Option<F>>,
    /// The number of its first piece among those of all files.
    first: u64,
    /// The time at which its first piece was taken.
    begun: OnceLock<Instant>,
    queue: Mutex<Queue<F>>,
    turned: Condvar,
}

struct Queue<F: Format> {
    /// Pieces that wait to be written, by number, each with its rows.
    ready: BTreeMap<u64, (Piece<F>, u64)>,
    /// The number of the piece that the file needs next.
    next: u64,
    /// The file, or `None` while a thread is writing to it.
    file: Option<Opened<F>>,
    report: Option<FileReport>,
}

enum Opened<F: Format> {
    Not,
    /// The file, and the number of rows in it.
    Begun(Box<F::File>, u64),
}

impl<'a, F: Format> Run<'a, F> {
    pub(crate) fn new(
        generator: &'a Generator,
        pool: &'a TextPool,
        target: &'a Target,
        progress: &'a Progress,
        waiting: usize,
        files: Vec<(FilePlan, F)>,
    ) -> Run<'a, F> {
        let mut first = 0;
        let files = files
            .into_iter()
            .map(|(plan, format)| {
                let run = FileRun::new(plan, format, first);
                first += run.plan.pieces();
                run
            })
            .collect();
        Run {
            generator,
            pool,
            target,
            progress,
            waiting: waiting as u64,
            files,
            next: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Writes all files on so many threads, and returns their reports in the order of the files.
    ///
    /// # Errors
    /// The error of the thread that failed first.
    pub(crate) fn all(self, jobs: usize) -> Result<Vec<FileReport>, Error>
    where
        F: Send,
    {
        let first_error = Mutex::new(None);
        let work = || {
            // Caught, because the other threads would otherwise wait for a piece that never comes.
            let done = panic::catch_unwind(panic::AssertUnwindSafe(|| self.work()))
                .unwrap_or_else(|payload| Err(Error::Worker(panic_text(payload.as_ref()))));
            if let Err(error) = done {
                self.failed.store(true, Ordering::Relaxed);
                let mut first = first_error.lock();
                // The others stop because of the first error, so theirs say nothing.
                if first.is_none() || matches!(*first, Some(Error::Stopped)) {
                    *first = Some(error);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..jobs {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = first_error.into_inner() {
            return Err(error);
        }
        let reports = self.files.into_iter().filter_map(FileRun::into_report);
        Ok(reports.collect())
    }

    fn work(&self) -> Result<(), Error> {
        // Kept for this very file, not for all files of its table. Buffers go round between an
        // encoder and the layout of its file, so the pieces of another file would pile up there.
        let mut maker: Option<(&FileRun<F>, F::Encoder, Batch)> = None;
        while let Some((file, number)) = self.next_piece() {
            let mut made = match maker.take() {
                Some(made) if std::ptr::eq(made.0, file) => made,
                _ => (
                    file,
                    file.with_format(F::encoder)?,
                    Batch::new(file.plan.table),
                ),
            };
            self.wait(file, number)?;
            let (piece, rows) = self.make(file, number, &mut made)?;
            maker = Some(made);
            self.deliver(file, number, piece, rows)?;
        }
        Ok(())
    }

    /// Takes the next piece that no thread has taken. `None` if there are no more.
    fn next_piece(&self) -> Option<(&FileRun<F>, u64)> {
        // Pieces are numbered through all files, so one counter gives each to one thread. It orders
        // nothing else, because pieces reach threads through the lock of their file.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let after = self.files.partition_point(|file| file.first <= number);
        let file = &self.files[after.checked_sub(1)?];
        let piece = number - file.first;
        file.begun.get_or_init(Instant::now);
        (piece < file.plan.pieces()).then_some((file, piece))
    }

    fn check_going(&self) -> Result<(), Error> {
        if self.failed.load(Ordering::Relaxed) || self.progress.stop_asked() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Waits until the file needs this piece soon enough.
    ///
    /// This cannot wait for ever, because pieces are taken in order: the piece that the file needs
    /// next was taken before this one, and its thread does not wait here.
    fn wait(&self, file: &FileRun<F>, number: u64) -> Result<(), Error> {
        let mut queue = file.queue.lock();
        loop {
            self.check_going()?;
            if number <= queue.next + self.waiting {
                return Ok(());
            }
            // With a limit, because neither the request to stop nor the failure of a thread wakes
            // this one.
            file.turned.wait_for(&mut queue, TICK);
        }
    }

    fn make(
        &self,
        file: &FileRun<F>,
        number: u64,
        (_, encoder, batch): &mut (&FileRun<F>, F::Encoder, Batch),
    ) -> Result<(Piece<F>, u64), Error> {
        let units = file.plan.piece(number);
        let mut first = units.start;
        let mut rows = 0;
        while first < units.end {
            self.check_going()?;
            let end = units.end.min(first + UNITS_AT_ONCE);
            self.generator.fill(batch, first..end)?;
            encoder
                .append(batch, self.pool)
                .map_err(|e| file.refused(e))?;
            rows += batch.rows() as u64;
            first = end;
        }
        let piece = encoder.finish().map_err(|e| file.refused(e))?;
        Ok((piece, rows))
    }

    /// Queues a piece with its file, and writes the pieces that the file needs next if no other
    /// thread does.
    fn deliver(
        &self,
        file: &FileRun<F>,
        number: u64,
        piece: Piece<F>,
        rows: u64,
    ) -> Result<(), Error> {
        let mut queue = file.queue.lock();
        queue.ready.insert(number, (piece, rows));
        loop {
            self.check_going()?;
            let next = queue.next;
            // Another thread is writing. It looks into the queue again under this lock before it
            // puts the file back, so it finds the piece that has just been queued.
            let Some(opened) = queue.file.take() else {
                return Ok(());
            };
            let Some((piece, rows)) = queue.ready.remove(&next) else {
                queue.file = Some(opened);
                return Ok(());
            };
            // Written without the lock, so that other threads can queue pieces meanwhile. If this
            // fails, the file is dropped and not put back, and vanishes without ever having its
            // name.
            drop(queue);
            let opened = self.write(file, opened, piece, rows)?;
            let last = next + 1 == file.plan.pieces();
            let (opened, report) = match opened {
                Opened::Begun(begun, rows) if last => {
                    let report = self.finish(file, *begun, rows)?;
                    (Opened::Not, Some(report))
                }
                opened => (opened, None),
            };
            queue = file.queue.lock();
            queue.file = Some(opened);
            queue.report = report;
            queue.next += 1;
            file.turned.notify_all();
        }
    }

    fn write(
        &self,
        file: &FileRun<F>,
        opened: Opened<F>,
        piece: Piece<F>,
        rows: u64,
    ) -> Result<Opened<F>, Error> {
        let (mut begun, before) = match opened {
            Opened::Begun(begun, before) => (begun, before),
            Opened::Not => {
                let out = self.target.open(&file.plan)?;
                let begun = file.with_format(|format| format.file(out))?;
                (Box::new(begun), 0)
            }
        };
        let bytes = begun.append(piece).map_err(|e| file.refused(e))?;
        self.progress.add(rows, bytes);
        Ok(Opened::Begun(begun, before + rows))
    }

    fn finish(&self, file: &FileRun<F>, begun: F::File, rows: u64) -> Result<FileReport, Error> {
        let out: Out = begun.finish().map_err(|e| file.refused(e))?;
        file.format.lock().take();
        let (bytes, sink) = self.target.publish(out, &file.plan, rows)?;
        Ok(FileReport {
            table: file.plan.table,
            name: file.plan.name.clone(),
            rows,
            bytes,
            seconds: file.seconds(),
            sink,
            kept: false,
        })
    }
}

impl<F: Format> FileRun<F> {
    fn new(plan: FilePlan, format: F, first: u64) -> FileRun<F> {
        FileRun {
            plan,
            format: Mutex::new(Some(format)),
            first,
            begun: OnceLock::new(),
            queue: Mutex::new(Queue {
                ready: BTreeMap::new(),
                next: 0,
                file: Some(Opened::Not),
                report: None,
            }),
            turned: Condvar::new(),
        }
    }

    /// Calls `make` with the format. It is there, because encoders and files begin before the last
    /// piece of the file is written.
    fn with_format<R>(&self, make: impl FnOnce(&F) -> Result<R, Refused>) -> Result<R, Error> {
        match &*self.format.lock() {
            Some(format) => make(format).map_err(|e| self.refused(e)),
            None => Err(Error::Worker(format!(
                "{} was finished before all of it was made",
                self.plan.name.display()
            ))),
        }
    }

    fn refused(&self, refused: Refused) -> Error {
        refused.in_table(self.plan.table)
    }

    /// Seconds since its first piece was taken.
    fn seconds(&self) -> f64 {
        self.begun
            .get()
            .map_or(0.0, |begun| begun.elapsed().as_secs_f64())
    }

    fn into_report(self) -> Option<FileReport> {
        self.queue.into_inner().report
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
