//! Reads Thrift's compact protocol, as far as Parquet's metadata needs it. Fields that are not used
//! are skipped, so that files of newer writers are read too.
//!
//! The bytes are not trusted: every length is checked against what is left before it is used, and
//! nesting is bounded, because skipping recurses.

use super::ReadError;
use crate::thrift::{
    BINARY, BOOL_FALSE, BOOL_TRUE, DOUBLE, I8, I16, I32, I64, LIST, MAP, SET, STOP, STRUCT, UUID,
};

/// The deepest nesting of structs and lists that is read. Parquet's own structs go six deep.
const DEPTH_MAX: usize = 32;

/// Reads from the front of some bytes.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

/// The header of a struct's field, which has its id and the kind of the value that follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) id: i16,
    kind: u8,
}

type Result<T> = std::result::Result<T, ReadError>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            depth: 0,
        }
    }

    /// How many bytes have been read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Reads a struct. `take` is called for each field, and must read its value or
    /// [skip](Self::skip) it.
    pub(super) fn structure(
        &mut self,
        mut take: impl FnMut(&mut Self, Field) -> Result<()>,
    ) -> Result<()> {
        if self.depth == DEPTH_MAX {
            return Err(damaged("structs lie too deep in one another"));
        }
        self.depth += 1;
        let mut id = 0i16;
        loop {
            let header = self.byte()?;
            let kind = header & 0x0f;
            if kind == STOP {
                self.depth -= 1;
                return Ok(());
            }
            id = match header >> 4 {
                0 => i16::try_from(self.zigzag()?).map_err(|_| damaged("a field's id"))?,
                step => id
                    .checked_add(i16::from(step))
                    .ok_or_else(|| damaged("a field's id"))?,
            };
            take(self, Field { id, kind })?;
        }
    }

    /// Reads the value of a field that is a struct.
    pub(super) fn inner(
        &mut self,
        field: Field,
        take: impl FnMut(&mut Self, Field) -> Result<()>,
    ) -> Result<()> {
        expect(field.kind == STRUCT, field, "a struct")?;
        self.structure(take)
    }

    /// Reads the value of a field that is a list of structs, and returns their number. `each` is
    /// called for each field with the number of the element that it belongs to.
    pub(super) fn structs(
        &mut self,
        field: Field,
        mut each: impl FnMut(&mut Self, usize, Field) -> Result<()>,
    ) -> Result<usize> {
        let (kind, len) = self.list(field)?;
        expect(len == 0 || kind == STRUCT, field, "a list of structs")?;
        for number in 0..len {
            self.structure(|reader, field| each(reader, number, field))?;
        }
        Ok(len)
    }

    /// Reads the value of a field that is a list of integers.
    pub(super) fn ints(&mut self, field: Field, mut each: impl FnMut(i64)) -> Result<()> {
        let (kind, len) = self.list(field)?;
        for _ in 0..len {
            each(self.int(Field { id: field.id, kind })?);
        }
        Ok(())
    }

    /// Reads the value of a field that is an integer of any width.
    pub(super) fn int(&mut self, field: Field) -> Result<i64> {
        match field.kind {
            I8 => Ok(i64::from(self.byte()? as i8)),
            I16 | I32 | I64 => self.zigzag(),
            _ => Err(unexpected(field, "an integer")),
        }
    }

    /// Reads the value of a field that is an integer of 32 bits.
    pub(super) fn i32(&mut self, field: Field) -> Result<i32> {
        let value = self.int(field)?;
        i32::try_from(value).map_err(|_| damaged(format!("field {} is {value}", field.id)))
    }

    /// Reads the value of a field that is a size. Parquet stores those of pages and lists as
    /// integers of 32 bits, so a larger one is damage and is refused before memory is reserved.
    pub(super) fn size(&mut self, field: Field) -> Result<usize> {
        let value = self.i32(field)?;
        usize::try_from(value).map_err(|_| damaged(format!("field {} is {value}", field.id)))
    }

    /// The value of a field that is true or false. It is part of the field's header.
    pub(super) fn boolean(&mut self, field: Field) -> Result<bool> {
        match field.kind {
            BOOL_TRUE => Ok(true),
            BOOL_FALSE => Ok(false),
            _ => Err(unexpected(field, "true or false")),
        }
    }

    /// Reads the value of a field that is a string of bytes.
    pub(super) fn binary(&mut self, field: Field) -> Result<&'a [u8]> {
        expect(field.kind == BINARY, field, "a string")?;
        let len = self.len()?;
        self.read(len)
    }

    /// Skips the value of a field, whatever its kind.
    pub(super) fn skip(&mut self, field: Field) -> Result<()> {
        match field.kind {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            I8 => self.read(1).map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.read(8).map(|_| ()),
            UUID => self.read(16).map(|_| ()),
            BINARY => self.binary(field).map(|_| ()),
            STRUCT => self.structure(|reader, field| reader.skip(field)),
            LIST | SET => {
                let (kind, len) = self.list(field)?;
                (0..len).try_for_each(|_| self.skip_element(kind))
            }
            MAP => {
                let len = self.len()?;
                let kinds = if len == 0 { 0 } else { self.byte()? };
                (0..len).try_for_each(|_| {
                    self.skip_element(kinds >> 4)?;
                    self.skip_element(kinds & 0x0f)
                })
            }
            _ => Err(unexpected(field, "anything that Thrift has")),
        }
    }

    /// Skips an element of a collection, in which a boolean takes a byte.
    fn skip_element(&mut self, kind: u8) -> Result<()> {
        if matches!(kind, BOOL_TRUE | BOOL_FALSE) {
            return self.read(1).map(|_| ());
        }
        if self.depth == DEPTH_MAX {
            return Err(damaged("lists lie too deep in one another"));
        }
        self.depth += 1;
        let skipped = self.skip(Field { id: 0, kind });
        self.depth -= 1;
        skipped
    }

    /// Reads the kind of a list's elements and their number. The number is at most that of the
    /// bytes that follow, because each element takes at least one.
    fn list(&mut self, field: Field) -> Result<(u8, usize)> {
        expect(matches!(field.kind, LIST | SET), field, "a list")?;
        let header = self.byte()?;
        let len = match header >> 4 {
            15 => self.len()?,
            len => usize::from(len),
        };
        if len > self.bytes.len() - self.at {
            return Err(damaged(format!("a list of {len} elements")));
        }
        Ok((header & 0x0f, len))
    }

    fn len(&mut self) -> Result<usize> {
        let len = self.varint()?;
        usize::try_from(len).map_err(|_| damaged(format!("a length of {len}")))
    }

    fn read(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| {
            damaged(format!(
                "{len} bytes are stated where {} are left",
                rest.len()
            ))
        })?;
        self.at += len;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self
            .bytes
            .get(self.at)
            .ok_or_else(|| damaged("they end too early"))?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("a number has more than 10 bytes"))
    }

    fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

