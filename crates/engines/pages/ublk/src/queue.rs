//! A queue of requests and the thread that serves it. Has `unsafe`: commands that point at buffers
//! of ours, and those buffers as slices.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use dyno_pages::{PAGE_BYTES, StoreError};
use dyno_pages_disk::{Disk, Head, Zeros};
use io_uring::{IoUring, opcode, types};

use crate::UblkError;
use crate::layout::{COMMIT_AND_FETCH, DESCRIPTOR_BYTES, Descriptor, FETCH, MOST_DEPTH, QueueBody};
use crate::mapping::Mapping;

/// A queue with its descriptors, its buffers and its ring.
pub struct Queue {
    file: Arc<File>,
    number: u16,
    depth: u16,
    most_bytes: u32,
    descriptors: Mapping,
    buffers: Mapping,
    ring: IoUring,
}

impl Queue {
    /// Maps the descriptors of queue `number` of the device behind `file`, and allocates its
    /// buffers.
    pub fn new(
        file: Arc<File>,
        number: u16,
        depth: u16,
        most_bytes: u32,
    ) -> Result<Self, UblkError> {
        let stride = usize::from(MOST_DEPTH) * DESCRIPTOR_BYTES;
        let offset = stride.next_multiple_of(PAGE_BYTES) * usize::from(number);
        let bytes = (usize::from(depth) * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
        Ok(Self {
            descriptors: Mapping::descriptors(&file, offset as i64, bytes)?,
            buffers: Mapping::buffers(usize::from(depth) * most_bytes as usize)?,
            ring: IoUring::new(depth.next_power_of_two().into())
                .map_err(UblkError::system("make a ring for a queue"))?,
            file,
            number,
            depth,
            most_bytes,
        })
    }

    /// Serves requests until the device is stopped. All commands come from one thread, as the
    /// driver demands.
    pub fn run(mut self, disk: &Disk) -> Result<(), UblkError> {
        let failed = |error| UblkError::system("serve a queue")(error);
        let mut head = disk.head()?;
        for tag in 0..self.depth {
            self.push(FETCH, tag, 0).map_err(failed)?;
        }
        // Each slot always has one command under way, in which the driver brings the next request.
        // The queue ends when the driver has returned the commands of all slots.
        let mut open = self.depth;
        let mut completions = Vec::with_capacity(self.depth.into());
        while open > 0 {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
                Ok(_) => {}
            }
            completions.extend(
                self.ring
                    .completion()
                    .map(|done| (done.user_data() as u16, done.result())),
            );
            for (tag, result) in completions.drain(..) {
                match -result {
                    0 => {
                        let result = self.serve(&mut head, tag);
                        self.push(COMMIT_AND_FETCH, tag, result).map_err(failed)?;
                    }
                    // The device is being stopped; this slot gets no more requests.
                    libc::ENODEV => open -= 1,
                    errno => return Err(failed(io::Error::from_raw_os_error(errno))),
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, command: u32, tag: u16, result: i32) -> io::Result<()> {
        let body = QueueBody {
            queue: self.number,
            tag,
            result,
            address: self.buffers.address(self.buffer_at(tag)),
        };
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd16::new(fd, command)
            .cmd(body.bytes())
            .build()
            .user_data(tag.into());
        // SAFETY: the buffer lives as long as the ring, and is not touched here until the command
        // is done.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // The ring has room for one command of each slot, and a slot never has two.
        pushed.map_err(|_| io::ErrorKind::ResourceBusy.into())
    }

    fn buffer_at(&self, tag: u16) -> usize {
        usize::from(tag) * self.most_bytes as usize
    }

    /// Serves one request. Returns the bytes done, or a negative error number.
    fn serve(&mut self, head: &mut Head<'_>, tag: u16) -> i32 {
        let at = usize::from(tag) * DESCRIPTOR_BYTES;
        let request = Descriptor::parse(&self.descriptors.copy(at));
        let from = self.buffer_at(tag);
        // The descriptor was copied out of the shared memory once, so the length that is checked
        // here is the one that is used.
        let done = match request.operation {
            0 | 1 if request.bytes > self.most_bytes.into() => return -libc::EINVAL,
            0 => {
                // SAFETY: the request is with us; buffers were made by `Mapping::buffers`.
                let into = unsafe { self.buffers.slice(from, request.bytes as usize) };
                head.read(request.offset, into)
            }
            1 => {
                // SAFETY: see above.
                let bytes = unsafe { self.buffers.slice(from, request.bytes as usize) };
                head.write(request.offset, bytes)
            }
            // A flush has nothing to do: every write that was answered is in the store's memory,
            // which is all that this device promises.
            2 => return 0,
            3 => head.zero(request.offset, request.bytes, Zeros::Free),
            5 => head.zero(request.offset, request.bytes, Zeros::Keep),
            _ => return -libc::EOPNOTSUPP,
        };
        match done.map_err(|error: StoreError| error.errno()) {
            Ok(()) => request.bytes as i32,
            Err(errno) => -errno,
        }
    }
}
