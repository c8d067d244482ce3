//! The log in files: appending, group commit, and the change from one segment to the next.

mod ahead;

use std::collections::VecDeque;
use std::sync::Arc;

use dyno_io::{AlignedBuffer, Completion, Queue, Request, Settled};

use crate::checkpoint::Checkpointer;
use crate::error::LogError;
use crate::group::{FRAME_BYTES, HEADER_BYTES, Header, Kind, Life, Open};
use crate::home::{Home, Options};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::segment::{self, Growing, Slot, WRITING};

/// Writes to one segment; a header, a skip and a short tail may be under way besides the groups.
const BESIDES: usize = 4;

/// A segment that is written.
#[derive(Debug)]
struct Writing {
    number: u64,
    index: u64,
    queue: Box<dyn Queue>,
}

/// A write under way: what it covers.
#[derive(Debug)]
struct Span {
    start: Lsn,
    end: Lsn,
    /// Whether it is a group of records, in a buffer of ours.
    group: bool,
    done: bool,
}

/// A log in files, driven by one thread that polls it and never waits in it.
#[derive(Debug)]
pub struct FileLog {
    home: Arc<Home>,
    options: Options,
    life: Life,
    layout: Layout,
    group: Open,
    idle: Vec<AlignedBuffer>,
    active: Writing,
    /// Earlier segments with writes under way.
    draining: Vec<Writing>,
    /// The file that is next, open already.
    ready: Option<Writing>,
    growing: Option<Growing>,
    growth_failure: Option<String>,
    slots: Vec<Slot>,
    spans: VecDeque<Span>,
    groups_in_flight: usize,
    durable: Lsn,
    failed: Option<String>,
}

impl FileLog {
    pub(crate) fn new(
        home: Arc<Home>,
        options: Options,
        life: Life,
        end: Lsn,
        mut slots: Vec<Slot>,
    ) -> Result<Self, LogError> {
        let layout = home.layout();
        let index = layout.index(end);
        let held = slots.iter().position(|slot| slot.index() == Some(index));
        let keep = layout.index(home.keep_from());
        let free = |slot: &Slot| slot.index().is_none_or(|index| index < keep);
        let Some(at) = held.or_else(|| slots.iter().position(free)) else {
            return Err(LogError::Full {
                directory: home.directory.clone(),
                segments: slots.len(),
                why: Some("none is free for the next records".to_owned()),
            });
        };
        if held.is_none() {
            let header = header(life, index, layout);
            segment::write_header(&*home.storage, &slots[at].path, &header)?;
            slots[at].header = Some(header);
        }
        let depth = options.depth + BESIDES;
        let active = Writing {
            number: slots[at].number,
            index,
            queue: segment::queue(&*home.storage, &slots[at].path, WRITING, depth)?,
        };
        let start = layout.past_header(end);
        home.set_durable(start);
        let buffer = || AlignedBuffer::zeroed(options.buffer_bytes);
        let room = layout.start(index + 1).0 - start.0;
        let mut log = Self {
            group: Open::new(buffer(), start, life, room),
            idle: (0..options.depth).map(|_| buffer()).collect(),
            home,
            options,
            life,
            layout,
            active,
            draining: Vec::new(),
            ready: None,
            growing: None,
            growth_failure: None,
            slots,
            spans: VecDeque::new(),
            groups_in_flight: 0,
            durable: start,
            failed: None,
        };
        log.prepare()?;
        Ok(log)
    }

    /// Copies `record` into the current buffer. It is durable when [`FileLog::durable`] reaches the
    /// position that is returned. A full buffer is written first.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::Full`] and [`LogError::RecordTooLarge`]: nothing was
    /// appended, and the log goes on. [`LogError::Poisoned`].
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, LogError> {
        self.check()?;
        if !self.group.fits(record) {
            self.turn(record)?;
        }
        Ok(self.group.push(record))
    }

    /// The longest record.
    pub fn most_record_bytes(&self) -> usize {
        let segment = (self.layout.segment_bytes as usize) - BLOCK_BYTES;
        self.options.buffer_bytes.min(segment) - HEADER_BYTES - FRAME_BYTES
    }