fn expect(is: bool, field: Field, what: &str) -> Result<()> {
    if is {
        return Ok(());
    }
    Err(unexpected(field, what))
}

fn unexpected(field: Field, what: &str) -> ReadError {
    damaged(format!(
        "field {} is of kind {}, not {what}",
        field.id, field.kind
    ))
}

fn damaged(reason: impl AsRef<str>) -> ReadError {
    ReadError::Metadata {
        reason: reason.as_ref().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_end_in_fields_or_an_error(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            if reader.structure(|reader, field| reader.skip(field)).is_ok() {
                prop_assert!(reader.position() <= bytes.len());
            }
        }
    }

    #[test]
    fn what_is_not_asked_for_is_passed_over() {
        // 1: list of two booleans, 2: map of a byte to a string, 3: double, 20: struct of nothing,
        // 21: 5.
        let bytes = [
            0x19, 0x21, 1, 2, 0x1b, 1, 0x38, 9, 2, b'a', b'b', 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x0c,
            40, 0, 0x15, 10, 0,
        ];
        let mut found = None;
        let mut reader = Reader::new(&bytes);
        let read = reader.structure(|reader, field| match field.id {
            21 => reader.int(field).map(|value| found = Some(value)),
            _ => reader.skip(field),
        });
        read.unwrap();
        assert_eq!((found, reader.position()), (Some(5), bytes.len()));
    }

    #[test]
    fn structs_without_an_end_are_refused_before_the_stack_is() {
        let deep = vec![0x1c; 1 << 20];
        let mut reader = Reader::new(&deep);
        let error = reader
            .structure(|reader, field| reader.skip(field))
            .unwrap_err();
        assert!(error.to_string().contains("too deep"), "{error}");
        let mut lists = vec![0x19; 1];
        lists.resize(1 << 20, 0x19);
        let error = Reader::new(&lists)
            .structure(|reader, field| reader.skip(field))
            .unwrap_err();
        assert!(error.to_string().contains("too deep"), "{error}");
    }
}
