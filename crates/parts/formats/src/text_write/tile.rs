//! Prints a few dozen rows at a time, column by column, which is the fast way.
//!
//! Short values (numbers, dates, coded words) of a tile are written one column after the other,
//! each to the end of its row's head. Heads lie side by side in the first-level cache. A loop knows
//! its column's kind, and rows do not wait for each other. Then head after head is moved to the
//! output, each followed by its long text. A row with several long texts has several heads.
//!
//! Text is searched for special bytes while it is copied. A row that has one is written again by
//! the careful way.
//!
//! This module is `unsafe` because heads and lines are written without looking at the end of a
//! buffer. The room that a tile can need is reserved before.

use super::careful::Rows;
use super::cells::{Cell, Day, Hundredths, Integer, ROOM_BYTES, Scaled, Slot, Whole};
use super::dictionary::{BYTE_CODES, Dictionary, Narrow, Shape, Wide};
use super::error::Result;
use super::layout::{Dialect, Mark, Quote};
use super::passages::{MOVE_BYTES, Texts};
use crate::columns::{Codes, Kind, Values};

/// How many rows are printed together, so that their heads stay in the first-level cache.
const ROWS: usize = 64;

/// How the columns of a batch are printed.
pub(super) struct Plan<'a> {
    careful: &'a Rows<'a>,
    runs: Vec<Run<'a>>,
    /// Bytes of the heads of all runs.
    heads_bytes: usize,
}

/// Columns of short values, and the column of long text behind them.
struct Run<'a> {
    cells: Vec<(Cells<'a>, Mark)>,
    /// Bytes that a head has room for.
    room: usize,
    /// Where the heads begin in the tile.
    base: usize,
    text: Option<LongText<'a>>,
}

struct LongText<'a> {
    texts: Texts<'a>,
    mark: Mark,
    special: [u8; 4],
    /// Whether empty text must be quoted, which only the careful way does.
    quotes_empty: bool,
}

enum Cells<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Hundredths(&'a [i64], usize),
    Whole(&'a [i64], usize, i64),
    Scaled(&'a [i64], usize),
    Day(&'a [i32]),
    Narrow(Codes<'a>, &'a [Narrow]),
    Wide(Codes<'a>, &'a [Wide]),
}

impl Cells<'_> {
    fn room(&self) -> usize {
        match self {
            Cells::Narrow(..) => size_of::<Narrow>(),
            Cells::Wide(..) => size_of::<Wide>(),
            _ => ROOM_BYTES,
        }
    }
}

impl<'a> Plan<'a> {
    /// Makes a plan, or returns `None` if the careful way has to print all rows.
    pub(super) fn new(careful: &'a Rows<'a>, dictionaries: &'a [Dictionary]) -> Option<Plan<'a>> {
        let layout = careful.layout;
        let mut runs = vec![Run::new(0)];
        // The opening quote of the first value.
        runs[0].room += MARK_BYTES;
        for (at, values) in careful.columns.iter().enumerate() {
            let run = runs.last_mut()?;
            let mark = layout.marks[at];
            if let Some(texts) = careful.texts[at] {
                let column = &layout.columns[at];
                run.text = Some(LongText {
                    texts,
                    mark,
                    special: layout.special(at),
                    quotes_empty: layout.options.dialect == Dialect::Csv
                        && column.quote == Quote::WhenNeeded,
                });
                let base = run.base + run.room * ROWS;
                runs.push(Run::new(base));
            } else {
                let cells = cells(careful, at, values, &dictionaries[at].shape)?;
                run.room += cells.room();
                run.cells.push((cells, mark));
            }
        }
        let heads_bytes = runs.last().map_or(0, |run| run.base + run.room * ROWS);
        // A last column of long text has opened a run that no column came to. It would cost a move
        // for each row.
        runs.pop_if(|run| run.cells.is_empty());
        Some(Plan {
            careful,
            runs,
            heads_bytes,
        })
    }
}

/// What a mark takes with the bytes that its wide store overwrites.
const MARK_BYTES: usize = size_of::<u32>();

impl Run<'_> {
    fn new(base: usize) -> Self {
        Run {
            cells: Vec::new(),
            room: 0,
            base,
            text: None,
        }
    }
}

fn cells<'a>(
    careful: &Rows<'_>,
    at: usize,
    values: &Values<'a>,
    shape: &'a Shape,
) -> Option<Cells<'a>> {
    let column = &careful.layout.columns[at];
    Some(match (*values, shape) {
        (Values::Int32(days), _) if column.field.kind == Kind::Date => Cells::Day(days),
        (Values::Int32(values), _) => Cells::Int32(values),
        (Values::Int64(values), _) => match column.field.kind {
            Kind::Decimal { scale, .. } if scale > 0 && column.whole => {
                Cells::Whole(values, at, 10_i64.pow(scale.into()))
            }
            Kind::Decimal { scale: 2, .. } => Cells::Hundredths(values, at),
            Kind::Decimal { scale, .. } if scale > 0 => Cells::Scaled(values, at),
            _ => Cells::Int64(values),
        },
        (
            Values::CodedInt64 { codes, .. } | Values::CodedText { codes, .. },
            Shape::Narrow(slots),
        ) => Cells::Narrow(codes, slots),
        (
            Values::CodedInt64 { codes, .. } | Values::CodedText { codes, .. },
            Shape::Wide(slots),
        ) => Cells::Wide(codes, slots),
        _ => return None,
    })
}

