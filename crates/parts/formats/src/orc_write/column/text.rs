//! Columns of text, with a dictionary or without.
//!
//! A dictionary in ORC is sorted, and rows hold ranks in it. Small dictionaries that came with
//! their codes are sorted at once. For the others it is known only at the end of the stripe which
//! entries occur, so codes wait until then.

use super::distinct::DistinctValues;
use super::limit::Limit;
use super::{
    Batch, DATA, DICTIONARY_DATA, DICTIONARY_V2, DIRECT_V2, Encoding, Index, LENGTH, Stream,
    deferred, direct, ranked,
};
use crate::columns::{Codes, Field, Slices, Values, Words, gather};
use crate::orc_write::codec::Codec;
use crate::orc_write::error::{Error, Result};
use crate::orc_write::options::Options;
use crate::orc_write::rle::Integers;

pub(in crate::orc_write) struct Column {
    name: &'static str,
    stride_rows: usize,
    find_dictionaries: bool,
    limit: Limit,
    state: State,
    streams: Streams,
    dictionary: Option<Dictionary>,
    distinct: DistinctValues,
    /// Codes of all rows of the stripe, where ranks are known only at its end.
    codes: Vec<u32>,
    /// How many entries the dictionary of a finished stripe has.
    words_stored: usize,
    lengths: Vec<u32>,
    padded: (Vec<u32>, Vec<u8>),
}

/// The streams that text may need, and the index over them.
pub(super) struct Streams {
    /// Values without a dictionary, or the dictionary's entries.
    pub(super) bytes: Stream,
    /// Lengths of what is in `bytes`.
    pub(super) lengths: Integers,
    /// The rank of each value in the dictionary.
    pub(super) ranks: Integers,
    pub(super) index: Index,
}

/// The dictionary that came with the codes.
struct Dictionary {
    given: Words,
    /// The same entries, filled with blanks where the type wants that.
    stored: Words,
    /// Where `given` came from. The same address within a stripe is taken for the same dictionary,
    /// which the caller has promised, because comparing large ones in each batch takes long.
    address: usize,
}

impl Dictionary {
    /// Keeps the dictionary of a batch, and checks that all batches of a stripe have the same.
    /// Between stripes it may change; if it did not, the padded copy is kept too.
    fn keep<'a>(
        kept: &'a mut Option<Dictionary>,
        words: &Words,
        fresh: bool,
        limit: &Limit,
    ) -> Result<&'a Words> {
        let address = std::ptr::from_ref(words).addr();
        let same = kept
            .as_ref()
            .is_some_and(|kept| !fresh && kept.address == address || kept.given == *words);
        if !same && !fresh {
            return Err(Error::Mixed {
                name: limit.name(),
                given: "another dictionary",
                before: "a first one",
            });
        }
        let kept = match kept.take() {
            Some(same_words) if same => kept.insert(same_words),
            _ => kept.insert(Dictionary {
                given: words.clone(),
                stored: limit.words(words)?,
                address,
            }),
        };
        kept.address = address;
        Ok(&kept.stored)
    }
}

/// The form in which the rows of the stripe came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There are no rows yet.
    Empty,
    /// Codes of eight bits, which are written as ranks at once.
    Ranked,
    /// Codes of a larger dictionary, of which a stripe may use few entries.
    Coded,
    /// Text without codes, which goes into `distinct` as long as that pays.
    Distinct,
    /// Text that goes into the stream.
    Direct,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Empty => "nothing",
            State::Ranked => "8-bit codes",
            State::Coded => "32-bit codes",
            State::Distinct | State::Direct => "text without codes",
        }
    }
}

impl Column {
    pub(super) fn new(field: Field, options: &Options) -> Column {
        Column {
            name: field.name,
            stride_rows: options.stride_rows,
            find_dictionaries: options.find_dictionaries,
            limit: Limit::new(field.name, field.kind, options.pad_chars),
            state: State::Empty,
            streams: Streams {
                bytes: Stream::default(),
                lengths: Integers::new(false),
                ranks: Integers::new(false),
                index: Index::default(),
            },
            dictionary: None,
            distinct: DistinctValues::default(),
            codes: Vec::new(),
            words_stored: 0,
            lengths: Vec::new(),
            padded: Default::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.state = State::Empty;
        self.streams.bytes.clear();
        self.streams.lengths.clear();
        self.streams.ranks.clear();
        self.streams.index.clear();
        self.distinct.clear();
        self.codes.clear();
    }

    /// About how many bytes will come from what is not in a stream yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        2 * self.codes.len() + self.distinct.bytes()
    }

    pub(super) fn append(&mut self, values: &Values<'_>, batch: &mut Batch<'_>) -> Result<()> {
        match *values {
            Values::CodedText { codes, words } => self.append_codes(codes, words, batch),
            Values::Text { offsets, bytes } => {
                self.enter(State::Distinct)?;
                self.append_text(offsets, bytes, batch)
            }
            Values::Slices(slices) => self.append_slices(slices, batch),
            _ => unreachable!("the batch was checked"),
        }
    }

