//! The threads that answer the kernel's requests from a disk.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use dyno_pages::{PAGE_BYTES, StoreError};
use dyno_pages_disk::{Disk, Head, Zeros, join_all};

use crate::mounting::Connection;
use crate::reply::{MOST_BYTES, Reply, repeat};
use crate::request::{Call, FILE, ROOT, Request};
use crate::{DEVICE, FuseError};

/// Room for the longest request: the head and the data of a write.
const REQUEST_BYTES: usize = MOST_BYTES as usize + 4096;

/// Whether requests of an earlier daemon may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The file system was mounted just now.
    Fresh,
    /// Another daemon served it and died, and a holder kept the connection.
    Resumed,
}

/// Counters since the start. Reads and writes are counted by the disk.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests that wanted a reply.
    pub requests: AtomicU64,
    /// Requests answered with an error other than "no such file" or "not supported".
    pub failed: AtomicU64,
}

/// The serving threads. They end when the file system is unmounted and the file is closed; until
/// then they end only with the process.
#[derive(Debug)]
pub struct Serving {
    threads: Vec<JoinHandle<Result<(), FuseError>>>,
    figures: Arc<Figures>,
}

impl Serving {
    /// Starts to serve `disk` on `threads` threads, one if it is 0.
    ///
    /// # Errors
    /// [`FuseError::NoRepeat`], or when the system has no thread or descriptor left.
    pub fn begin(
        connection: &Connection,
        disk: &Arc<Disk>,
        threads: usize,
        start: Start,
    ) -> Result<Self, FuseError> {
        let failed = |what| FuseError::system(what, "/dev/fuse");
        if start == Start::Resumed {
            // The kernel queues the repeated requests again, so it does not matter which thread
            // reads them, or that no thread runs yet.
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

    /// The counters, which the threads go on counting.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Whether all threads have ended, by an unmount or a failure.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until all threads have ended.
    ///
    /// # Errors
    /// The first failure of a thread.
    pub fn wait(self) -> Result<(), FuseError> {
        join_all(self.threads)
    }
}

fn serve(mut end: Connection, disk: &Disk, figures: &Figures) -> Result<(), FuseError> {
    let failed = |what| FuseError::system(what, "/dev/fuse");
    let mut server = Server {
        disk,
        head: disk.head()?,
        reply: Reply::default(),
        figures,
    };
    // Every page of the buffer is written before the first request. The kernel fails a request with
    // EIO when it must map a page to copy it and the process is being killed; into pages that are
    // there it copies the request all the same, and the next daemon gets it once more.
    let mut bytes = vec![1; REQUEST_BYTES];
    loop {
        let got = match end.file.read(&mut bytes) {
            Ok(got) => got,
            Err(error) => match error.raw_os_error() {
                // The file system was unmounted.
                Some(libc::ENODEV) => return Ok(()),
                // The process that asked was interrupted, or this thread was.
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
            // The process that asked is gone, or the file system is; nothing waits for this reply.
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

    /// Answers what concerns the directory, or the file system as a whole.
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
            // The size of the device is that of the store and cannot change.
            Call::SetAttributes { size: Some(other) } if other != size => return Err(libc::EPERM),
            Call::SetAttributes { .. } => self.reply.attributes(FILE, size),
            Call::Open => self.reply.opened(true),
            Call::Read { offset, bytes } => self.read(offset, bytes)?,
            Call::Write { offset, data } => self.write(offset, data)?,
            // A write that was answered is in the store's memory, which is all that this device
            // promises.
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

    /// A read beyond the end of the file returns fewer bytes, which is not an error.
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
            // Space cannot be reserved, because what a page will take when packed is not known.
            _ => return Err(libc::EOPNOTSUPP),
        };
        // The range may reach beyond the end, where nothing has to be zeroed.
        let end = end.min(self.disk.bytes());
        let bytes = end.saturating_sub(offset);
        if bytes == 0 {
            return Ok(());
        }
        self.head.zero(offset, bytes, zeros).map_err(errno)
    }

    /// Reports as free what was never written or was discarded. Mostly more fits, because a page
    /// takes less than a page.
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
