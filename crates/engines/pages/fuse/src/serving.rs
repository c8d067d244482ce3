//! Threads that answer the system's requests from a disk.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use dyno_pages::{PAGE_BYTES, StoreError};
use dyno_pages_disk::{Disk, Head, Zeros};

use crate::mounting::Connection;
use crate::reply::{MOST_BYTES, Reply, repeat};
use crate::request::{Call, FILE, ROOT, Request};
use crate::{DEVICE, FuseError};

/// Room for the longest request: a write's head and data.
const REQUEST_BYTES: usize = MOST_BYTES as usize + 4096;

/// How it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Behind a mount.
    Fresh,
    /// After another daemon, whose end of requests a holder kept.
    Resumed,
}

/// Counters since the start; the disk counts reads and writes.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests that came.
    pub requests: AtomicU64,
    /// Requests answered with an error that is not only "no such thing".
    pub failed: AtomicU64,
}

/// The threads. They end when the file system is unmounted and the file is closed; until then
/// they end only with the process.
#[derive(Debug)]
pub struct Serving {
    threads: Vec<JoinHandle<Result<(), FuseError>>>,
    figures: Arc<Figures>,
}

impl Serving {
    /// Serves `disk` on `threads` threads.
    ///
    /// # Errors
    /// [`FuseError::NoRepeat`], or when the system has no thread or descriptor left.
    pub fn begin(
        connection: &Connection,
        disk: &Arc<Disk>,
        threads: usize,
        start: Start,
    ) -> Result<Self, FuseError> {
        let failed = |what| FuseError::of(what, "/dev/fuse");
        if start == Start::Resumed {
            let mut end = connection.try_clone().map_err(failed("share"))?;
            end.file.write_all(&repeat()).map_err(FuseError::NoRepeat)?;
        }
        let figures = Arc::new(Figures::default());
        let mut all = Vec::new();
        for _ in 0..threads.max(1) {
            let end = connection.try_clone().map_err(failed("share"))?;
            let (disk, figures) = (Arc::clone(disk), Arc::clone(&figures));
            let thread = std::thread::Builder::new()
                .name("fuse".to_owned())
                .spawn(move || serve(end, &disk, &figures))
                .map_err(failed("start a thread for"))?;
            all.push(thread);
        }
        Ok(Self {
            threads: all,
            figures,
        })
    }

    /// Counters.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Whether the file system has ended, by an unmount or a failure.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the file system has ended.
    ///
    /// # Errors
    /// What ended a thread before.
    pub fn wait(self) -> Result<(), FuseError> {
        let mut first = Ok(());
        for thread in self.threads {
            let done = match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            first = first.and(done);
        }
        first
    }
}

fn serve(mut end: Connection, disk: &Disk, figures: &Figures) -> Result<(), FuseError> {
    let failed = |what| FuseError::of(what, "/dev/fuse");
    let mut server = Server {
        disk,
        head: disk.head()?,
        reply: Reply::default(),
        figures,
    };
    let mut bytes = vec![0; REQUEST_BYTES];
    loop {
        let got = match end.file.read(&mut bytes) {
            Ok(got) => got,
            Err(error) => match error.raw_os_error() {
                // Unmounted.
                Some(libc::ENODEV) => return Ok(()),
                // Who asked was interrupted, or so were we.
                Some(libc::ENOENT | libc::EINTR | libc::EAGAIN) => continue,
                _ => return Err(failed("read from")(error)),
            },
        };
        let request = Request::parse(&bytes[..got])?;
        let Some(reply) = server.answer(request) else {
            continue;
        };
        match end.file.write_all(reply) {
            Ok(()) => {}
            // Who asked has gone meanwhile, or the file system has.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {}
            Err(error) => return Err(failed("reply to")(error)),
        }
    }
}

struct Server<'a> {
    disk: &'a Disk,
    head: Head<'a>,
    reply: Reply,
    figures: &'a Figures,
}

