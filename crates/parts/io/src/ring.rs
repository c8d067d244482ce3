//! Several writes at once through io_uring. Has `unsafe`: the kernel reads memory of ours while a
//! write goes on. That memory is owned by the ring from submission to completion, never touched in
//! between, and leaked rather than freed if the kernel will not say that it is done.

use std::io;
use std::path::Path;

use io_uring::{IoUring, Probe, opcode, types};

use crate::block_file::{Access, BlockFile, Caching};
use crate::device::Device;
use crate::error::IoError;
use crate::queue::{Completion, Queue, QueuedSink, Request};

/// The kernel takes a little less than 2 GiB a write; the rest of a longer one follows.
const MOST_BYTES: usize = 1 << 30;

/// A file and the kernel's two queues for it.
pub struct Ring {
    ring: IoUring,
    file: BlockFile,
    /// A slot for each write that goes on; its number is the kernel's name for the write.
    slots: Vec<Option<Request>>,
    in_flight: usize,
}

/// Writes whole blocks through io_uring, a few at a time, past the page cache.
pub type UringSink = QueuedSink<Ring>;

impl UringSink {
    /// Creates `path`, emptying an old file; `block_bytes` is rounded up to the alignment, `depth`
    /// blocks are in flight at most (at least one).
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
    /// Queues for `file`, for at most `depth` writes at once (at least one).
    ///
    /// # Errors
    /// [`IoError::UringRefused`] when the kernel has no io_uring, or keeps it from this process.
    pub fn new(file: BlockFile, depth: usize) -> Result<Self, IoError> {
        let depth = depth.clamp(1, 1024);
        let ring = set_up(depth as u32).map_err(|source| IoError::UringRefused {
            path: file.path().to_path_buf(),
            hint: hint(&source),
            source,
        })?;
        Ok(Self {
            ring,
            file,
            slots: (0..depth).map(|_| None).collect(),
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
    if probe.is_supported(opcode::Write::CODE) {
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

    fn submit(&mut self, request: Request) -> Result<(), IoError> {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.expect("the caller holds fewer writes in flight than the depth");
        let (offset_bytes, rest) = request.rest();
        let length = rest.len().min(MOST_BYTES) as u32;
        let descriptor = types::Fd(self.file.descriptor());
        let entry = opcode::Write::new(descriptor, rest.as_ptr(), length)
            .offset(offset_bytes)
            .build()
            .user_data(slot as u64);
        // The memory lies in a box, so the address stays as the request moves into its slot.
        self.slots[slot] = Some(request);
        self.in_flight += 1;
        // SAFETY: the memory stays in its slot until the kernel reports this write's end (see
        // `poll`), also when the ring is dropped; the file is open as long as the ring lives.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the kernel's queue has as many places as there are slots");
        self.enter(0)
    }

    fn poll(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let slot = self.slots.get_mut(entry.user_data() as usize);
        let request = slot
            .and_then(Option::take)
            .expect("the kernel reports each write once, by the slot it was given");
        self.in_flight -= 1;
        let outcome = match usize::try_from(entry.result()) {
            Ok(written) => Ok(written),
            Err(_) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(Completion { request, outcome })
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
                Ok(Some(_)) => {}
                Ok(None) => return,
                // The kernel may still read what is in the slots: better lost than reused.
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
