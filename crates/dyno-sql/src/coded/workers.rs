//! The scan itself: threads that take row groups, each with arrays of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::metrics::Count;
use dyno_formats::parquet_read::{
    BLOCK_ROWS, CodeBlock, CodeReader, CodedInts, ColumnKind, IntReader, ParquetFile, ReadError,
    StringDictionary,
};

use super::groups::Groups;
use super::names::Names;
use super::slots::Slots;
use super::spec::{Located, Spec};

/// Names looked up together.
const LOOK_UP_BATCH: usize = 16;

/// A file of the table and where the query's columns are in it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: Arc<ParquetFile>,
    pub(super) located: Located,
}

/// What all threads of one scan share.
pub(super) struct Scan<'a> {
    pub(super) spec: &'a Spec,
    pub(super) sources: &'a [Source],
    pub(super) threads: usize,
    pub(super) pool: &'a Arc<dyn MemoryPool>,
    /// Set when nobody waits for the answer any more, or a thread has failed.
    pub(super) stop: &'a AtomicBool,
    pub(super) rows_scanned: Count,
}

/// Group numbers by name and the results of each.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) names: Names,
    pub(super) groups: Groups,
}

impl Scan<'_> {
    /// Reads every row group once and merges what the threads have found.
    pub(super) fn run(&self) -> Result<Answer> {
        let next: Vec<AtomicUsize> = self.sources.iter().map(|_| AtomicUsize::new(0)).collect();
        let row_groups: usize = self
            .sources
            .iter()
            .map(|source| source.file.row_groups())
            .sum();
        let threads = self.threads.clamp(1, row_groups.max(1));
        let answers: Vec<Result<Answer>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|first| {
                    let next = &next;
                    scope.spawn(move || {
                        let answer = Worker::new(self).run(first, next);
                        if answer.is_err() {
                            self.stop.store(true, Ordering::Relaxed);
                        }
                        answer
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| {
                    worker.join().unwrap_or_else(|_| {
                        Err(DataFusionError::Execution(
                            "a scan thread panicked".to_owned(),
                        ))
                    })
                })
                .collect()
        });
        let mut answers = answers.into_iter().collect::<Result<Vec<_>>>()?.into_iter();
        let mut merged = answers.next().unwrap_or_else(|| Answer {
            names: Names::default(),
            groups: Groups::new(&self.spec.values),
        });
        for other in answers {
            merged.merge(&other);
        }
        Ok(merged)
    }
}

impl Answer {
    fn merge(&mut self, other: &Answer) {
        self.take(
            0..other.names.len(),
            |number| other.names.get(number),
            |groups, to, from| groups.add(to, &other.groups, from),
        );
    }

    /// Adds the groups that `which` lists under their names; `add` adds one to one of the answer.
    fn take<'n>(
        &mut self,
        which: impl Iterator<Item = usize>,
        name: impl Fn(usize) -> &'n [u8],
        mut add: impl FnMut(&mut Groups, usize, usize),
    ) {
        let mut which = which.peekable();
        while which.peek().is_some() {
            // The look-ups of a batch wait for memory side by side, not one behind the other.
            let mut batch = [(0, 0); LOOK_UP_BATCH];
            let mut len = 0;
            for (slot, from) in batch.iter_mut().zip(which.by_ref().take(LOOK_UP_BATCH)) {
                *slot = (from, Names::hash(name(from)));
                len += 1;
            }
            let batch = &batch[..len];
            self.names.prepare(batch.iter().map(|(_, hash)| *hash));
            for (from, hash) in batch {
                let to = self.names.number(name(*from), *hash);
                if to == self.groups.counts.len() {
                    self.groups.resize(to + 1);
                }
                add(&mut self.groups, to, *from);
            }
        }
    }
}

struct Worker<'a> {
    scan: &'a Scan<'a>,
    answer: Answer,
    /// Of the file being read: its longest dictionary so far, and results by its codes.
    dictionary: Option<StringDictionary>,
    slots: Slots,
    by_code: Groups,
    narrow: bool,
    reservation: MemoryReservation,
    codes: Box<[u32; BLOCK_ROWS]>,
    values: Box<[i64; BLOCK_ROWS]>,
    value_codes: Box<[u32; BLOCK_ROWS]>,
    /// Of the value column's dictionary in the row group being read; empty until it is needed.
    addends: Vec<u64>,
}