impl Server<'_> {
    fn answer(&mut self, request: Request<'_>) -> Option<&[u8]> {
        if request.call == Call::Silent {
            return None;
        }
        self.figures.requests.fetch_add(1, Relaxed);
        self.reply.begin(request.unique);
        let done = match request.node {
            FILE => self.file(request.call),
            _ => self.root(request.call),
        };
        if !matches!(done, Ok(()) | Err(libc::ENOENT | libc::ENOSYS)) {
            self.figures.failed.fetch_add(1, Relaxed);
        }
        Some(self.reply.end(done))
    }

    /// What concerns the directory, or the whole.
    fn root(&mut self, call: Call<'_>) -> Result<(), i32> {
        let bytes = self.disk.bytes();
        match call {
            Call::Init {
                major: 7, minor, ..
            } if minor < 28 => return Err(libc::EPROTO),
            Call::Init {
                major: 7,
                max_readahead,
                flags,
                ..
            } => self.reply.init(max_readahead, flags),
            Call::Init { .. } => return Err(libc::EPROTO),
            Call::Lookup(name) if name == DEVICE.as_bytes() => self.reply.entry(FILE, bytes),
            Call::Lookup(_) => return Err(libc::ENOENT),
            Call::GetAttributes => self.reply.attributes(ROOT, bytes),
            Call::OpenDirectory => self.reply.opened(false),
            Call::ReadDirectory { offset, bytes } => self.reply.names(offset, bytes.min(4096)),
            Call::StatFs => self.stat_fs()?,
            Call::Release | Call::Sync | Call::Destroy => {}
            _ => return Err(libc::ENOSYS),
        }
        Ok(())
    }

    fn file(&mut self, call: Call<'_>) -> Result<(), i32> {
        let size = self.disk.bytes();
        match call {
            Call::GetAttributes => self.reply.attributes(FILE, size),
            // A device has the size that it has.
            Call::SetAttributes { size: Some(other) } if other != size => return Err(libc::EPERM),
            Call::SetAttributes { .. } => self.reply.attributes(FILE, size),
            Call::Open => self.reply.opened(true),
            Call::Read { offset, bytes } => self.read(offset, bytes)?,
            Call::Write { offset, data } => self.write(offset, data)?,
            // What was written is in the store's memory, and that is where it stays.
            Call::Sync | Call::Release => {}
            Call::Allocate {
                offset,
                bytes,
                mode,
            } => self.allocate(offset, bytes, mode)?,
            Call::StatFs => self.stat_fs()?,
            _ => return Err(libc::ENOSYS),
        }
        Ok(())
    }

    /// A file ends where it ends: what lies behind is not there, and no error.
    fn read(&mut self, offset: u64, bytes: u32) -> Result<(), i32> {
        if bytes > MOST_BYTES {
            return Err(libc::EINVAL);
        }
        let there = self.disk.bytes().saturating_sub(offset).min(bytes.into());
        let into = self.reply.data(there as usize);
        self.head.read(offset, into).map_err(errno)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), i32> {
        if !self.disk.holds(offset, data.len() as u64) {
            return Err(libc::EFBIG);
        }
        self.head.write(offset, data).map_err(errno)?;
        let bytes = data.len() as u32;
        self.reply.written(bytes);
        Ok(())
    }

    fn allocate(&mut self, offset: u64, bytes: u64, mode: u32) -> Result<(), i32> {
        const KEEP_SIZE: u32 = libc::FALLOC_FL_KEEP_SIZE as u32;
        const PUNCH_HOLE: u32 = libc::FALLOC_FL_PUNCH_HOLE as u32;
        const ZERO_RANGE: u32 = libc::FALLOC_FL_ZERO_RANGE as u32;
        let end = offset.checked_add(bytes).ok_or(libc::EFBIG)?;
        let zeros = match mode & !KEEP_SIZE {
            PUNCH_HOLE => Zeros::Free,
            ZERO_RANGE => Zeros::Keep,
            // Space ahead cannot be promised: what a page will take is not known.
            _ => return Err(libc::EOPNOTSUPP),
        };
        // Behind the end there is nothing to zero.
        let end = end.min(self.disk.bytes());
        let bytes = end.saturating_sub(offset);
        if bytes == 0 {
            return Ok(());
        }
        self.head.zero(offset, bytes, zeros).map_err(errno)
    }

    /// Free is what was never written or was discarded; a page takes less than a page, mostly.
    fn stat_fs(&mut self) -> Result<(), i32> {
        let stats = self.disk.store().stats().map_err(errno)?;
        let blocks = self.disk.bytes() / PAGE_BYTES as u64;
        self.reply.file_system(blocks, stats.empty);
        Ok(())
    }
}

fn errno(error: StoreError) -> i32 {
    error.errno()
}
