//! The fast path for Parquet files like ours: strings stay codes.
//!
//! A file whose strings are all dictionary codes and whose columns cannot be NULL is read page by
//! page. Each distinct string is looked up once per row group instead of once per row. Other files
//! take the general path of [`super::parquet_in`].

use std::time::Instant;

use dyno_formats::parquet_read::{
    BLOCK_ROWS, CodeBlock, CodeReader, ColumnKind, IntReader, ParquetFile, Physical, ReadError,
    StringDictionary,
};

use super::archive::Sink;
use super::parquet_in::{NUMBERS, Rules, STRINGS, append_row, bad_row};
use super::report::StageSeconds;
use crate::scan::{Columns, Scanner, Strings};
use crate::{Error, Result};

/// Marks a string of the file that no row has used yet.
const UNSEEN: u32 = u32::MAX;

/// A file that can be read by codes, with the indexes of its columns.
pub(super) struct CodedFile<'f> {
    file: &'f ParquetFile,
    numbers: [(usize, ColumnKind); NUMBERS.len()],
    strings: [usize; STRINGS.len()],
}

impl CodedFile<'_> {
    /// Checks the footer of the file. `None` if it needs the general path.
    pub(super) fn from_file(file: &ParquetFile) -> Option<CodedFile<'_>> {
        let (numbers, strings) = columns(file)?;
        Some(CodedFile {
            file,
            numbers,
            strings,
        })
    }

    /// Reads every row into `sink`.
    pub(super) fn read(
        &self,
        rules: Rules,
        sink: &mut Sink<'_, Scanner>,
        stages: &mut StageSeconds,
    ) -> Result<()> {
        let mut row = 0;
        for group in 0..self.file.row_groups() {
            let damaged = |e: ReadError| Error::Refused {
                path: self.file.path().to_owned(),
                reason: format!("row group {group}: {e}"),
            };
            let mut reader = GroupReader::open(self, group, rules, row).map_err(damaged)?;
            let mut left = self.file.row_group_rows(group) as usize;
            while left > 0 {
                let n = left.min(BLOCK_ROWS);
                let begun = Instant::now();
                reader.fill(n).map_err(damaged)?;
                stages.inflate += begun.elapsed().as_secs_f64();
                let begun = Instant::now();
                let before = sink.chunk().len();
                reader.append(n, sink);
                stages.parse += begun.elapsed().as_secs_f64();
                let added = sink.chunk().len() - before;
                sink.added(added)?;
                if sink.flush_when_full(stages)? {
                    // New dictionaries assign new codes.
                    reader.forget_codes();
                }
                left -= n;
            }
            row = reader.row;
        }
        Ok(())
    }
}

type Places = ([(usize, ColumnKind); NUMBERS.len()], [usize; STRINGS.len()]);

/// The indexes of the columns; `None` if one cannot be read by codes.
fn columns(file: &ParquetFile) -> Option<Places> {
    let mut numbers = [(0, ColumnKind::String); NUMBERS.len()];
    for (slot, name) in numbers.iter_mut().zip(NUMBERS) {
        *slot = number_column(file, name)?;
    }
    let mut strings = [0; STRINGS.len()];
    for (slot, name) in strings.iter_mut().zip(STRINGS) {
        let (index, kind) = file.column(name)?;
        if kind != ColumnKind::String || !file.is_coded(index) {
            return None;
        }
        *slot = index;
    }
    Some((numbers, strings))
}

/// A column of integers or of times, which are integers too.
fn number_column(file: &ParquetFile, name: &str) -> Option<(usize, ColumnKind)> {
    let (index, kind) = match file.column(name) {
        Some(found) => found,
        None => {
            let mut leaves = file.leaves().iter();
            let index = leaves.position(|leaf| name == "timestamp" && leaf.path == name)?;
            let stored = &file.leaves()[index];
            let time = stored.definition_levels == 0 && stored.physical == Physical::Int64;
            let kind = ColumnKind::Int {
                bits: 64,
                signed: true,
            };
            time.then_some((index, kind))?
        }
    };
    (kind != ColumnKind::String && file.is_readable(index)).then_some((index, kind))
}