    /// Changes the state to the form of the batch, or keeps one that can take it too.
    fn enter(&mut self, given: State) -> Result<()> {
        self.state = match (self.state, given) {
            (State::Empty, State::Distinct) if !self.find_dictionaries => State::Direct,
            (State::Empty, given) => given,
            (State::Direct, State::Distinct) => State::Direct,
            (State::Distinct, State::Direct) => State::Distinct,
            (before, given) if before == given => given,
            (before, given) => {
                return Err(Error::Mixed {
                    name: self.name,
                    given: given.name(),
                    before: before.name(),
                });
            }
        };
        Ok(())
    }

    fn append_codes(
        &mut self,
        codes: Codes<'_>,
        words: &Words,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let fresh = self.state == State::Empty;
        let (name, entries) = (self.name, words.len());
        if let (Codes::U8(codes), true) = (codes, entries <= 256) {
            self.enter(State::Ranked)?;
            let words = Dictionary::keep(&mut self.dictionary, words, fresh, &self.limit)?;
            return ranked::append(name, codes, words, &mut self.streams, batch);
        }
        self.enter(State::Coded)?;
        Dictionary::keep(&mut self.dictionary, words, fresh, &self.limit)?;
        let begin = self.codes.len();
        match codes {
            Codes::U8(codes) => self.codes.extend(codes.iter().map(|&code| u32::from(code))),
            Codes::U32(codes) => self.codes.extend_from_slice(codes),
        }
        match self.codes[begin..].iter().max() {
            Some(&code) if code as usize >= entries => Err(Error::Code {
                name,
                code,
                entries,
            }),
            _ => Ok(()),
        }
    }

    fn append_text(&mut self, offsets: &[u32], bytes: &[u8], batch: &mut Batch<'_>) -> Result<()> {
        self.check_text(offsets, bytes)?;
        if self.limit.pads {
            let (mut ends, mut padded) = std::mem::take(&mut self.padded);
            self.limit.pad_all(offsets, bytes, &mut ends, &mut padded);
            let result = self.append_checked(&ends, &padded, batch);
            self.padded = (ends, padded);
            return result;
        }
        self.append_checked(offsets, bytes, batch)
    }

