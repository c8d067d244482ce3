//! Several writes in flight at once, and a sink that keeps them going.

use std::fmt;
use std::io;

use crate::aligned::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::device::{Device, MOST_STALLS, onward, stalled, write_whole};
use crate::error::IoError;
use crate::reserve::Reserve;
use crate::{Durability, Sink};

/// One write. It owns its memory, so that the memory can be neither freed nor changed while the
/// write is in flight.
#[derive(Debug)]
pub struct Request {
    /// The block that is written.
    pub buffer: AlignedBuffer,
    /// Where in the file the block's first byte belongs.
    pub offset_bytes: u64,
    /// Bytes of the block that are written already; a multiple of the alignment.
    pub start: usize,
    /// Bytes of the block to write in all; a multiple of the alignment.
    end: usize,
    /// Attempts in a row that wrote nothing.
    stalls: u32,
}

impl Request {
    /// Writes the first `len_bytes` of `buffer`, rounded up to the alignment, at `offset_bytes`.
    pub fn new(buffer: AlignedBuffer, offset_bytes: u64, len_bytes: usize) -> Self {
        let end = len_bytes.next_multiple_of(ALIGNMENT_BYTES);
        Self {
            end: end.min(buffer.len()),
            buffer,
            offset_bytes,
            start: 0,
            stalls: 0,
        }
    }

    /// What is left to write, and at which position.
    pub fn rest(&self) -> (u64, &[u8]) {
        let offset_bytes = self.offset_bytes + self.start as u64;
        (offset_bytes, &self.buffer[self.start..self.end])
    }
}

/// The end of a write, successful or not.
#[derive(Debug)]
pub struct Completion {
    /// The request, which gives its memory back.
    pub request: Request,
    /// Bytes of the rest that were written, or the error of the system.
    pub outcome: io::Result<usize>,
}

/// What to do after a write has ended.
#[derive(Debug)]
pub enum Settled {
    /// Nothing: all of it is written.
    Written(Request),
    /// Submit the request again, because a part is missing.
    Short(Request),
}

impl Completion {
    /// Compares what was written to `device` with what was requested.
    ///
    /// # Errors
    /// Those of the device, and "no progress" if it accepts nothing several times in a row.
    pub fn settle(self, device: &dyn Device) -> Result<Settled, IoError> {
        let Self {
            mut request,
            outcome,
        } = self;
        let taken = match outcome {
            Ok(taken) => taken,
            // These errors say that nothing happened and the write may be repeated.
            Err(e) if is_passing(&e) => 0,
            Err(e) => return Err(IoError::system("write to", device.path(), e)),
        };
        let reached = onward(device.caching(), request.start + taken);
        if reached >= request.end {
            return Ok(Settled::Written(request));
        }
        request.stalls = if reached > request.start {
            0
        } else {
            request.stalls + 1
        };
        if request.stalls == MOST_STALLS {
            let offset_bytes = request.offset_bytes + reached as u64;
            return Err(stalled(device.path(), offset_bytes));
        }
        request.start = reached;
        Ok(Settled::Short(request))
    }
}

/// What the thread that submits a write does until the write has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// It goes on, and looks for the end of the write later.
    GoesOn,
    /// It writes itself and sleeps: for a thread that has nothing else to do. The write is reported
    /// next.
    Sleeps,
}

/// Writes that are in flight while their submitter does something else: [`crate::Ring`], or a
/// simulated one. Dropping a queue waits for them.
pub trait Queue: Send + fmt::Debug {
    /// The file that the queue writes.
    fn device(&self) -> &dyn Device;

    /// The most writes in flight at once.
    fn depth(&self) -> usize;

    /// Writes that were submitted and have not been returned yet.
    fn in_flight(&self) -> usize;

    /// Starts a write. The caller makes sure that fewer than `depth` are in flight. A queue that
    /// cannot write in the way that `meanwhile` asks for writes in its own.
    ///
    /// # Errors
    /// The error of the system; the memory of the request stays with the queue. A failed write is
    /// not among them, but reported when it has ended.
    fn submit(&mut self, request: Request, meanwhile: Meanwhile) -> Result<(), IoError>;

    /// Returns a write that has ended, if there is one.
    fn poll(&mut self) -> Option<Completion>;

    /// Waits for a write to end; `None` if none is in flight.
    ///
    /// # Errors
    /// If the system refuses to wait.
    fn wait(&mut self) -> Result<Option<Completion>, IoError>;
}

/// Collects bytes into blocks and keeps as many of them in flight as its queue accepts. A failed
/// write is reported at the next full block, or at the end. It takes memory for one block more than
/// the depth.
#[derive(Debug)]
pub struct QueuedSink<Q: Queue> {
    queue: Q,
    block: AlignedBuffer,
    filled: usize,
    /// Bytes given to the queue; they are all written only once the queue is empty.
    submitted_bytes: u64,
    idle: Vec<AlignedBuffer>,
    reserve: Reserve,
    failed: bool,
}