/// The buffers of a tile, which are used for tile after tile.
#[derive(Default)]
pub(super) struct Tile {
    heads: Vec<u8>,
    /// For each run the lengths of its heads.
    lengths: Vec<[u32; ROWS]>,
    /// For each run where its long texts lie.
    spans: Vec<[Span; ROWS]>,
}

/// Where a text begins and how long it is.
#[derive(Clone, Copy, Default)]
struct Span {
    from: usize,
    length: usize,
}

/// Stands for the length of a text that only the careful way can print, because it lies too close
/// to the end of its bytes for wide moves or has to be quoted.
const CAREFUL: usize = usize::MAX;

impl Tile {
    /// Appends all rows of a batch. After an error `out` has the rows before the one that failed.
    pub(super) fn append(&mut self, plan: &Plan<'_>, rows: usize, out: &mut Vec<u8>) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the instructions are there.
            return unsafe { self.append_avx2(plan, rows, out) };
        }
        self.append_by_tiles(plan, rows, out)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn append_avx2(&mut self, plan: &Plan<'_>, rows: usize, out: &mut Vec<u8>) -> Result<()> {
        self.append_by_tiles(plan, rows, out)
    }

    #[inline(always)]
    fn append_by_tiles(&mut self, plan: &Plan<'_>, rows: usize, out: &mut Vec<u8>) -> Result<()> {
        self.heads.resize(plan.heads_bytes + MOVE_BYTES, 0);
        self.lengths.resize(plan.runs.len(), [0; ROWS]);
        self.spans.resize(plan.runs.len(), [Span::default(); ROWS]);
        for first in (0..rows).step_by(ROWS) {
            let rows = ROWS.min(rows - first);
            let long_bytes = self.find_texts(plan, first, rows);
            self.fill_heads(plan, first, rows);
            self.move_rows(plan, first, rows, long_bytes, out)?;
        }
        Ok(())
    }

