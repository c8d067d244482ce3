//! Encodes a row of typed columns as a value, so that any column is found in constant time.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | 0 |
//! | 2..4 | columns `n`, little-endian |
//! | `n` | a tag for each column: 0 null, 1 u64, 2 i64, 3 f64, 4 text, 5 bytes |
//! | 8 `n` | a slot for each: the number, or where it begins in what follows and its length (u32 each) |
//! | rest | text and bytes, one after the other |
//!
//! A row with fewer columns than its table has nulls in the rest, so columns can be added at the
//! end.

use crate::limits::COLUMNS_MAX;
use crate::{Code, Error, Kind, Result, Value, ValueRef};

/// The version of the encoding that this program writes.
pub const ROW_VERSION: u8 = 1;
const HEAD_BYTES: usize = 4;
const SLOT_BYTES: usize = 8;

/// A row whose bytes are in a buffer of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    bytes: &'a [u8],
    columns: usize,
}

/// What an update does to one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The number of the column, from 0.
    pub column: u16,
    /// How the new value follows from the old one.
    pub assign: Assign,
}

/// How the new value of a column follows from the old one.
#[derive(Debug, Clone, PartialEq)]
pub enum Assign {
    /// The new value is this one.
    Set(Value),
    /// The new value is the old number plus this one of the same type. An integer that would
    /// overflow is refused.
    Add(Value),
}

impl Assignment {
    /// Sets a column to a value.
    pub fn set(column: u16, value: impl Into<Value>) -> Self {
        let assign = Assign::Set(value.into());
        Self { column, assign }
    }

    /// Adds a number to a column.
    pub fn add(column: u16, value: impl Into<Value>) -> Self {
        let assign = Assign::Add(value.into());
        Self { column, assign }
    }
}

/// Encodes a row of these values.
///
/// ```
/// use dyno_txn_api::{Row, ValueRef, encode_row};
/// let bytes = encode_row(&[ValueRef::U64(7), ValueRef::Text("seven"), ValueRef::Null]);
/// let row = Row::parse(&bytes).expect("just written");
/// assert_eq!(row.get(1).expect("whole"), ValueRef::Text("seven"));
/// assert_eq!(row.get(9).expect("added later"), ValueRef::Null);
/// ```
pub fn encode_row(values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(values, &mut bytes);
    bytes
}

/// Encodes a row of these values into `out`. Its length is computed first, so that the buffer is
/// allocated once and each byte is written to its place.
fn encode_into(values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    // Rows are encoded on the path of every write. A buffer that grows with each value would be
    // copied several times.
    let heap: usize = values.iter().map(|value| heap_bytes(*value).len()).sum();
    out.clear();
    out.resize(HEAD_BYTES + values.len() * (1 + SLOT_BYTES) + heap, 0);
    let (head, rest) = out.split_at_mut(HEAD_BYTES);
    head[0] = ROW_VERSION;
    head[2..].copy_from_slice(&(values.len() as u16).to_le_bytes());
    let (tags, rest) = rest.split_at_mut(values.len());
    let (slots, heap) = rest.split_at_mut(values.len() * SLOT_BYTES);
    let (slots, _) = slots.as_chunks_mut::<SLOT_BYTES>();
    let mut at = 0;
    for ((value, tag_at), slot) in values.iter().zip(tags).zip(slots) {
        *tag_at = tag(*value);
        let bits = number_bits(*value).unwrap_or_else(|| {
            let bytes = heap_bytes(*value);
            let begin = at;
            at += bytes.len();
            heap[begin..at].copy_from_slice(bytes);
            begin as u64 | (bytes.len() as u64) << 32
        });
        *slot = bits.to_le_bytes();
    }
}