impl<Q: Queue> QueuedSink<Q> {
    /// Writes to the queue's file, which must be empty. Room for `expected_bytes` is reserved at
    /// the first write; it is not an error if the file becomes longer or shorter.
    pub fn over(queue: Q, block_bytes: usize, expected_bytes: Option<u64>) -> Self {
        let block = || AlignedBuffer::zeroed(block_bytes.max(1));
        Self {
            idle: (0..queue.depth()).map(|_| block()).collect(),
            block: block(),
            queue,
            filled: 0,
            submitted_bytes: 0,
            reserve: Reserve::new(expected_bytes),
            failed: false,
        }
    }

    fn submit_block(&mut self) -> Result<(), IoError> {
        // Writes that have ended are looked at first, so that an error is reported early and their
        // buffers can be used again.
        while let Some(completion) = self.queue.poll() {
            self.settle(completion)?;
        }
        let end_bytes = self.submitted_bytes + self.block.len() as u64;
        self.reserve.reach(self.queue.device(), end_bytes)?;
        // All buffers are in flight when none is idle, so waiting for one write makes one
        // available.
        let next = loop {
            match self.idle.pop() {
                Some(buffer) => break buffer,
                None => self.settle_next()?,
            };
        };
        let buffer = std::mem::replace(&mut self.block, next);
        let len_bytes = buffer.len();
        let request = Request::new(buffer, self.submitted_bytes, len_bytes);
        self.queue.submit(request, Meanwhile::GoesOn)?;
        self.submitted_bytes = end_bytes;
        self.filled = 0;
        Ok(())
    }

    /// Waits for one write. Returns false if none is in flight.
    fn settle_next(&mut self) -> Result<bool, IoError> {
        match self.queue.wait()? {
            Some(completion) => self.settle(completion).map(|()| true),
            None => Ok(false),
        }
    }

    fn settle(&mut self, completion: Completion) -> Result<(), IoError> {
        match completion.settle(self.queue.device())? {
            Settled::Written(request) => {
                self.idle.push(request.buffer);
                Ok(())
            }
            Settled::Short(request) => self.queue.submit(request, Meanwhile::GoesOn),
        }
    }

    fn write_or_fail(&mut self, mut bytes: &[u8]) -> Result<(), IoError> {
        while !bytes.is_empty() {
            let take = bytes.len().min(self.block.len() - self.filled);
            self.block[self.filled..self.filled + take].copy_from_slice(&bytes[..take]);
            self.filled += take;
            bytes = &bytes[take..];
            if self.filled == self.block.len() {
                self.submit_block()?;
            }
        }
        Ok(())
    }

    fn finish_or_fail(&mut self, durability: Durability) -> Result<u64, IoError> {
        while self.settle_next()? {}
        let written_bytes = self.written_bytes();
        let device = self.queue.device();
        if self.filled > 0 {
            // The tail stays in the block, because a later write continues in it.
            let padded = self.filled.next_multiple_of(ALIGNMENT_BYTES);
            self.block[self.filled..padded].fill(0);
            write_whole(device, self.submitted_bytes, &self.block[..padded])?;
        }
        // The file is longer than its content by the padding and by the reserved room.
        device.set_len(written_bytes)?;
        self.reserve.cut(written_bytes);
        if durability == Durability::Stable {
            device.sync()?;
        }
        Ok(written_bytes)
    }

    /// Runs `work`, unless an earlier call failed: then there may be a hole in the file, and
    /// nothing must be written behind it.
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, IoError>,
    ) -> Result<T, IoError> {
        if self.failed {
            let path = self.queue.device().path().to_path_buf();
            return Err(IoError::Broken { path });
        }
        let done = work(self);
        self.failed = done.is_err();
        done
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

impl<Q: Queue> Sink for QueuedSink<Q> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), IoError> {
        self.guarded(|sink| sink.write_or_fail(bytes))
    }

    fn written_bytes(&self) -> u64 {
        self.submitted_bytes + self.filled as u64
    }

    fn finish(&mut self, durability: Durability) -> Result<u64, IoError> {
        self.guarded(|sink| sink.finish_or_fail(durability))
    }
}

/// A queue of depth one that writes within `submit`.
#[derive(Debug)]
pub struct InlineQueue<D: Device> {
    device: D,
    ended: Option<Completion>,
}

impl<D: Device> InlineQueue<D> {
    /// A queue that writes to `device`.
    pub fn new(device: D) -> Self {
        Self {
            device,
            ended: None,
        }
    }
}

impl<D: Device> Queue for InlineQueue<D> {
    fn device(&self) -> &dyn Device {
        &self.device
    }

    fn depth(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        usize::from(self.ended.is_some())
    }

    fn submit(&mut self, request: Request, _: Meanwhile) -> Result<(), IoError> {
        let (offset_bytes, rest) = request.rest();
        let outcome = match self.device.write_some_at(offset_bytes, rest) {
            Err(IoError::System { source, .. }) => Err(source),
            written => written.map_err(io::Error::other),
        };
        self.ended = Some(Completion { request, outcome });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.ended.take()
    }

    fn wait(&mut self) -> Result<Option<Completion>, IoError> {
        Ok(self.ended.take())
    }
}
