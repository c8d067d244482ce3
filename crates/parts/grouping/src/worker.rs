//! One thread of a scan, which adds blocks of rows to its groups.

use std::ops::Range;
use std::sync::atomic::Ordering;

use dyno_formats::parquet_read::{BLOCK_ROWS, ColumnKind, StringDictionary};

use crate::choice::Choice;
use crate::chosen::{gather, gather_into};
use crate::column::{Block, Column};
use crate::error::{Failure, GroupError};
use crate::group_table::GroupTable;
use crate::lens::Lens;
use crate::operand::Operand;
use crate::query::{Inputs, Key, Outputs};
use crate::scan::{Reserve, RowGroup, Scan, Source};
use crate::totals::{Totals, Values};

/// The state of one thread. No other thread sees it before the merge.
pub(crate) struct Worker<'a> {
    scan: &'a Scan<'a>,
    reserve: Reserve,
    columns: Vec<Column>,
    choice: Choice,
    keys: Vec<Lens<u32>>,
    settled: Vec<SettledKey>,
    table: GroupTable,
    /// Groups by the codes of the only key, if that is a column of strings itself. The strings of
    /// codes that rows had are looked at when the dictionary changes.
    by_code: Option<Totals>,
    numbers: Box<[u32; BLOCK_ROWS]>,
    packed: Box<[u64; BLOCK_ROWS]>,
    operands: Vec<Operand>,
    outputs: Outputs,
}

/// A key that all rows of the current block have, if that is known.
#[derive(Default)]
struct SettledKey {
    /// Whether the other fields are for the current block.
    holds: bool,
    /// The value of the column from which `number` was computed.
    of: Option<i64>,
    number: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(scan: &'a Scan<'a>) -> Self {
        let query = scan.query;
        let kind = |column: usize| {
            let mut kinds = scan
                .sources
                .iter()
                .filter_map(|source| source.columns.get(column));
            kinds.next().map(|(_, kind)| *kind)
        };
        let unsigned: Vec<bool> = query
            .values
            .iter()
            .map(|value| {
                kind(value.column)
                    == Some(ColumnKind::Int {
                        bits: 64,
                        signed: false,
                    })
            })
            .collect();
        let narrow = match query.values.as_slice() {
            [] => true,
            [value] => {
                let small = matches!(
                    kind(value.column),
                    Some(ColumnKind::Int { bits: 8 | 16, .. })
                );
                small && !value.least && !value.most
            }
            _ => false,
        };
        let totals = |narrow| Totals::new(&query.values, &unsigned, narrow);
        let direct = match query.keys.as_slice() {
            [
                Key {
                    column,
                    mapping: None,
                },
            ] => kind(*column) == Some(ColumnKind::String),
            _ => false,
        };
        let columns = query.columns.len();
        let rows = scan.sources.iter().map(|source| source.file.rows()).sum();
        Self {
            scan,
            reserve: (scan.reserve)(),
            columns: (0..columns).map(|_| Column::new()).collect(),
            choice: Choice::new(&query.filters),
            keys: query.keys.iter().map(|_| Lens::default()).collect(),
            settled: query.keys.iter().map(|_| SettledKey::default()).collect(),
            table: GroupTable::new(query.keys.len(), rows, totals(narrow)),
            by_code: direct.then(|| totals(narrow)),
            numbers: Box::new([0; BLOCK_ROWS]),
            packed: Box::new([0; BLOCK_ROWS]),
            operands: query.values.iter().map(|_| Operand::new()).collect(),
            outputs: Outputs::default(),
        }
    }

