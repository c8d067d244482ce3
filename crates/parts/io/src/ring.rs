//! Several writes in flight at once through io_uring. Has `unsafe`: the kernel reads memory of ours
//! while a write is in flight. That memory belongs to the ring from submission to completion, is
//! never touched in between, and is leaked rather than freed if the kernel does not say that it is
//! done.
//!
//! If each write must be stable when it ends, an fdatasync is linked to it. The kernel would finish
//! a write with O_DSYNC in a thread of its own that is bound to the core of the device's interrupt:
//! a thread that spins on that core while it waits delays the end by up to milliseconds. The thread
//! for an fdatasync runs on any core.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::block_file::BlockFile;
use crate::device::Device;
use crate::error::IoError;
use crate::opening::{Access, Caching, Opening, Syncing};
use crate::queue::{Completion, Meanwhile, Queue, QueuedSink, Request};

/// The most bytes of one write; the kernel accepts a little less than 2 GiB. The rest of a longer
/// block follows in another write.
const MOST_BYTES: usize = 1 << 30;

/// A file and the kernel's two queues for it.
pub struct Ring {
    ring: IoUring,
    file: BlockFile,
    /// When a write counts as stable.
    syncing: Syncing,
    /// A slot for each write in flight. Twice the slot's number names the write to the kernel, and
    /// one more names the fdatasync after it.
    slots: Vec<Option<InFlight>>,
    /// Writes that this thread has done itself, to be reported.
    ended: VecDeque<Completion>,
    in_flight: usize,
}

/// A write in flight, and what is known of its end.
#[derive(Debug)]
struct InFlight {
    request: Request,
    /// Bytes that the kernel was told to write.
    requested: u32,
    /// What the kernel has reported of the write, and of the fdatasync.
    written: Option<i32>,
    synced: Option<i32>,
}

impl InFlight {
    /// The bytes that are written, and stable if that was requested; `None` until both parts have
    /// ended.
    fn outcome(&self) -> Option<io::Result<usize>> {
        let (written, synced) = (self.written?, self.synced?);
        let Ok(bytes) = u32::try_from(written) else {
            return Some(Err(io::Error::from_raw_os_error(-written)));
        };
        // After a short write the kernel cancels the fdatasync; the one after the rest covers both.
        let whole = bytes == self.requested;
        Some(match synced {
            0.. => Ok(bytes as usize),
            _ if synced == -libc::ECANCELED && !whole => Ok(bytes as usize),
            failed => Err(io::Error::from_raw_os_error(-failed)),
        })
    }
}

/// Writes whole blocks through io_uring, a few at a time, past the page cache.
pub type UringSink = QueuedSink<Ring>;

impl UringSink {
    /// Creates `path`, emptying an old file. `block_bytes` is rounded up to the alignment; at most
    /// `depth` blocks (at least one) are in flight.
    ///
    /// # Errors
    /// [`IoError::UringRefused`], [`IoError::DirectRefused`] where the file system has no direct
    /// I/O, else the system's reason.
    pub fn create(path: &Path, block_bytes: usize, depth: usize) -> Result<Self, IoError> {
        let file = BlockFile::open(path, Access::Create, Caching::Direct)?;
        Ok(Self::over(Ring::new(file, depth)?, block_bytes, None))
    }
}

impl Ring {
    /// Makes queues for `file`, for at most `depth` writes (at least one) in flight.
    ///
    /// # Errors
    /// [`IoError::UringRefused`] when the kernel has no io_uring, or keeps it from this process.
    pub fn new(file: BlockFile, depth: usize) -> Result<Self, IoError> {
        Self::syncing(file, depth, Syncing::AtSync)
    }

    /// Opens a file and makes queues for it, as [`Ring::new`] does.
    ///
    /// # Errors
    /// As [`BlockFile::open_with`] and [`Ring::new`].
    pub fn open(path: &Path, opening: Opening, depth: usize) -> Result<Self, IoError> {
        let syncing = Syncing::AtSync;
        let file = BlockFile::open_with(path, Opening { syncing, ..opening })?;
        Self::syncing(file, depth, opening.syncing)
    }