    /// Starts to write what was appended, if the device is free: if fewer writes are under way than
    /// [`Options::depth`]. Returns whether it did.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn submit(&mut self) -> Result<bool, LogError> {
        self.check()?;
        if self.group.is_empty() || self.groups_in_flight >= self.options.depth {
            return Ok(false);
        }
        self.submit_group()?;
        Ok(true)
    }

    /// Looks what has been written, without waiting, and prepares the next segment. Returns how far
    /// the log is on the disk.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn poll(&mut self) -> Result<Lsn, LogError> {
        self.check()?;
        let looked = self.look();
        self.poison_on(looked)?;
        self.prepare()?;
        Ok(self.durable)
    }

    /// How far the log is on the disk: each record that ends at or before this is.
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        self.group.end()
    }

    /// Writes under way.
    pub fn in_flight(&self) -> usize {
        self.spans.len()
    }

    /// Waits until everything appended is on the disk: for tools, which have nothing else to do.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn flush(&mut self) -> Result<Lsn, LogError> {
        while self.durable < self.group.end() {
            self.submit()?;
            self.wait()?;
            self.poll()?;
        }
        Ok(self.durable)
    }

    /// Waits until one write has ended, if one is under way.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn wait(&mut self) -> Result<(), LogError> {
        self.check()?;
        let busy = |writing: &&mut Writing| writing.queue.in_flight() > 0;
        let Some((index, ended)) = self
            .writings()
            .find(busy)
            .map(|writing| (writing.index, writing.queue.wait()))
        else {
            return Ok(());
        };
        let settled = match ended {
            Ok(Some(ended)) => self.settle(index, ended),
            Ok(None) => Ok(()),
            Err(error) => Err(error.into()),
        };
        self.poison_on(settled)
    }

    /// Writes checkpoints and backups of this log, from any thread.
    pub fn checkpointer(&self) -> Checkpointer {
        Checkpointer::new(Arc::clone(&self.home))
    }

    /// Flushes, and notes in the manifest that nothing before the end may be missing.
    ///
    /// # Errors
    /// [`LogError::Poisoned`], and the system's.
    pub fn close(mut self) -> Result<Lsn, LogError> {
        let durable = self.flush()?;
        self.home.change(|manifest| manifest.proven = durable)?;
        Ok(durable)
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.failed {
            None => Ok(()),
            Some(reason) => Err(LogError::Poisoned {
                directory: self.home.directory.clone(),
                reason: reason.clone(),
            }),
        }
    }

    fn poison_on<T>(&mut self, done: Result<T, LogError>) -> Result<T, LogError> {
        match done {
            Err(error) if !error.is_passing() => {
                self.failed = Some(error.to_string());
                self.check()?;
                Err(error)
            }
            done => done,
        }
    }

    /// Makes room for a record that the current group does not hold.
    fn turn(&mut self, record: &[u8]) -> Result<(), LogError> {
        if record.len() > self.most_record_bytes() {
            return Err(LogError::RecordTooLarge {
                len_bytes: record.len(),
                most_bytes: self.most_record_bytes(),
            });
        }
        if !self.group.is_empty() {
            if self.groups_in_flight >= self.options.depth {
                return Err(LogError::Busy {
                    in_flight: self.spans.len(),
                });
            }
            self.submit_group()?;
        }
        if !self.group.fits(record) {
            self.switch()?;
        }
        Ok(())
    }

    fn submit_group(&mut self) -> Result<(), LogError> {
        let span = self.group.seal(self.durable);
        let (start, end) = (self.group.at, Lsn(self.group.at.0 + span as u64));
        // There are as many idle buffers as groups may be under way, and one of those is free.
        let next = self.idle.pop();
        let next = next.unwrap_or_else(|| AlignedBuffer::zeroed(self.options.buffer_bytes));
        let room = self.layout.start(self.active.index + 1).0 - end.0;
        let group = Open::new(next, end, self.life, room);
        let buffer = std::mem::replace(&mut self.group, group).buffer;
        self.groups_in_flight += 1;
        self.write(start, end, buffer, true)
    }

    /// Starts a write to the active segment.
    fn write(
        &mut self,
        start: Lsn,
        end: Lsn,
        buffer: AlignedBuffer,
        group: bool,
    ) -> Result<(), LogError> {
        self.spans.push_back(Span {
            start,
            end,
            group,
            done: false,
        });
        let request = Request::new(
            buffer,
            self.layout.offset(start),
            (end.0 - start.0) as usize,
        );
        let submitted = self
            .make_place()
            .and_then(|()| Ok(self.active.queue.submit(request)?));
        self.poison_on(submitted)
    }

    /// A queue without io_uring has one place only, and then writes while it is submitted to.
    fn make_place(&mut self) -> Result<(), LogError> {
        while self.active.queue.in_flight() >= self.active.queue.depth() {
            let Some(ended) = self.active.queue.wait()? else {
                return Ok(());
            };
            self.settle(self.active.index, ended)?;
        }
        Ok(())
    }

    /// Goes on in the next segment. The current group is empty.
    fn switch(&mut self) -> Result<(), LogError> {
        if self.ready.is_none() {
            self.growth_failure = None;
            self.prepare()?;
        }
        let Some(mut next) = self.ready.take() else {
            return Err(self.no_segment());
        };
        let from = self.group.at;
        let index = self.active.index + 1;
        let start = self.layout.start(index);
        if from < start {
            let mut block = AlignedBuffer::zeroed(BLOCK_BYTES);
            let skip = Header {
                at: from,
                epoch: self.life.epoch,
                durable: self.durable,
                identity: self.life.identity,
                body_bytes: 0,
                records: 0,
                kind: Kind::Skip,
            };
            skip.write(&mut block);
            self.write(from, Lsn(from.0 + BLOCK_BYTES as u64), block, false)?;
            // What is skipped needs no write.
            if let Some(last) = self.spans.back_mut() {
                last.end = start;
            }
        }
        next.index = index;
        let header = header(self.life, index, self.layout);
        for slot in &mut self.slots {
            if slot.number == next.number {
                slot.header = Some(header);
            }
        }
        self.draining
            .push(std::mem::replace(&mut self.active, next));
        let first = self.layout.first_group(index);
        self.write(start, first, header.block(), false)?;
        let room = self.layout.start(index + 1).0 - first.0;
        let buffer = std::mem::replace(&mut self.group.buffer, AlignedBuffer::zeroed(0));
        self.group = Open::new(buffer, first, self.life, room);
        Ok(())
    }

    fn no_segment(&self) -> LogError {
        if self.growing.is_some() {
            return LogError::Busy {
                in_flight: self.spans.len(),
            };
        }
        LogError::Full {
            directory: self.home.directory.clone(),
            segments: self.slots.len(),
            why: self.growth_failure.clone(),
        }
    }

    fn look(&mut self) -> Result<(), LogError> {
        for at in 0..self.draining.len() {
            while let Some(ended) = self.draining[at].queue.poll() {
                self.settle(self.draining[at].index, ended)?;
            }
        }
        while let Some(ended) = self.active.queue.poll() {
            self.settle(self.active.index, ended)?;
        }
        self.draining
            .retain(|writing| writing.queue.in_flight() > 0);
        Ok(())
    }

    fn writings(&mut self) -> impl Iterator<Item = &mut Writing> {
        self.draining.iter_mut().chain([&mut self.active])
    }

    fn settle(&mut self, index: u64, ended: Completion) -> Result<(), LogError> {
        let Some(writing) = self.writings().find(|writing| writing.index == index) else {
            return Ok(());
        };
        let request = match ended.settle(writing.queue.device())? {
            Settled::Written(request) => request,
            Settled::Short(request) => return Ok(writing.queue.submit(request)?),
        };
        let start = Lsn(self.layout.start(index).0 + request.offset_bytes);
        if let Some(span) = self.spans.iter_mut().find(|span| span.start == start) {
            span.done = true;
            if span.group {
                self.groups_in_flight -= 1;
                self.idle.push(request.buffer);
            }
        }
        while let Some(span) = self.spans.pop_front_if(|span| span.done) {
            self.durable = span.end;
        }
        self.home.set_durable(self.durable);
        Ok(())
    }
}

fn header(life: Life, index: u64, layout: Layout) -> segment::Header {
    segment::Header {
        life,
        index,
        segment_bytes: layout.segment_bytes,
    }
}
