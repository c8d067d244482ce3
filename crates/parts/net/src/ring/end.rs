//! One side of a pair of rings: writing, reading and sleeping.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::control::{self, Control, Reader, Writer};
use super::memory::{Direction, Memory, futex_wait, futex_wake};
use super::{MOST_BYTES, RingError};

/// The longest single sleep on a futex. Its word lies in memory that the other process may
/// overwrite, so a lost wake-up costs this much at most.
const MOST_SLEEP: Duration = Duration::from_millis(100);

/// What is left to do so that the other end notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// Nothing: the other end is awake, or was woken.
    Done,
    /// The other end sleeps in poll or epoll, and needs a byte on the socket beside the ring.
    Bell,
}

/// Both rings as one process sees them.
#[derive(Debug)]
pub struct RingEnd {
    /// The ring that this side writes.
    pub sender: RingSender,
    /// The ring that the other side writes.
    pub receiver: RingReceiver,
}

impl RingEnd {
    /// Makes the memory of two rings of `capacity` bytes each (a power of two from
    /// [`super::LEAST_BYTES`]), and returns the descriptor to hand to the other process.
    pub fn make(capacity: u32) -> Result<(RingEnd, OwnedFd), RingError> {
        let (memory, fd) = Memory::create(capacity)?;
        Ok((
            RingEnd::from_memory(Arc::new(memory), Direction::ToOpener),
            fd,
        ))
    }

    /// Opens the memory that another process made. That process may be hostile, so everything is
    /// checked. Rings of more than `most_capacity` bytes are refused.
    pub fn open(fd: OwnedFd, most_capacity: u32) -> Result<RingEnd, RingError> {
        let memory = Memory::open(fd, most_capacity.min(MOST_BYTES))?;
        Ok(RingEnd::from_memory(Arc::new(memory), Direction::ToMaker))
    }

    /// Makes both ends within one process.
    pub fn pair(capacity: u32) -> Result<(RingEnd, RingEnd), RingError> {
        let (memory, _) = Memory::create(capacity)?;
        let memory = Arc::new(memory);
        Ok((
            RingEnd::from_memory(Arc::clone(&memory), Direction::ToOpener),
            RingEnd::from_memory(memory, Direction::ToMaker),
        ))
    }

    fn from_memory(memory: Arc<Memory>, sends: Direction) -> RingEnd {
        let receives = match sends {
            Direction::ToOpener => Direction::ToMaker,
            Direction::ToMaker => Direction::ToOpener,
        };
        let capacity = u64::from(memory.capacity());
        RingEnd {
            sender: RingSender {
                memory: Arc::clone(&memory),
                direction: sends,
                writer: Writer::new(capacity),
            },
            receiver: RingReceiver {
                memory,
                direction: receives,
                reader: Reader::new(capacity),
            },
        }
    }
}

/// The writing end of one ring. It is used by one thread at a time.
#[derive(Debug)]
pub struct RingSender {
    memory: Arc<Memory>,
    direction: Direction,
    writer: Writer,
}

impl RingSender {
    /// The size of the ring in bytes.
    pub fn capacity(&self) -> u32 {
        self.memory.capacity()
    }

    /// Bytes that can be written now, looked up again only if less than `wanted` are known to be
    /// free.
    pub fn room(&mut self, wanted: usize) -> Result<usize, RingError> {
        let control = self.memory.control(self.direction);
        Ok(self.writer.room(control, wanted as u64)? as usize)
    }

    /// Writes as many of `bytes` as there is room for, and returns how many. The reader sees them
    /// after [`RingSender::publish`], so that several frames can be shown at once.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, RingError> {
        let count = self.room(bytes.len())?.min(bytes.len());
        self.memory
            .write(self.direction, self.writer.tail(), &bytes[..count]);
        self.writer.wrote(count as u64);
        Ok(count)
    }

    /// Shows the reader all that was written.
    pub fn publish(&mut self) -> Wake {
        if !self.writer.unpublished() {
            return Wake::Done;
        }
        let control = self.memory.control(self.direction);
        let how = self.writer.publish(control);
        wake(how, control, |control| &control.reader_sleeps.0)
    }

    /// Announces that this end is about to sleep in poll or epoll until there is room. Returns
    /// false if there is some now.
    pub fn announce_sleep(&mut self) -> Result<bool, RingError> {
        let control = self.memory.control(self.direction);
        Ok(self.writer.announce_sleep(control, 1, control::ON_BELL)?)
    }

    /// Withdraws the announcement after a sleep.
    pub fn woke(&self) {
        self.writer.woke(self.memory.control(self.direction));
    }

    /// Waits until there is room for `wanted` bytes (at most the capacity): spins for `spin`, then
    /// sleeps on a futex. Returns false if there is none after `wait`.
    pub fn wait_room(
        &mut self,
        wanted: usize,
        spin: Duration,
        wait: Duration,
    ) -> Result<bool, RingError> {
        let wanted = wanted.min(self.capacity() as usize) as u64;
        let memory = Arc::clone(&self.memory);
        let control = memory.control(self.direction);
        let writer = &mut self.writer;
        spin_then_sleep(spin, wait, |step| match step {
            Step::Look => Ok(writer.room(control, wanted)? >= wanted),
            Step::Sleep(for_at_most) => {
                if writer.announce_sleep(control, wanted, control::ON_FUTEX)? {
                    futex_wait(&control.writer_sleeps.0, control::ON_FUTEX, for_at_most);
                }
                writer.woke(control);
                Ok(writer.room(control, wanted)? >= wanted)
            }
        })
    }
}