impl<'a> Row<'a> {
    /// Checks only the head of the row. A column is checked when it is read.
    pub fn parse(bytes: &'a [u8]) -> Result<Row<'a>> {
        let &[version, zero, low, high, ..] = bytes else {
            return Err(bad("shorter than its head"));
        };
        if version != ROW_VERSION || zero != 0 {
            let text = format!("a row of version {version}: this program reads {ROW_VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let columns = usize::from(u16::from_le_bytes([low, high]));
        // After this check every tag and slot is within the bytes. Texts are not checked yet,
        // because most readers need one or two columns of many.
        if bytes.len() < HEAD_BYTES + columns * (1 + SLOT_BYTES) {
            return Err(bad("shorter than its slots"));
        }
        Ok(Row { bytes, columns })
    }

    /// The number of columns that are stored.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The value of a column, or null for a column after the last stored one.
    pub fn get(&self, column: u16) -> Result<ValueRef<'a>> {
        let column = usize::from(column);
        if column >= self.columns {
            return Ok(ValueRef::Null);
        }
        let slot = self.slot(column);
        Ok(match self.bytes[HEAD_BYTES + column] {
            0 => ValueRef::Null,
            1 => ValueRef::U64(slot),
            2 => ValueRef::I64(slot as i64),
            3 => ValueRef::F64(f64::from_bits(slot)),
            4 => {
                let bytes = self.heap(slot)?;
                ValueRef::Text(std::str::from_utf8(bytes).map_err(|_| bad("text is not UTF-8"))?)
            }
            5 => ValueRef::Bytes(self.heap(slot)?),
            _ => return Err(bad("a column of an unknown kind")),
        })
    }

    /// The types of the columns in order, or `None` for null, as [`Row::get`] finds them. All texts
    /// are checked together, which takes a fraction of the time if they are ASCII.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Result<Option<Kind>>> {
        // A text within ASCII bytes is UTF-8 wherever it begins and ends, so it need not be checked
        // by itself.
        let ascii = self.bytes[self.heap_at()..].is_ascii();
        (0..self.columns).map(move |column| match self.bytes[HEAD_BYTES + column] {
            4 if ascii => self.heap(self.slot(column)).map(|_| Some(Kind::Text)),
            _ => Ok(self.get(column as u16)?.kind()),
        })
    }

    /// The number in a column of unsigned integers, or an error that names what is there.
    pub fn u64(&self, column: u16) -> Result<u64> {
        match self.get(column)? {
            ValueRef::U64(value) => Ok(value),
            other => Err(other_kind(column, "u64", other)),
        }
    }

    /// The number in a column of signed integers, or an error that names what is there.
    pub fn i64(&self, column: u16) -> Result<i64> {
        match self.get(column)? {
            ValueRef::I64(value) => Ok(value),
            other => Err(other_kind(column, "i64", other)),
        }
    }

    /// The bytes of the text in a column, without checking that they are UTF-8. It is for callers
    /// that search in them.
    pub fn text_bytes(&self, column: u16) -> Result<&'a [u8]> {
        let at = usize::from(column);
        if at < self.columns && self.bytes[HEAD_BYTES + at] == 4 {
            self.heap(self.slot(at))
        } else {
            Err(other_kind(column, "text", self.get(column)?))
        }
    }

    /// The text in a column, or an error that names what is there.
    pub fn text(&self, column: u16) -> Result<&'a str> {
        match self.get(column)? {
            ValueRef::Text(value) => Ok(value),
            other => Err(other_kind(column, "text", other)),
        }
    }

    /// The values of all stored columns, in order.
    pub fn values(&self) -> Result<Vec<ValueRef<'a>>> {
        (0..self.columns).map(|at| self.get(at as u16)).collect()
    }

    /// Encodes a row of only these columns, in this order.
    pub fn project(&self, columns: &[u16]) -> Result<Vec<u8>> {
        /// Most projections have at most this many columns, and need no allocation for the list.
        const FEW: usize = 8;
        let mut few = [ValueRef::Null; FEW];
        if columns.len() > FEW {
            let values: Result<Vec<_>> = columns.iter().map(|&column| self.get(column)).collect();
            return Ok(encode_row(&values?));
        }
        for (value, column) in few.iter_mut().zip(columns) {
            *value = self.get(*column)?;
        }
        Ok(encode_row(&few[..columns.len()]))
    }

    /// Encodes the row after an update.
    pub fn update(&self, assignments: &[Assignment]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.update_into(assignments, &mut bytes)?;
        Ok(bytes)
    }

    /// Encodes the row after an update into `out`. If no column changes its length, that is a copy
    /// which is changed in place.
    pub fn update_into(&self, assignments: &[Assignment], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.extend_from_slice(self.bytes);
        for (done, assignment) in assignments.iter().enumerate() {
            // Most updates change numbers. Only one that changes a length needs all columns
            // decoded.
            if !assign_in_place(out, self.columns, assignment)? {
                // The assignments before this one are in `so_far` already, so the rest starts from
                // there.
                let so_far = std::mem::take(out);
                let row = Row {
                    bytes: &so_far,
                    columns: self.columns,
                };
                return row.update_anew(&assignments[done..], out);
            }
        }
        Ok(())
    }

    /// Encodes the row after an update that moves columns.
    fn update_anew(&self, assignments: &[Assignment], out: &mut Vec<u8>) -> Result<()> {
        let mut values = self.values()?;
        for Assignment { column, assign } in assignments {
            let at = usize::from(*column);
            // The number comes from a client. Without this bound it could make the row 65,536
            // columns long.
            if at >= COLUMNS_MAX {
                return Err(bad("an update of a column behind the last possible one"));
            }
            if at >= values.len() {
                values.resize(at + 1, ValueRef::Null);
            }
            values[at] = match assign {
                Assign::Set(value) => value.borrowed(),
                Assign::Add(value) => sum(*column, values[at], value.borrowed())?,
            };
        }
        encode_into(&values, out);
        Ok(())
    }

    /// The eight bytes of a column: its number, or where its bytes begin and how long they are.
    fn slot(&self, column: usize) -> u64 {
        let at = HEAD_BYTES + self.columns + column * SLOT_BYTES;
        let mut slot = [0; SLOT_BYTES];
        slot.copy_from_slice(&self.bytes[at..at + SLOT_BYTES]);
        u64::from_le_bytes(slot)
    }

    /// Whether texts and bytes are stored one after the other, as this program writes them. Then no
    /// two columns share bytes.
    fn is_packed(&self) -> bool {
        let mut end = 0;
        (0..self.columns).all(|column| {
            let slot = self.slot(column);
            let begin = end;
            if self.bytes[HEAD_BYTES + column] >= 4 {
                end += slot >> 32;
            }
            self.bytes[HEAD_BYTES + column] < 4 || u64::from(slot as u32) == begin
        })
    }

    /// The offset at which texts and bytes begin.
    fn heap_at(&self) -> usize {
        HEAD_BYTES + self.columns * (1 + SLOT_BYTES)
    }

    fn heap(&self, slot: u64) -> Result<&'a [u8]> {
        let heap = &self.bytes[self.heap_at()..];
        // The slot may be from a client. Both numbers have 32 bits, so their sum does not overflow.
        let (at, length) = (slot as u32 as usize, (slot >> 32) as usize);
        heap.get(at..at + length)
            .ok_or_else(|| bad("a column lies outside the row"))
    }
}