    fn syncing(file: BlockFile, depth: usize, syncing: Syncing) -> Result<Self, IoError> {
        let depth = depth.clamp(1, 1024);
        let ring = set_up(2 * depth as u32).map_err(|source| IoError::UringRefused {
            path: file.path().to_path_buf(),
            hint: hint(&source),
            source,
        })?;
        Ok(Self {
            ring,
            file,
            syncing,
            slots: (0..depth).map(|_| None).collect(),
            ended: VecDeque::new(),
            in_flight: 0,
        })
    }

    fn enter(&self, want: usize) -> Result<(), IoError> {
        loop {
            match self.ring.submitter().submit_and_wait(want) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(IoError::system("queue a write to", self.file.path(), e)),
            }
        }
    }
}

fn set_up(depth: u32) -> io::Result<IoUring> {
    let ring = IoUring::new(depth)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    if probe.is_supported(opcode::Write::CODE) && probe.is_supported(opcode::Fsync::CODE) {
        Ok(ring)
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => "this kernel does not have what it takes",
        Some(libc::EPERM | libc::EACCES) => {
            "it is forbidden here, by kernel.io_uring_disabled or a seccomp filter"
        }
        Some(libc::ENOMEM) => "its memory is over a limit, perhaps that of `ulimit -l`",
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open",
        _ => "its queues cannot be made",
    }
}

