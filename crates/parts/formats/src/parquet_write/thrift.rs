//! Writes Thrift's compact protocol, as far as Parquet's metadata needs it.

use super::varint;
use crate::thrift::{BINARY, BOOL_FALSE, BOOL_TRUE, I8, I16, I32, I64, LIST, STRUCT};

/// Writes one struct, whose fields must come in ascending order of their ids.
pub(super) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last_id: i16,
}

impl<'a> Struct<'a> {
    /// Writes a struct that is not the value of a field, such as a header or an element of a list.
    pub(super) fn write(out: &'a mut Vec<u8>, fill: impl FnOnce(&mut Struct<'_>)) {
        let mut inner = Struct { out, last_id: 0 };
        fill(&mut inner);
        inner.out.push(0);
    }

    fn field(&mut self, id: i16, kind: u8) {
        let step = id - self.last_id;
        debug_assert!(step > 0, "fields come in ascending order");
        if step <= 15 {
            self.out.push((step as u8) << 4 | kind);
        } else {
            self.out.push(kind);
            varint::zigzag(self.out, i64::from(id));
        }
        self.last_id = id;
    }

    pub(super) fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { BOOL_TRUE } else { BOOL_FALSE });
    }

    pub(super) fn i8(&mut self, id: i16, value: i8) {
        self.field(id, I8);
        self.out.push(value as u8);
    }

    pub(super) fn i16(&mut self, id: i16, value: i16) {
        self.field(id, I16);
        varint::zigzag(self.out, i64::from(value));
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        varint::zigzag(self.out, i64::from(value));
    }

    pub(super) fn i64(&mut self, id: i16, value: i64) {
        self.field(id, I64);
        varint::zigzag(self.out, value);
    }

    pub(super) fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, BINARY);
        varint::unsigned(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    pub(super) fn structure(&mut self, id: i16, fill: impl FnOnce(&mut Struct<'_>)) {
        self.field(id, STRUCT);
        Struct::write(self.out, fill);
    }

    pub(super) fn i32_list(&mut self, id: i16, values: &[i32]) {
        self.list_header(id, I32, values.len());
        for &value in values {
            varint::zigzag(self.out, i64::from(value));
        }
    }

    pub(super) fn i64_list(&mut self, id: i16, values: &[i64]) {
        self.list_header(id, I64, values.len());
        for &value in values {
            varint::zigzag(self.out, value);
        }
    }

    /// Writes a list of booleans, which have a byte each, unlike fields, whose header is their
    /// value.
    pub(super) fn bool_list(&mut self, id: i16, values: &[bool]) {
        self.list_header(id, BOOL_TRUE, values.len());
        for &value in values {
            self.out.push(if value { BOOL_TRUE } else { BOOL_FALSE });
        }
    }

    pub(super) fn binary_list<T: AsRef<[u8]>>(&mut self, id: i16, values: &[T]) {
        self.list_header(id, BINARY, values.len());
        for value in values {
            let value = value.as_ref();
            varint::unsigned(self.out, value.len() as u64);
            self.out.extend_from_slice(value);
        }
    }

    pub(super) fn struct_list<T>(
        &mut self,
        id: i16,
        items: impl ExactSizeIterator<Item = T>,
        mut fill: impl FnMut(&mut Struct<'_>, T),
    ) {
        self.list_header(id, STRUCT, items.len());
        for item in items {
            Struct::write(self.out, |inner| fill(inner, item));
        }
    }

    fn list_header(&mut self, id: i16, kind: u8, len: usize) {
        self.field(id, LIST);
        if len < 15 {
            self.out.push((len as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint::unsigned(self.out, len as u64);
        }
    }
}
