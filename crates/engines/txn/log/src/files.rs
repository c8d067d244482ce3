//! The log in files: appending, group commit, and the switch from one segment to the next.

mod ahead;

use std::collections::VecDeque;
use std::sync::Arc;

use dyno_io::{AlignedBuffer, Completion, Meanwhile, Queue, Request, Settled};

use crate::checkpoint::Checkpointer;
use crate::error::LogError;
use crate::group::{FRAME_BYTES, HEADER_BYTES, Header, Kind, Life, Open};
use crate::home::{Home, Options};
use crate::position::{BLOCK_BYTES, Layout, Lsn};
use crate::segment::{self, Growing, Slot, WRITING};

/// Places in a segment's queue besides those for groups: for a header and a skip, with some to
/// spare.
const BESIDES: usize = 4;

/// A segment that has writes in flight or gets the next ones.
#[derive(Debug)]
struct Writing {
    number: u64,
    index: u64,
    queue: Box<dyn Queue>,
}

/// A write in flight, and the positions that become durable with it.
#[derive(Debug)]
struct Span {
    start: Lsn,
    end: Lsn,
    /// Whether it is a group of records, whose buffer goes back to the idle ones.
    group: bool,
    done: bool,
}

/// A log in files. One thread owns and polls it, and no call but [`FileLog::flush`],
/// [`FileLog::wait`], [`FileLog::close`] and a [`FileLog::submit`] that sleeps waits for the disk.
#[derive(Debug)]
pub struct FileLog {
    home: Arc<Home>,
    options: Options,
    life: Life,
    layout: Layout,
    group: Open,
    idle: Vec<AlignedBuffer>,
    active: Writing,
    /// Earlier segments that still have writes in flight.
    draining: Vec<Writing>,
    /// The file of the next segment, open already.
    ready: Option<Writing>,
    growing: Option<Growing>,
    growth_failure: Option<String>,
    slots: Vec<Slot>,
    /// Writes in flight, in the order of their positions.
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
        // A crash may have ended the log exactly at the end of a segment. Then no file holds the
        // next one, and a free file becomes it.
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
        // `past_header`: the header was written above, or was read by recovery, so it is durable.
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

    /// Copies `record` into the current buffer. The record is durable when [`FileLog::durable`]
    /// reaches the position that is returned. A full buffer is written first.
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

    /// The longest record in bytes: it must fit into one buffer and into one segment.
    pub fn most_record_bytes(&self) -> usize {
        let segment = (self.layout.segment_bytes as usize) - BLOCK_BYTES;
        self.options.buffer_bytes.min(segment) - HEADER_BYTES - FRAME_BYTES
    }