impl<'a> Worker<'a> {
    fn new(scan: &'a Scan<'a>) -> Self {
        let groups = || Groups::new(&scan.spec.values);
        Self {
            scan,
            answer: Answer {
                names: Names::default(),
                groups: groups(),
            },
            dictionary: None,
            slots: Slots::default(),
            by_code: groups(),
            narrow: scan
                .sources
                .iter()
                .all(|source| scan.spec.is_narrow(&source.located)),
            reservation: MemoryConsumer::new("CodedAggregateExec").register(scan.pool),
            codes: Box::new([0; BLOCK_ROWS]),
            values: Box::new([0; BLOCK_ROWS]),
            value_codes: Box::new([0; BLOCK_ROWS]),
            addends: Vec::new(),
        }
    }

    /// Starts at file number `first` and goes on to the others in turn, so that threads share a
    /// file (and merge its codes twice) only when there is no other left.
    fn run(mut self, first: usize, next: &[AtomicUsize]) -> Result<Answer> {
        let files = self.scan.sources.len();
        // First the files that nobody has begun, then what is left of the others.
        for helping in [false, true] {
            for step in 0..files {
                let index = (first + step) % files;
                if !helping && !begin(&next[index]) {
                    continue;
                }
                self.read_file(index, &next[index], !helping)?;
            }
        }
        Ok(self.answer)
    }

    /// Reads row groups of a file until all are taken; when this thread began it, number 0 is
    /// its own already.
    fn read_file(&mut self, index: usize, next: &AtomicUsize, began: bool) -> Result<()> {
        let scan = self.scan;
        let source = &scan.sources[index];
        let mut own = began.then_some(0);
        loop {
            let row_group = own
                .take()
                .unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
            if row_group >= source.file.row_groups() || scan.stop.load(Ordering::Relaxed) {
                break;
            }
            self.read_row_group(source, row_group)
                .map_err(|error| match error {
                    Failure::Read(error) => DataFusionError::Execution(format!(
                        "{}, row group {row_group}: {error}",
                        source.file.path().display()
                    )),
                    Failure::Memory(error) => error,
                })?;
        }
        self.leave_file();
        Ok(())
    }

    fn read_row_group(&mut self, source: &Source, row_group: usize) -> Result<(), Failure> {
        let mut keys = source.file.codes(row_group, source.located.key)?;
        let mut columns = Vec::with_capacity(source.located.values.len());
        for (column, kind) in &source.located.values {
            columns.push((source.file.ints(row_group, *column, *kind)?, *kind));
        }
        self.enter_dictionary(&keys)?;
        self.addends.clear();
        let mut rows = 0;
        while !self.scan.stop.load(Ordering::Relaxed) {
            let block = keys.next(&mut self.codes)?;
            let taken = match block {
                CodeBlock::End => break,
                CodeBlock::Same(taken, _) | CodeBlock::Codes(taken) => taken,
            };
            if self.narrow {
                self.take_narrow(block, taken, &mut columns)?;
            } else {
                self.take_wide(block, taken, &mut columns)?;
            }
            rows += taken as u64;
        }
        let expected = source.file.row_group_rows(row_group);
        if rows != expected && !self.scan.stop.load(Ordering::Relaxed) {
            return Err(Failure::Read(ReadError::Damaged {
                reason: format!("{rows} rows where the footer says {expected}"),
            }));
        }
        self.scan.rows_scanned.add(rows as usize);
        Ok(())
    }

    fn enter_dictionary(&mut self, keys: &CodeReader) -> Result<(), Failure> {
        let (page, len) = keys.dictionary();
        let grown = match &mut self.dictionary {
            Some(dictionary) => dictionary.grow(page, len)?,
            None => false,
        };
        if !grown {
            self.leave_file();
            self.dictionary = Some(StringDictionary::new(page.clone(), len)?);
        }
        if self.narrow {
            self.slots.resize(len);
        } else {
            self.by_code.resize(len.max(self.by_code.counts.len()));
        }
        self.reserve()
    }