    /// Finds where the long texts lie, and returns how many bytes they have together.
    #[inline(always)]
    fn find_texts(&mut self, plan: &Plan<'_>, first: usize, rows: usize) -> usize {
        let mut long_bytes = 0;
        for (run, spans) in plan.runs.iter().zip(&mut self.spans) {
            let Some(text) = &run.text else { continue };
            let bytes = text.texts.bytes();
            for (row, span) in (first..first + rows).zip(spans) {
                let (from, length) = text.texts.place(row);
                long_bytes += length;
                // Whole moves read behind the text. Where they would leave its bytes, which happens
                // at the end of a batch, the row goes the careful way.
                let moved = length.next_multiple_of(MOVE_BYTES).max(MOVE_BYTES);
                let careful = from + moved > bytes.len() || (length == 0 && text.quotes_empty);
                *span = Span {
                    from,
                    length: if careful { CAREFUL } else { length },
                };
            }
        }
        long_bytes
    }

    #[inline(always)]
    fn fill_heads(&mut self, plan: &Plan<'_>, first: usize, rows: usize) {
        let opening = plan.careful.layout.opening;
        for (at, run) in plan.runs.iter().enumerate() {
            let mut heads = Heads {
                bytes: &mut self.heads[run.base..run.base + run.room * ROWS],
                room: run.room,
                lengths: &mut self.lengths[at],
                rows: first..first + rows,
            };
            heads.begin(if at == 0 { opening } else { Mark::default() });
            // SAFETY: the room of a head is what all its cells need together, so that each finds
            // its own behind those before it.
            unsafe {
                for (cells, mark) in &run.cells {
                    heads.append(cells, *mark, plan);
                }
            }
        }
    }

    #[inline(always)]
    fn move_rows(
        &mut self,
        plan: &Plan<'_>,
        first: usize,
        rows: usize,
        long_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // Reserved for the whole tile, so that the loops below need no look at the end. A row that
        // the careful way prints may be longer than this because of its quotes, so the room is
        // reserved again behind it.
        let heads: usize = plan.runs.iter().map(|run| run.room + MARK_BYTES).sum();
        let space = heads * rows + long_bytes + 2 * MOVE_BYTES;
        out.reserve(space);
        let mut at = out.len();
        for row in 0..rows {
            let start = at;
            let mut careful = false;
            for (run_at, run) in plan.runs.iter().enumerate() {
                let length = self.lengths[run_at][row] as usize;
                // SAFETY: a head is within `heads`, behind which there is a move's room; the text
                // is within its bytes with all that is moved, or is left to the careful writer; and
                // `space` has room for all heads, marks and texts of the tile and one move more.
                unsafe {
                    let to = out.as_mut_ptr().add(at);
                    move_bytes(
                        self.heads.as_ptr().add(run.base + row * run.room),
                        length,
                        to,
                    );
                    at += length;
                    let Some(text) = &run.text else { continue };
                    let span = self.spans[run_at][row];
                    if span.length == CAREFUL {
                        careful = true;
                        break;
                    }
                    let from = text.texts.bytes().as_ptr().add(span.from);
                    let to = to.add(length);
                    careful |= move_text(from, span.length, to, text.special);
                    let end = to.add(span.length);
                    end.cast::<u32>().write_unaligned(text.mark.bytes);
                    at += span.length + text.mark.length as usize;
                }
            }
            if careful {
                // The row is begun anew, over what was written of it.
                // SAFETY: all before this row has been written.
                unsafe { out.set_len(start) };
                plan.careful.append(first + row, out)?;
                out.reserve(space);
                at = out.len();
            }
        }
        // SAFETY: all before has been written, and lies within what was reserved.
        unsafe { out.set_len(at) };
        Ok(())
    }
}

/// Moves `length` bytes and some more, in whole moves.
///
/// # Safety
/// Both spans have `length` bytes rounded up to whole moves, and at least one move.
#[inline(always)]
unsafe fn move_bytes(from: *const u8, length: usize, to: *mut u8) {
    let mut moved = 0;
    loop {
        // SAFETY: the caller has the room.
        unsafe {
            let piece = from.add(moved).cast::<[u8; MOVE_BYTES]>().read_unaligned();
            to.add(moved)
                .cast::<[u8; MOVE_BYTES]>()
                .write_unaligned(piece);
        }
        moved += MOVE_BYTES;
        if moved >= length {
            return;
        }
    }
}