/// Reads one row group, a block of rows at a time.
struct GroupReader {
    numbers: Vec<IntReader>,
    strings: Vec<StringColumn>,
    values: Box<[[i64; BLOCK_ROWS]; NUMBERS.len()]>,
    rules: Rules,
    /// Rows of the file read so far.
    row: u64,
}

impl GroupReader {
    fn open(
        file: &CodedFile<'_>,
        group: usize,
        rules: Rules,
        row: u64,
    ) -> std::result::Result<GroupReader, ReadError> {
        Ok(GroupReader {
            numbers: file
                .numbers
                .iter()
                .map(|&(index, kind)| file.file.ints(group, index, kind))
                .collect::<std::result::Result<_, _>>()?,
            strings: file
                .strings
                .iter()
                .map(|&index| StringColumn::new(file.file.codes(group, index)?))
                .collect::<std::result::Result<_, _>>()?,
            values: Box::new([[0; BLOCK_ROWS]; NUMBERS.len()]),
            rules,
            row,
        })
    }

    fn fill(&mut self, n: usize) -> std::result::Result<(), ReadError> {
        for (reader, values) in self.numbers.iter_mut().zip(self.values.iter_mut()) {
            reader.read(&mut values[..n])?;
        }
        for column in &mut self.strings {
            column.fill(n)?;
        }
        Ok(())
    }

    /// Appends the block: by columns if every value fits its type, otherwise row by row.
    fn append(&mut self, n: usize, sink: &mut Sink<'_, Scanner>) {
        let columns = sink.chunk();
        let [
            id,
            time,
            snr,
            frequency,
            power,
            drift,
            distance,
            azimuth,
            code,
        ] = &*self.values;
        let mut seconds = [0; BLOCK_ROWS];
        // The checks are joined without branches, because nearly every block passes all of them. A
        // block that does not is appended row by row, which finds the bad rows.
        let fits = all_seconds(self.rules, &time[..n], &mut seconds)
            & (self.rules.unsigned_ids || all_fit::<u64>(&id[..n]))
            & all_fit::<i8>(&snr[..n])
            & all_fit::<i8>(&power[..n])
            & all_fit::<i8>(&drift[..n])
            & all_fit::<u32>(&distance[..n])
            & all_fit::<u16>(&azimuth[..n])
            & all_fit::<u8>(&code[..n])
            & frequency[..n].iter().all(|&hz| hz >= 0)
            & self.strings.iter().all(|column| column.all_text);
        if !fits {
            return self.append_by_row(n, sink);
        }
        columns.id.extend(id[..n].iter().map(|&v| v as u64));
        columns.timestamp.extend_from_slice(&seconds[..n]);
        columns.snr.extend(snr[..n].iter().map(|&v| v as i8));
        columns.power.extend(power[..n].iter().map(|&v| v as i8));
        columns.drift.extend(drift[..n].iter().map(|&v| v as i8));
        columns
            .distance
            .extend(distance[..n].iter().map(|&v| v as u32));
        columns
            .azimuth
            .extend(azimuth[..n].iter().map(|&v| v as u16));
        columns.code.extend(code[..n].iter().map(|&v| v as u8));
        let Columns {
            reporter,
            reporter_grid,
            callsign,
            grid,
            version,
            dictionaries,
            ..
        } = columns;
        columns.frequency.extend(
            frequency[..n]
                .iter()
                .map(|&hz| dictionaries.frequency.code_of(hz as u64)),
        );
        let into = [reporter, reporter_grid, callsign, grid, version];
        let meanings = [
            &mut dictionaries.reporter,
            &mut dictionaries.reporter_grid,
            &mut dictionaries.callsign,
            &mut dictionaries.grid,
            &mut dictionaries.version,
        ];
        for ((column, into), meaning) in self.strings.iter_mut().zip(into).zip(meanings) {
            column.append(n, into, meaning);
        }
        self.row += n as u64;
    }