    /// Reads row groups until none is left. It starts at file number `first` and goes on to the
    /// others in turn, so that threads share a file (and merge its codes twice) only if there is no
    /// other left.
    pub(crate) fn run(mut self, first: usize) -> Result<GroupTable, GroupError> {
        let scan = self.scan;
        let files = scan.sources.len();
        // First the files that no thread has begun, then what is left of the others.
        for helping in [false, true] {
            for step in 0..files {
                let index = (first + step) % files;
                let next = &scan.next[index];
                let begun = next.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
                if !helping && begun.is_err() {
                    continue;
                }
                // The exchange gave this thread the first row group, if it began the file. Relaxed
                // is enough, because the counter only gives out numbers and the files do not
                // change.
                let mut own = begun.is_ok().then_some(0);
                let source = &scan.sources[index];
                loop {
                    let turn = own
                        .take()
                        .unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
                    let Some(row_group) = source.row_groups.get(turn) else {
                        break;
                    };
                    // The answer is incomplete then, and either not wanted or replaced by an error.
                    // So rows that wait and groups by code are left out.
                    if scan.stop.load(Ordering::Relaxed) {
                        return Ok(self.table);
                    }
                    self.read_row_group(source, row_group)
                        .map_err(|failure| match failure {
                            Failure::Read(error) => GroupError::Read {
                                path: source.file.path().to_owned(),
                                row_group: row_group.index,
                                source: error,
                            },
                            Failure::Other(error) => error,
                        })?;
                }
            }
        }
        if let [Key { column, .. }] = scan.query.keys.as_slice()
            && let Some(dictionary) = self.columns[*column].strings().cloned()
        {
            self.leave(&dictionary)?;
        }
        self.table.finish();
        Ok(self.table)
    }

    fn read_row_group(&mut self, source: &Source, row_group: &RowGroup) -> Result<(), Failure> {
        self.scan
            .rows_scanned
            .fetch_add(row_group.len() as u64, Ordering::Relaxed);
        if !self.open(source, row_group.index)? {
            return Ok(());
        }
        let mut at = 0;
        for range in &row_group.rows {
            self.pass(range.start - at);
            at = range.start;
            while at < range.end && !self.scan.stop.load(Ordering::Relaxed) {
                let rows = (range.end - at).min(BLOCK_ROWS);
                self.read_block(row_group, at..at + rows, range.end - at)?;
                self.pass(rows);
                at += rows;
            }
        }
        self.account()
    }