/// Moves bytes like [`move_bytes`], and returns whether a special byte was among them. Bytes behind
/// the text count too; then the careful way prints a row that did not need it, to the same effect.
///
/// # Safety
/// As [`move_bytes`].
#[inline(always)]
unsafe fn move_text(from: *const u8, length: usize, to: *mut u8, special: [u8; 4]) -> bool {
    let mut seen = [0_u8; MOVE_BYTES];
    let mut moved = 0;
    loop {
        // SAFETY: the caller has the room.
        unsafe {
            let piece = from.add(moved).cast::<[u8; MOVE_BYTES]>().read_unaligned();
            for (seen, byte) in seen.iter_mut().zip(piece) {
                let [a, b, c, d] = special.map(|special| u8::from(byte == special));
                *seen |= a | b | c | d;
            }
            to.add(moved)
                .cast::<[u8; MOVE_BYTES]>()
                .write_unaligned(piece);
        }
        moved += MOVE_BYTES;
        if moved >= length {
            return seen.iter().fold(0, |all, seen| all | seen) != 0;
        }
    }
}

/// The heads of one run, which lie side by side.
struct Heads<'a> {
    bytes: &'a mut [u8],
    room: usize,
    lengths: &'a mut [u32; ROWS],
    rows: std::ops::Range<usize>,
}

impl Heads<'_> {
    #[inline(always)]
    fn begin(&mut self, opening: Mark) {
        *self.lengths = [opening.length; ROWS];
        if opening.length > 0 {
            for head in self.bytes.chunks_exact_mut(self.room) {
                head[..MARK_BYTES].copy_from_slice(&opening.bytes.to_le_bytes());
            }
        }
    }

    /// Appends the cells of one column to all heads.
    ///
    /// # Safety
    /// Every head has the room of these cells left.
    #[inline(always)]
    unsafe fn append(&mut self, cells: &Cells<'_>, mark: Mark, plan: &Plan<'_>) {
        let columns = &plan.careful.layout.columns;
        // SAFETY: as for the caller.
        unsafe {
            match *cells {
                Cells::Int32(values) => self.each(values, &Integer(mark)),
                Cells::Int64(values) => self.each(values, &Integer(mark)),
                Cells::Hundredths(values, at) => {
                    self.each(values, &Hundredths(&columns[at], mark));
                }
                Cells::Whole(values, at, one) => {
                    let column = &columns[at];
                    self.each(values, &Whole { column, one, mark });
                }
                Cells::Scaled(values, at) => self.each(values, &Scaled(&columns[at], mark)),
                Cells::Day(days) => self.each(days, &Day(mark)),
                Cells::Narrow(codes, slots) => self.slots(codes, slots),
                Cells::Wide(codes, slots) => self.slots(codes, slots),
            }
        }
    }

    /// # Safety
    /// As [`Heads::append`].
    #[inline(always)]
    unsafe fn slots<const BYTES: usize>(&mut self, codes: Codes<'_>, slots: &[[u8; BYTES]]) {
        // SAFETY: as for the caller.
        unsafe {
            match codes {
                // There are at least this many slots, so no code needs a check.
                Codes::U8(codes) => self.each(codes, &Slot(&slots[..BYTE_CODES])),
                Codes::U32(codes) => self.each(codes, &Slot(slots)),
            }
        }
    }

    /// # Safety
    /// Every head has the room of this cell left.
    #[inline(always)]
    unsafe fn each<V: Copy>(&mut self, values: &[V], cell: &impl Cell<V>) {
        let values = &values[self.rows.clone()];
        let mut head = self.bytes.as_mut_ptr();
        for (&value, length) in values.iter().zip(self.lengths.iter_mut()) {
            // SAFETY: lengths are within the room of a head, and heads within the bytes.
            unsafe {
                *length += cell.write(value, head.add(*length as usize));
                head = head.add(self.room);
            }
        }
    }
}