    #[cold]
    fn append_by_row(&mut self, n: usize, sink: &mut Sink<'_, Scanner>) {
        for i in 0..n {
            self.row += 1;
            let values: [i64; NUMBERS.len()] = std::array::from_fn(|at| self.values[at][i]);
            let texts: [&[u8]; STRINGS.len()] = std::array::from_fn(|at| self.strings[at].text(i));
            if let Err(reason) = append_row(sink.chunk(), self.rules, &values, &texts) {
                bad_row(sink, self.row, reason, &values, &texts);
            }
        }
    }

    fn forget_codes(&mut self) {
        for column in &mut self.strings {
            column.ours.fill(UNSEEN);
        }
    }
}

/// Converts the stored times. Returns whether each is a second that the table can hold.
fn all_seconds(rules: Rules, stored: &[i64], seconds: &mut [u32]) -> bool {
    let mut all = true;
    for (second, &stored) in seconds.iter_mut().zip(stored) {
        match rules.second(stored) {
            Some(whole) => *second = whole,
            None => all = false,
        }
    }
    all
}

fn all_fit<T: TryFrom<i64>>(values: &[i64]) -> bool {
    values.iter().all(|&value| T::try_from(value).is_ok())
}

/// The codes of one string column, and the code of each in our dictionary.
struct StringColumn {
    reader: CodeReader,
    words: StringDictionary,
    /// Our code for each code of the file, or [`UNSEEN`].
    ours: Vec<u32>,
    all_text: bool,
    /// Codes that were read; those from `at` on have not been used.
    read: Box<[u32; BLOCK_ROWS]>,
    at: usize,
    end: usize,
    block: Box<[u32; BLOCK_ROWS]>,
}

impl StringColumn {
    fn new(reader: CodeReader) -> std::result::Result<StringColumn, ReadError> {
        let (page, len) = reader.dictionary();
        let words = StringDictionary::new(page.clone(), len)?;
        // Each string is checked once instead of once per row. A bad one may have no row, so it
        // does not fail the file but makes every block of the group go row by row.
        let all_text = (0..len).all(|i| {
            words
                .get(i)
                .is_some_and(|word| std::str::from_utf8(word).is_ok())
        });
        Ok(StringColumn {
            ours: vec![UNSEEN; len],
            words,
            reader,
            all_text,
            read: Box::new([0; BLOCK_ROWS]),
            at: 0,
            end: 0,
            block: Box::new([0; BLOCK_ROWS]),
        })
    }

    /// Reads the next `n` codes, across the end of a page if necessary.
    fn fill(&mut self, n: usize) -> std::result::Result<(), ReadError> {
        let mut done = 0;
        while done < n {
            if self.at == self.end {
                self.at = 0;
                self.end = match self.reader.next(&mut self.read)? {
                    CodeBlock::Codes(rows) => rows,
                    CodeBlock::Same(rows, code) => {
                        self.read[..rows].fill(code);
                        rows
                    }
                    CodeBlock::End => {
                        let reason = "a column of strings has fewer rows than the one beside it";
                        return Err(ReadError::Damaged {
                            reason: reason.to_owned(),
                        });
                    }
                };
            }
            let take = (n - done).min(self.end - self.at);
            self.block[done..done + take].copy_from_slice(&self.read[self.at..self.at + take]);
            self.at += take;
            done += take;
        }
        Ok(())
    }

    fn text(&self, i: usize) -> &[u8] {
        self.words.get(self.block[i] as usize).unwrap_or_default()
    }

    /// Appends our codes. A string gets one when its first row comes, as in any other load.
    fn append(&mut self, n: usize, into: &mut Vec<u32>, meaning: &mut Strings) {
        for &code in &self.block[..n] {
            let mut own = self.ours[code as usize];
            if own == UNSEEN {
                own = meaning.code_of(self.words.get(code as usize).unwrap_or_default());
                self.ours[code as usize] = own;
            }
            into.push(own);
        }
    }
}