    fn pass(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.pass(rows);
        }
    }

    /// Opens the columns in a row group. False if the dictionary of a filter shows that it chooses
    /// no row.
    fn open(&mut self, source: &Source, row_group: usize) -> Result<bool, Failure> {
        let query = self.scan.query;
        for index in 0..self.columns.len() {
            let before =
                self.columns[index].open(&source.file, row_group, source.columns[index])?;
            // The codes of the groups so far mean strings of the dictionary that has just been
            // replaced, so they must become names before a row with new codes is added.
            let is_key = query.keys.first().is_some_and(|key| key.column == index);
            if let Some(dictionary) = before.filter(|_| is_key) {
                self.leave(&dictionary)?;
            }
        }
        if let (Some(by_code), [key]) = (&mut self.by_code, query.keys.as_slice()) {
            by_code.resize(self.columns[key.column].dictionary_len());
        }
        if !self.choice.is_possible(&self.columns)? {
            return Ok(false);
        }
        self.account()?;
        Ok(true)
    }

    /// Accounts for the memory that is held. Between two calls it grows by what one row group adds.
    fn account(&mut self) -> Result<(), Failure> {
        let columns: usize = self.columns.iter().map(Column::heap_bytes).sum();
        let keys: usize = self.keys.iter().map(Lens::heap_bytes).sum();
        let by_code = self.by_code.as_ref().map_or(0, |totals| {
            // Its names may all be new to the groups found so far, when they become names.
            totals.bytes(totals.len()) + totals.len() * 64
        });
        let bytes = columns + self.choice.heap_bytes() + keys + by_code + self.table.heap_bytes();
        (self.reserve)(bytes).map_err(|error| Failure::Other(GroupError::Caller(error)))
    }

    /// Reads the next block of a row group. `left` rows, these included, are still to come before
    /// the row group ends or rows are passed.
    fn read_block(
        &mut self,
        row_group: &RowGroup,
        block: Range<usize>,
        left: usize,
    ) -> Result<(), Failure> {
        let rows = block.len();
        let chosen = self.choice.choose(&mut self.columns, rows, left)?;
        if chosen == 0 {
            return Ok(());
        }
        let same = if self.by_code.is_some() {
            self.number_by_code(rows, chosen)?
        } else {
            self.settle(row_group, block)?;
            self.pack(rows, left, chosen)?;
            None
        };
        let split = self.table.is_split();
        let narrow = self.totals().is_some_and(|totals| totals.is_narrow());
        let places = self.choice.places(chosen, rows);
        for (value, operand) in self.scan.query.values.iter().zip(&mut self.operands) {
            let column = &mut self.columns[value.column];
            operand.load(column, rows, places, narrow && same.is_none())?;
        }
        if split {
            let columns: Vec<&[i64]> = self
                .operands
                .iter()
                .map(|operand| &operand.values[..chosen])
                .collect();
            self.table.wait(&self.packed[..chosen], &columns);
        } else {
            self.add(same, chosen);
        }
        Ok(())
    }

    /// The totals to which rows are added at once, or `None` if rows wait for partitions.
    fn totals(&mut self) -> Option<&mut Totals> {
        let whole = self.table.whole().map(|(_, whole)| &mut whole.totals);
        self.by_code.as_mut().or(whole)
    }

    /// Adds `count` rows to their groups. If `same` has a code, it is that of all rows.
    fn add(&mut self, same: Option<u32>, count: usize) {
        let numbers = &mut self.numbers[..count];
        let totals = match (&mut self.by_code, self.table.whole()) {
            (Some(by_code), _) => by_code,
            (None, Some((layout, whole))) => {
                whole.numbers(layout, &self.packed[..count], numbers);
                &mut whole.totals
            }
            (None, None) => return,
        };
        match same {
            Some(code) => {
                let values = self.operands.first();
                let values = values.map(|operand| &operand.values[..count]);
                totals.add_same(code, count, values.unwrap_or_default());
            }
            None => {
                let columns = self.operands.iter().map(|operand| operand.get(count));
                let columns: Vec<Values<'_>> = columns.collect();
                totals.add(numbers, &columns);
            }
        }
        self.table.split_if_many();
    }

    /// Fills `numbers` with the codes of the chosen rows, or returns the code if all rows have the
    /// same and totals are narrow.
    fn number_by_code(&mut self, rows: usize, count: usize) -> Result<Option<u32>, Failure> {
        let Some(key) = self.scan.query.keys.first() else {
            return Ok(None);
        };
        let column = &mut self.columns[key.column];
        let narrow = self.by_code.as_ref().is_some_and(Totals::is_narrow);
        match column.load_codes(rows, rows)? {
            Block::Same(code) if narrow => return Ok(Some(code)),
            Block::Same(code) => self.numbers[..count].fill(code),
            _ => {
                let chosen = self.choice.places(count, rows);
                gather(column.codes(), chosen, &mut self.numbers[..count], |code| {
                    code
                });
            }
        }
        Ok(None)
    }

    /// Finds the keys that all rows of a block have in common, without looking at the rows.
    fn settle(&mut self, row_group: &RowGroup, block: Range<usize>) -> Result<(), Failure> {
        let keys = self.scan.query.keys.iter().zip(&mut self.settled);
        for (index, (key, settled)) in keys.enumerate() {
            let known = row_group.settled.get(index).map_or(&[][..], Vec::as_slice);
            // The first range that does not end before the block. All rows have its key only if it
            // does not begin behind the block's first row either.
            let next = known.partition_point(|known| known.rows.end < block.end);
            let known = known
                .get(next)
                .filter(|known| known.rows.start <= block.start);
            settled.holds = known.is_some();
            let Some(value) = known.map(|known| known.value) else {
                continue;
            };
            if settled.of != Some(value) {
                self.outputs.clear();
                compute(key, Inputs::Ints(&[value]), &mut self.outputs)?;
                let outputs = self.outputs.get(0..1);
                self.table.domains[index].number(outputs, |number| settled.number = number);
                settled.of = Some(value);
            }
        }
        Ok(())
    }

    /// Fills `packed` with the combinations of the chosen rows, from the numbers of their keys.
    fn pack(&mut self, rows: usize, left: usize, count: usize) -> Result<(), Failure> {
        let query = self.scan.query;
        // First all keys are numbered, and only then combinations are made, because a new value may
        // need more bits than the layout has.
        for (index, key) in query.keys.iter().enumerate() {
            if self.settled[index].holds {
                continue;
            }
            let column = &mut self.columns[key.column];
            column.load_codes(rows, left)?;
            let (outputs, domain) = (&mut self.outputs, &mut self.table.domains[index]);
            self.keys[index].results(column, |inputs, out| {
                outputs.clear();
                compute(key, inputs, outputs)?;
                domain.number(outputs.get(0..outputs.len()), |number| out.push(number));
                Ok(())
            })?;
        }
        self.table.fit()?;
        let chosen = self.choice.places(count, rows);
        let packed = &mut self.packed[..count];
        let shifts: Vec<u32> = self.table.layout().shifts().collect();
        for (index, (key, shift)) in query.keys.iter().zip(shifts).enumerate() {
            let first = index == 0;
            let mut fill = |part: u64| match index {
                0 => packed.fill(part),
                _ => packed.iter_mut().for_each(|packed| *packed |= part),
            };
            if self.settled[index].holds {
                fill(u64::from(self.settled[index].number) << shift);
                continue;
            }
            let column = &mut self.columns[key.column];
            let block = column.load_codes(rows, left)?;
            let results = self.keys[index].results(column, |_, _| Ok(()))?;
            let mask = results.len() - 1;
            let part = |code: u32| u64::from(results[code as usize & mask]) << shift;
            match (block, first) {
                (Block::Same(code), _) => fill(part(code)),
                (_, true) => gather(column.codes(), chosen, packed, part),
                (_, false) => gather_into(column.codes(), chosen, packed, |packed, code| {
                    *packed |= part(code);
                }),
            }
        }
        Ok(())
    }

    /// Moves the groups by codes of a dictionary, which is about to be replaced, to the groups by
    /// name.
    fn leave(&mut self, dictionary: &StringDictionary) -> Result<(), GroupError> {
        let Some(by_code) = &mut self.by_code else {
            return Ok(());
        };
        let codes: Vec<usize> = (0..by_code.len().min(dictionary.len()))
            .filter(|code| by_code.holds(*code))
            .collect();
        let mut numbers = Vec::with_capacity(codes.len());
        let names = codes
            .iter()
            .map(|code| Some(dictionary.get(*code).unwrap_or_default()));
        if let Some(domain) = self.table.domains.first_mut() {
            // All names of the first file are new, and most of those of the next ones are not.
            domain.reserve(codes.len().saturating_sub(domain.size()));
            domain.number(names, |number| numbers.push(number));
        }
        self.table.fit()?;
        if let Some((layout, whole)) = self.table.whole() {
            // Slots are added where the fullest one here and the fullest one there fit into one. A
            // writer may have put a name in twice, and then three of them come together.
            if !are_distinct(&numbers) {
                whole.totals.widen();
            }
            // A single key is its own combination.
            let groups = codes.into_iter().zip(numbers.into_iter().map(u64::from));
            whole.add_groups(layout, by_code, groups);
        }
        by_code.clear();
        Ok(())
    }
}

/// Whether no number is there twice.
fn are_distinct(numbers: &[u32]) -> bool {
    let highest = numbers.iter().max().map_or(0, |highest| *highest as usize);
    let mut seen = vec![false; highest + 1];
    numbers
        .iter()
        .all(|number| !std::mem::replace(&mut seen[*number as usize], true))
}

/// Appends the key's value for each entry of a dictionary.
fn compute(key: &Key, inputs: Inputs<'_>, out: &mut Outputs) -> Result<(), GroupError> {
    if let Some(mapping) = &key.mapping {
        return mapping.map(inputs, out).map_err(GroupError::Caller);
    }
    match inputs {
        Inputs::Strings(strings, (start, end)) => {
            (start..end).for_each(|code| out.push(strings.get(code)));
        }
        Inputs::Ints(values) => values.iter().for_each(|value| out.push_int(Some(*value))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_unless_one_is_there_twice() {
        assert!(are_distinct(&[]));
        assert!(are_distinct(&[3, 1, 2]));
        assert!(!are_distinct(&[3, 1, 3]));
    }
}