    fn reserve(&mut self) -> Result<(), Failure> {
        let codes = self.dictionary.as_ref().map_or(0, StringDictionary::len);
        let by_code = self.by_code.bytes(codes) + self.slots.bytes() + codes * 8;
        let names = self.answer.names.len() + codes;
        let answer = self.answer.names.heap_bytes() + self.answer.groups.bytes(names);
        self.reservation.try_resize(by_code + answer)?;
        Ok(())
    }

    fn take_narrow(
        &mut self,
        block: CodeBlock,
        rows: usize,
        columns: &mut [(IntReader, ColumnKind)],
    ) -> Result<(), ReadError> {
        if !self.slots.has_room(rows) {
            self.pour();
        }
        let codes = &self.codes[..rows];
        let Some((reader, _)) = columns.first_mut() else {
            match block {
                CodeBlock::Same(_, code) => self.slots.add_same(code, rows, 0),
                _ => self.slots.add_rows(codes),
            }
            return Ok(());
        };
        if let CodeBlock::Codes(_) = block {
            let value_codes = &mut self.value_codes[..rows];
            match reader.read_codes(value_codes)? {
                CodedInts::Codes => {
                    if self.addends.is_empty() {
                        Slots::addends(reader.dictionary(), &mut self.addends);
                    }
                    self.slots.add_coded(codes, value_codes, &self.addends);
                    return Ok(());
                }
                CodedInts::Same(value) => {
                    let values = &mut self.values[..rows];
                    values.fill(value);
                    self.slots.add(codes, values);
                    return Ok(());
                }
                CodedInts::Other => {}
            }
        }
        let values = &mut self.values[..rows];
        reader.read(values)?;
        match block {
            CodeBlock::Same(_, code) => self.slots.add_same(code, rows, values.iter().sum()),
            _ => self.slots.add(codes, values),
        }
        Ok(())
    }

    fn take_wide(
        &mut self,
        block: CodeBlock,
        rows: usize,
        columns: &mut [(IntReader, ColumnKind)],
    ) -> Result<(), ReadError> {
        if let CodeBlock::Same(_, code) = block {
            self.codes[..rows].fill(code);
        }
        let codes = &self.codes[..rows];
        self.by_code.count_rows(codes);
        let values = &mut self.values[..rows];
        for ((reader, kind), groups) in columns.iter_mut().zip(&mut self.by_code.columns) {
            reader.read(values)?;
            if *kind
                == (ColumnKind::Int {
                    bits: 64,
                    signed: false,
                })
            {
                groups.take(codes, values, |value| i128::from(value as u64));
            } else {
                groups.take(codes, values, i128::from);
            }
        }
        Ok(())
    }

    /// Turns codes into names: the results of the file go over into the answer.
    fn leave_file(&mut self) {
        if self.narrow && !self.by_code.counts.is_empty() {
            self.pour();
        }
        let Some(dictionary) = self.dictionary.take() else {
            return;
        };
        let name = |code: usize| dictionary.get(code).unwrap_or_default();
        let valued = !self.scan.spec.values.is_empty();
        let codes = 0..dictionary.len();
        if self.narrow && self.by_code.counts.is_empty() {
            let slots = &mut self.slots;
            let seen = codes.filter(|code| slots.holds(*code));
            self.answer.take(seen, name, |groups, to, code| {
                slots.add_to(code, groups, to, valued)
            });
            self.slots.clear();
            return;
        }
        let by_code = &self.by_code;
        let seen = codes.filter(|code| by_code.counts.get(*code).is_some_and(|count| *count > 0));
        self.answer
            .take(seen, name, |groups, to, code| groups.add(to, by_code, code));
        self.by_code.clear();
    }

    /// Empties the slots into the wide results, before they overflow.
    fn pour(&mut self) {
        let codes = self.dictionary.as_ref().map_or(0, StringDictionary::len);
        self.by_code.resize(codes);
        let valued = !self.scan.spec.values.is_empty();
        for code in 0..codes {
            self.slots.add_to(code, &mut self.by_code, code, valued);
        }
        self.slots.clear();
    }
}

/// Takes row group 0 of a file, when nobody has.
fn begin(next: &AtomicUsize) -> bool {
    next.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// The two ways in which a row group fails: its bytes, or the memory bound.
enum Failure {
    Read(ReadError),
    Memory(DataFusionError),
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Memory(error)
    }
}