    fn append_checked(
        &mut self,
        offsets: &[u32],
        bytes: &[u8],
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        let mut segments = batch.segments;
        while self.state == State::Distinct {
            let Some((segment, later)) = segments.split_first() else {
                return Ok(());
            };
            segments = later;
            for row in segment.rows.clone() {
                let word = &bytes[offsets[row] as usize..offsets[row + 1] as usize];
                self.codes.push(self.distinct.code(word));
            }
            // The first stride decides whether values repeat, because hashing text that does not
            // repeat costs more than all else here.
            let first = segment.ends && self.codes.len() == self.stride_rows;
            if first && !deferred::pays(self.distinct.len(), self.codes.len()) {
                self.spell_out(batch.codec)?;
            }
        }
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Ok(());
        };
        let (begin, end) = (offsets[first.rows.start], offsets[last.rows.end]);
        // What is left of the batch when the dictionary has been given up, or all of it.
        let at = self.streams.bytes.raw.len();
        let text = &bytes[begin as usize..end as usize];
        self.streams.bytes.raw.extend_from_slice(text);
        self.lengths.clear();
        let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        self.lengths.extend(lengths);
        let codec = &mut *batch.codec;
        let mut batch = Batch { segments, codec };
        direct::append(at, &self.lengths, &mut self.streams, &mut batch)
    }

    fn append_slices(&mut self, slices: &dyn Slices, batch: &mut Batch<'_>) -> Result<()> {
        self.enter(State::Direct)?;
        // Text that must be padded or hashed has to be in one piece first. `enter` keeps the state
        // `Distinct` if earlier batches came as plain text.
        if self.limit.pads || self.state == State::Distinct {
            let (mut offsets, mut bytes) = (Vec::new(), Vec::new());
            gather(slices, 0, &mut offsets, &mut bytes);
            bytes.truncate(slices.total_bytes());
            return self.append_text(&offsets, &bytes, batch);
        }
        // Otherwise the pieces are copied once, to where they are compressed. Values that are found
        // to be too long leave their bytes in the stream, whose stripe is given up then.
        let raw = &mut self.streams.bytes.raw;
        let begin = raw.len();
        raw.resize(begin + slices.total_bytes() + slices.padding_bytes(), 0);
        let copied = slices.copy_to(&mut raw[begin..]);
        raw.truncate(begin + copied);
        let lengths = slices.lengths();
        let longest = lengths.iter().max().copied().unwrap_or(0);
        let mut at = begin;
        let values = lengths.iter().map(|&length| {
            at += usize::from(length);
            &raw[at - usize::from(length)..at]
        });
        self.limit.check_all(longest.into(), values)?;
        direct::append(begin, lengths, &mut self.streams, batch)
    }

    /// Refuses offsets that run backwards or leave the bytes, and values that are too long.
    fn check_text(&self, offsets: &[u32], bytes: &[u8]) -> Result<()> {
        let wrong = |pair: &[u32]| Error::Offsets {
            name: self.name,
            begin: pair[0],
            end: pair[1],
            bytes: bytes.len(),
        };
        let within = |pair: &&[u32]| pair[0] <= pair[1] && pair[1] as usize <= bytes.len();
        let pairs = || offsets.windows(2);
        if let Some(pair) = pairs().find(|pair| !within(pair)) {
            return Err(wrong(pair));
        }
        let longest = pairs().map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let values = pairs().map(|pair| &bytes[pair[0] as usize..pair[1] as usize]);
        self.limit.check_all(longest, values)
    }

    /// Gives up the dictionary, so that all rows so far become text.
    fn spell_out(&mut self, codec: &mut Codec) -> Result<()> {
        let (distinct, dictionary) = (&self.distinct, &self.dictionary);
        let word = |code: usize| match dictionary {
            Some(dictionary) if self.state == State::Coded => dictionary.stored.word(code),
            _ => distinct.word(code),
        };
        let (codes, stride_rows) = (&self.codes, self.stride_rows);
        deferred::write_words(codes, word, stride_rows, &mut self.streams, codec)?;
        self.codes.clear();
        self.state = State::Direct;
        Ok(())
    }

    pub(super) fn finish(&mut self, codec: &mut Codec) -> Result<()> {
        match self.state {
            State::Ranked => self.write_dictionary(),
            State::Coded | State::Distinct => self.write_codes(codec)?,
            State::Empty | State::Direct => {}
        }
        if !self.streams.index.is_at_begin() {
            self.streams.index.end_stride();
        }
        if self.state == State::Direct && self.streams.bytes.len() == 0 {
            self.write_nothing_but_empty_values(codec)?;
        }
        self.streams.bytes.finish(codec)?;
        self.streams.lengths.finish(codec)?;
        self.streams.ranks.finish(codec)
    }

    /// Writes a stripe of empty values as a dictionary of one entry, because the C++ reader cannot
    /// seek in a stream of text that has no bytes.
    fn write_nothing_but_empty_values(&mut self, codec: &mut Codec) -> Result<()> {
        let rows = self.streams.index.statistics().count as usize;
        self.clear();
        self.state = State::Distinct;
        let code = self.distinct.code(b"");
        self.codes.resize(rows, code);
        self.write_codes(codec)?;
        if !self.streams.index.is_at_begin() {
            self.streams.index.end_stride();
        }
        Ok(())
    }

    /// Appends all entries of a small dictionary, whether they occur or not.
    fn write_dictionary(&mut self) {
        let Some(Dictionary { stored: words, .. }) = &self.dictionary else {
            unreachable!("codes came with it")
        };
        self.words_stored = words.len();
        for &code in words.sorted() {
            let word = words.word(code as usize);
            self.streams.bytes.raw.extend_from_slice(word);
            self.streams.lengths.append(&[word.len() as u32], i64::from);
        }
    }

    /// Appends the entries that occur and the ranks of all rows, or the text of all rows where a
    /// dictionary does not pay.
    fn write_codes(&mut self, codec: &mut Codec) -> Result<()> {
        let coded = match &self.dictionary {
            Some(dictionary) if self.state == State::Coded => Some(&dictionary.stored),
            _ => None,
        };
        let sorted = match coded {
            Some(words) => {
                let mut used = vec![false; words.len()];
                for &code in &self.codes {
                    used[code as usize] = true;
                }
                let sorted = words.sorted().iter().copied();
                sorted.filter(|&code| used[code as usize]).collect()
            }
            None => self.distinct.sorted(),
        };
        if !deferred::pays(sorted.len(), self.codes.len()) {
            return self.spell_out(codec);
        }
        let distinct = &self.distinct;
        let word = |code: usize| match coded {
            Some(words) => words.word(code),
            None => distinct.word(code),
        };
        self.words_stored = sorted.len();
        let (codes, stride_rows) = (&self.codes, self.stride_rows);
        deferred::write_ranks(codes, &sorted, word, stride_rows, &mut self.streams, codec)
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self.state {
            State::Empty | State::Direct => Encoding {
                kind: DIRECT_V2,
                words: None,
            },
            State::Ranked | State::Coded | State::Distinct => Encoding {
                kind: DICTIONARY_V2,
                words: Some(self.words_stored),
            },
        }
    }

    pub(super) fn streams(&self) -> [Option<(u64, &Stream)>; 3] {
        let Streams {
            bytes,
            lengths,
            ranks,
            ..
        } = &self.streams;
        let lengths = Some((LENGTH, &lengths.stream));
        match self.state {
            State::Empty | State::Direct => [Some((DATA, bytes)), lengths, None],
            State::Ranked | State::Coded | State::Distinct => {
                let ranks = Some((DATA, &ranks.stream));
                [ranks, Some((DICTIONARY_DATA, bytes)), lengths]
            }
        }
    }

    pub(super) fn index(&self) -> &Index {
        &self.streams.index
    }
}