impl Queue for Ring {
    fn device(&self) -> &dyn Device {
        &self.file
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn submit(&mut self, request: Request, meanwhile: Meanwhile) -> Result<(), IoError> {
        if meanwhile == Meanwhile::Sleeps {
            let (offset_bytes, rest) = request.rest();
            let outcome = self.file.write_here(offset_bytes, rest, self.syncing);
            self.ended.push_back(Completion { request, outcome });
            self.in_flight += 1;
            return Ok(());
        }
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.expect("the caller holds fewer writes in flight than the depth");
        let (offset_bytes, rest) = request.rest();
        let requested = rest.len().min(MOST_BYTES) as u32;
        let descriptor = types::Fd(self.file.descriptor());
        let name = 2 * slot as u64;
        let write = opcode::Write::new(descriptor, rest.as_ptr(), requested)
            .offset(offset_bytes)
            .build()
            .user_data(name);
        let stable = self.syncing == Syncing::EachWrite;
        // The memory is in a box, so its address stays the same when the request moves into its
        // slot.
        self.slots[slot] = Some(InFlight {
            request,
            requested,
            written: None,
            synced: (!stable).then_some(0),
        });
        self.in_flight += 1;
        let mut queue = self.ring.submission();
        // SAFETY: the memory stays in its slot until the kernel reports this write's end (see
        // `poll`), also when the ring is dropped; the file is open as long as the ring lives.
        let pushed = unsafe {
            if stable {
                let sync = opcode::Fsync::new(descriptor)
                    .flags(types::FsyncFlags::DATASYNC)
                    .build()
                    .user_data(name + 1);
                queue.push_multiple(&[write.flags(squeue::Flags::IO_LINK), sync])
            } else {
                queue.push(&write)
            }
        };
        drop(queue);
        pushed.expect("the kernel's queue has two places for each slot");
        self.enter(0)
    }

    fn poll(&mut self) -> Option<Completion> {
        if let Some(ended) = self.ended.pop_front() {
            self.in_flight -= 1;
            return Some(ended);
        }
        loop {
            let entry = self.ring.completion().next()?;
            let (name, result) = (entry.user_data(), entry.result());
            let slot = self.slots.get_mut((name / 2) as usize);
            let slot = slot.expect("the kernel reports only the names that it was given");
            let in_flight = slot.as_mut().expect("the kernel reports each of them once");
            match name % 2 {
                0 => in_flight.written = Some(result),
                _ => in_flight.synced = Some(result),
            }
            if let Some(outcome) = in_flight.outcome()
                && let Some(InFlight { request, .. }) = slot.take()
            {
                self.in_flight -= 1;
                return Some(Completion { request, outcome });
            }
        }
    }

    fn wait(&mut self) -> Result<Option<Completion>, IoError> {
        while self.in_flight > 0 {
            if let Some(completion) = self.poll() {
                return Ok(Some(completion));
            }
            self.enter(1)?;
        }
        Ok(None)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        loop {
            match self.wait() {
                // The results are of no interest any more, but the kernel must be done with the
                // memory.
                Ok(Some(_)) => {}
                Ok(None) => return,
                // The kernel may still read the memory in the slots, so it is leaked and not
                // reused.
                Err(_) => return std::mem::forget(std::mem::take(&mut self.slots)),
            }
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("file", &self.file)
            .field("depth", &self.slots.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuffer;

    fn outcome(written: i32, synced: i32) -> Result<usize, Option<i32>> {
        let in_flight = InFlight {
            request: Request::new(AlignedBuffer::zeroed(8192), 0, 8192),
            requested: 8192,
            written: Some(written),
            synced: Some(synced),
        };
        let ended = in_flight.outcome().expect("both have ended");
        ended.map_err(|error| error.raw_os_error())
    }

    #[test]
    fn nothing_is_stable_without_its_fdatasync() {
        assert_eq!(outcome(8192, 0), Ok(8192));
        assert_eq!(outcome(8192, -libc::EIO), Err(Some(libc::EIO)));
        assert_eq!(outcome(8192, -libc::ECANCELED), Err(Some(libc::ECANCELED)));
        assert_eq!(
            outcome(-libc::ENOSPC, -libc::ECANCELED),
            Err(Some(libc::ENOSPC))
        );
        // The rest is written next, and synced with it.
        assert_eq!(outcome(4096, -libc::ECANCELED), Ok(4096));
        assert_eq!(outcome(4096, -libc::EIO), Err(Some(libc::EIO)));
    }

    /// A ring for a new file, each of whose writes is stable when it ends; `None` where the kernel
    /// has no io_uring for this process.
    fn stable_ring(path: &Path, depth: usize) -> Option<Ring> {
        let opening = Opening {
            access: crate::Access::Create,
            caching: Caching::Cached,
            syncing: Syncing::EachWrite,
        };
        match Ring::open(path, opening, depth) {
            Err(IoError::UringRefused { .. }) => None,
            ring => Some(ring.expect("a ring")),
        }
    }

    #[test]
    fn stable_writes_end_once_each_and_lie_where_they_belong() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stable");
        let Some(mut ring) = stable_ring(&path, 3) else {
            return;
        };
        let mut ended = 0;
        for block in 0..20u8 {
            if ring.in_flight() == ring.depth() {
                let completion = ring.wait().expect("it waits").expect("one goes on");
                assert_eq!(completion.outcome.expect("it is written"), 4096);
                ended += 1;
            }
            let mut buffer = AlignedBuffer::zeroed(4096);
            buffer.fill(block);
            let request = Request::new(buffer, u64::from(block) * 4096, 4096);
            ring.submit(request, Meanwhile::GoesOn)
                .expect("it is taken");
        }
        while let Some(completion) = ring.wait().expect("it waits") {
            assert_eq!(completion.outcome.expect("it is written"), 4096);
            ended += 1;
        }
        assert_eq!(ended, 20);
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, &byte)| byte as usize == at / 4096)
        );
        assert_eq!(bytes.len(), 20 * 4096);
    }

    #[test]
    fn a_write_of_the_thread_itself_is_reported_next_and_a_failed_one_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("here");
        let Some(mut ring) = stable_ring(&path, 2) else {
            return;
        };
        let mut block = AlignedBuffer::zeroed(4096);
        block.fill(7);
        let request = Request::new(block, 4096, 4096);
        ring.submit(request, Meanwhile::Sleeps).expect("asked");
        assert_eq!(ring.in_flight(), 1);
        let completion = ring.poll().expect("it has ended");
        assert_eq!(completion.outcome.expect("written"), 4096);
        assert_eq!(ring.in_flight(), 0);
        assert!(ring.poll().is_none());
        let content = std::fs::read(&path).expect("readable");
        assert_eq!(content[4096..], [7; 4096]);

        ring.file = BlockFile::open(&path, Access::Read, Caching::Cached).expect("readable");
        let request = Request::new(AlignedBuffer::zeroed(4096), 0, 4096);
        ring.submit(request, Meanwhile::Sleeps).expect("asked");
        let completion = ring.poll().expect("it has ended");
        let reason = completion.outcome.expect_err("it is open for reading");
        assert_eq!(reason.raw_os_error(), Some(libc::EBADF));
    }
}