/// The reading end of one ring. It is used by one thread at a time.
#[derive(Debug)]
pub struct RingReceiver {
    memory: Arc<Memory>,
    direction: Direction,
    reader: Reader,
}

impl RingReceiver {
    /// Bytes that can be read now.
    pub fn available(&mut self) -> Result<usize, RingError> {
        let control = self.memory.control(self.direction);
        Ok(self.reader.available(control)? as usize)
    }

    /// Copies what is there into `into`, as much as fits, and gives its room back to the writer.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(usize, Wake), RingError> {
        let count = self.available()?.min(into.len());
        if count == 0 {
            return Ok((0, Wake::Done));
        }
        self.memory
            .read(self.direction, self.reader.head(), &mut into[..count]);
        let control = self.memory.control(self.direction);
        let how = self.reader.release(control, count as u64);
        Ok((
            count,
            wake(how, control, |control| &control.writer_sleeps.0),
        ))
    }

    /// Announces that this end is about to sleep in poll or epoll until bytes come. Returns false
    /// if there are some now.
    pub fn announce_sleep(&mut self) -> Result<bool, RingError> {
        let control = self.memory.control(self.direction);
        Ok(self.reader.announce_sleep(control, control::ON_BELL)?)
    }

    /// Withdraws the announcement after a sleep.
    pub fn woke(&self) {
        self.reader.woke(self.memory.control(self.direction));
    }

    /// Waits until there is something to read: spins for `spin`, then sleeps on a futex. Returns
    /// false if nothing came within `wait`.
    pub fn wait(&mut self, spin: Duration, wait: Duration) -> Result<bool, RingError> {
        let memory = Arc::clone(&self.memory);
        let control = memory.control(self.direction);
        let reader = &mut self.reader;
        spin_then_sleep(spin, wait, |step| match step {
            Step::Look => Ok(reader.available(control)? > 0),
            Step::Sleep(for_at_most) => {
                if reader.announce_sleep(control, control::ON_FUTEX)? {
                    futex_wait(&control.reader_sleeps.0, control::ON_FUTEX, for_at_most);
                }
                reader.woke(control);
                Ok(reader.available(control)? > 0)
            }
        })
    }
}

enum Step {
    Look,
    Sleep(Duration),
}

/// Looks at the ring between two reads of the clock.
const LOOKS: u32 = 64;

fn spin_then_sleep(
    spin: Duration,
    wait: Duration,
    mut step: impl FnMut(Step) -> Result<bool, RingError>,
) -> Result<bool, RingError> {
    if step(Step::Look)? {
        return Ok(true);
    }
    let began = Instant::now();
    loop {
        let waited = began.elapsed();
        let Some(left) = wait.checked_sub(waited).filter(|left| !left.is_zero()) else {
            return Ok(false);
        };
        if waited >= spin {
            if step(Step::Sleep(left.min(MOST_SLEEP)))? {
                return Ok(true);
            }
            continue;
        }
        for _ in 0..LOOKS {
            if step(Step::Look)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
    }
}

/// Wakes the other end in the way that it asked for. An unknown way, which only a broken peer asks
/// for, counts as the bell: one more byte on its socket does no harm.
fn wake(
    how: u32,
    control: &Control,
    word: impl Fn(&Control) -> &std::sync::atomic::AtomicU32,
) -> Wake {
    match how {
        control::AWAKE => Wake::Done,
        control::ON_FUTEX => {
            futex_wake(word(control));
            Wake::Done
        }
        _ => Wake::Bell,
    }
}