    /// Starts to write what was appended, unless [`Options::depth`] groups are in flight already,
    /// or one is and the next would not fill a block. Returns whether it did. Even of a write
    /// through which the thread slept, only [`FileLog::poll`] finds the end.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn submit(&mut self, meanwhile: Meanwhile) -> Result<bool, LogError> {
        self.check()?;
        if self.group.is_empty() || self.groups_in_flight >= self.options.depth {
            return Ok(false);
        }
        // A write costs the same whether its block is full or not. Until the one in flight has
        // ended, records that come one by one would each pay for a block, and share it otherwise.
        if self.groups_in_flight > 0 && !self.group.fills_block() {
            return Ok(false);
        }
        self.submit_group(meanwhile)?;
        Ok(true)
    }

    /// Handles the writes that have ended, without waiting, and prepares the next segment. Returns
    /// how far the log is on the disk.
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

    /// How far the log is on the disk. Each record that ends at or before this position is durable.
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        self.group.end()
    }

    /// Writes that were submitted and have not ended, headers included.
    pub fn in_flight(&self) -> usize {
        self.spans.len()
    }

    /// Waits until everything appended is on the disk. It is for tools, which have nothing else to
    /// do.
    ///
    /// # Errors
    /// [`LogError::Poisoned`].
    pub fn flush(&mut self) -> Result<Lsn, LogError> {
        // `submit` may refuse because too many groups are in flight. The wait then ends one of
        // them, so each round makes progress.
        while self.durable < self.group.end() {
            self.submit(Meanwhile::GoesOn)?;
            self.wait()?;
            self.poll()?;
        }
        Ok(self.durable)
    }

    /// Waits until one write has ended, if any is in flight.
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

    /// A handle that writes checkpoints and backups of this log from any thread.
    pub fn checkpointer(&self) -> Checkpointer {
        Checkpointer::new(Arc::clone(&self.home))
    }

    /// Flushes the log, and notes in the manifest that nothing before the end may be missing. A
    /// later recovery then reports damage to the last writes, which it could not tell from a crash
    /// otherwise.
    ///
    /// # Errors
    /// [`LogError::Poisoned`], and I/O errors.
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

    /// After a failed write the log is unusable for good. A second attempt may succeed without the
    /// bytes being on the disk, because the kernel drops dirty pages once it has reported the
    /// failure.
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

    /// Makes room for a record that does not fit into the current group: begins the next group and,
    /// where the segment is full, the next segment.
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
            self.submit_group(Meanwhile::GoesOn)?;
            // The next group may be at the end of its segment, with less room than the record
            // needs.
        }
        if !self.group.fits(record) {
            self.switch()?;
        }
        Ok(())
    }

    fn submit_group(&mut self, meanwhile: Meanwhile) -> Result<(), LogError> {
        let span = self.group.seal(self.durable);
        let (start, end) = (self.group.at, Lsn(self.group.at.0 + span as u64));
        // One buffer is idle for each group that may still be submitted, and the caller has checked
        // that one may. The allocation only avoids a panic here.
        let next = self.idle.pop();
        let next = next.unwrap_or_else(|| AlignedBuffer::zeroed(self.options.buffer_bytes));
        let room = self.layout.start(self.active.index + 1).0 - end.0;
        let group = Open::new(next, end, self.life, room);
        let buffer = std::mem::replace(&mut self.group, group).buffer;
        self.groups_in_flight += 1;
        self.write_block(start, end, buffer, true, meanwhile)
    }

    /// Starts a write to the active segment, and notes the positions that it covers.
    fn write_block(
        &mut self,
        start: Lsn,
        end: Lsn,
        buffer: AlignedBuffer,
        group: bool,
        meanwhile: Meanwhile,
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
        // After a failure the span stays and is never done, so nothing behind it becomes durable.
        let submitted = self.make_place().and_then(|()| {
            self.active.queue.submit(request, meanwhile)?;
            Ok(())
        });
        self.poison_on(submitted)
    }

    /// A queue without io_uring has one place and writes while a request is submitted, so its last
    /// write may have to be collected first.
    fn make_place(&mut self) -> Result<(), LogError> {
        while self.active.queue.in_flight() >= self.active.queue.depth() {
            let Some(ended) = self.active.queue.wait()? else {
                return Ok(());
            };
            self.settle(self.active.index, ended)?;
        }
        Ok(())
    }

    /// Continues in the next segment. The caller has made sure that the current group is empty.
    fn switch(&mut self) -> Result<(), LogError> {
        // The growth may have failed long ago, for example because the disk was full. It is tried
        // again now that the segment is needed.
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
        // Readers of the old segment find the skip and go to the next one. Without it the unused
        // end would look like the end of the log.
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
            let end = Lsn(from.0 + BLOCK_BYTES as u64);
            self.write_block(from, end, block, false, Meanwhile::GoesOn)?;
            // What is skipped needs no write, so the span of the skip ends at the next segment.
            if let Some(last) = self.spans.back_mut() {
                last.end = start;
            }
        }
        next.index = index;
        // The slot is marked as used before anything else is prepared, or `prepare` would take its
        // file again.
        let header = header(self.life, index, self.layout);
        for slot in &mut self.slots {
            if slot.number == next.number {
                slot.header = Some(header);
            }
        }
        self.draining
            .push(std::mem::replace(&mut self.active, next));
        // The header is written to the new segment's queue like a group. No group of the segment is
        // durable before it, because spans become durable in order.
        let first = self.layout.first_group(index);
        self.write_block(start, first, header.block(), false, Meanwhile::GoesOn)?;
        let room = self.layout.start(index + 1).0 - first.0;
        // The current group is empty, so its buffer goes to the first group of the new segment.
        let buffer = std::mem::replace(&mut self.group.buffer, AlignedBuffer::zeroed(0));
        self.group = Open::new(buffer, first, self.life, room);
        Ok(())
    }

    /// Collects the writes that have ended, in all segments that are written.
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

    /// All segments that are written, the active one last.
    fn writings(&mut self) -> impl Iterator<Item = &mut Writing> {
        self.draining.iter_mut().chain([&mut self.active])
    }

    /// Notes that a write has ended, and advances `durable` over all writes that have ended in
    /// order.
    fn settle(&mut self, index: u64, ended: Completion) -> Result<(), LogError> {
        let Some(writing) = self.writings().find(|writing| writing.index == index) else {
            return Ok(());
        };
        // The device may have taken a part only. The rest is submitted again, and the span waits.
        let request = match ended.settle(writing.queue.device())? {
            Settled::Written(request) => request,
            Settled::Short(request) => {
                return Ok(writing.queue.submit(request, Meanwhile::GoesOn)?);
            }
        };
        let start = Lsn(self.layout.start(index).0 + request.offset_bytes);
        if let Some(span) = self.spans.iter_mut().find(|span| span.start == start) {
            span.done = true;
            if span.group {
                self.groups_in_flight -= 1;
                self.idle.push(request.buffer);
            }
        }
        // Writes may end in any order. A later one counts only when all before it have ended, or a
        // crash would leave a gap in what was reported as durable.
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