/// Changes a column of the row in `bytes` if its new value fits into the place of the old one.
/// Otherwise returns false and changes nothing.
fn assign_in_place(bytes: &mut [u8], columns: usize, assignment: &Assignment) -> Result<bool> {
    let Assignment { column, assign } = assignment;
    let at = usize::from(*column);
    if at >= columns {
        return Ok(false);
    }
    let row = Row { bytes, columns };
    let old = row.get(*column)?;
    let new = match assign {
        Assign::Set(value) => value.borrowed(),
        Assign::Add(value) => sum(*column, old, value.borrowed())?,
    };
    if let (Some(bits), Some(_)) = (number_bits(new), number_bits(old)) {
        let (slot, tag) = (HEAD_BYTES + columns + at * SLOT_BYTES, tag(new));
        bytes[HEAD_BYTES + at] = tag;
        bytes[slot..slot + SLOT_BYTES].copy_from_slice(&bits.to_le_bytes());
        return Ok(true);
    }
    // Rows of a client may let two columns share bytes. Writing one in place would then change the
    // other.
    let same_length = tag(new) == tag(old) && heap_bytes(new).len() == heap_bytes(old).len();
    let (Assign::Set(new), true) = (assign, same_length && row.is_packed()) else {
        return Ok(false);
    };
    let (new, begin) = (
        heap_bytes(new.borrowed()),
        row.heap_at() + row.slot(at) as u32 as usize,
    );
    bytes[begin..begin + new.len()].copy_from_slice(new);
    Ok(true)
}

fn sum<'a>(column: u16, old: ValueRef<'a>, by: ValueRef<'a>) -> Result<ValueRef<'a>> {
    let sum = match (old, by) {
        // A sum that wraps around would silently corrupt a balance.
        (ValueRef::U64(a), ValueRef::U64(b)) => a.checked_add(b).map(ValueRef::U64),
        (ValueRef::I64(a), ValueRef::I64(b)) => a.checked_add(b).map(ValueRef::I64),
        (ValueRef::F64(a), ValueRef::F64(b)) => Some(ValueRef::F64(a + b)),
        _ => {
            let text = format!("column {column}: {by:?} cannot be added to {old:?}");
            return Err(Error::new(Code::BadRow, text));
        }
    };
    sum.ok_or_else(|| {
        let text = format!("column {column}: {old:?} plus {by:?} overflows");
        Error::new(Code::BadRow, text)
    })
}

fn heap_bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(text) => text.as_bytes(),
        ValueRef::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// The slot of a number or of null. `None` for values that are stored after the slots.
fn number_bits(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Null => Some(0),
        ValueRef::U64(number) => Some(number),
        ValueRef::I64(number) => Some(number as u64),
        ValueRef::F64(number) => Some(number.to_bits()),
        ValueRef::Text(_) | ValueRef::Bytes(_) => None,
    }
}

fn tag(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Null => 0,
        ValueRef::U64(_) => 1,
        ValueRef::I64(_) => 2,
        ValueRef::F64(_) => 3,
        ValueRef::Text(_) => 4,
        ValueRef::Bytes(_) => 5,
    }
}

fn bad(what: &str) -> Error {
    Error::new(Code::BadRow, format!("a row: {what}"))
}

fn other_kind(column: u16, wanted: &str, found: ValueRef<'_>) -> Error {
    let text = format!("column {column}: {wanted} expected, {found:?} found");
    Error::new(Code::BadRow, text)
}
