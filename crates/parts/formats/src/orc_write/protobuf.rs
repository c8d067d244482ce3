//! Writes messages of Protocol Buffers, as far as the metadata of ORC needs them.

pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps numbers of small absolute value, negative or not, to small unsigned ones.
#[inline(always)]
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const VARINT: u64 = 0;
const BYTES: u64 = 2;

/// A field of an unsigned integer, an enum or a bool.
pub(super) fn uint(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

/// A field of type `sint32` or `sint64`.
pub(super) fn sint(out: &mut Vec<u8>, field: u64, value: i64) {
    uint(out, field, zigzag(value));
}

/// A field of bytes or of a string.
pub(super) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A field of packed unsigned integers.
pub(super) fn packed(out: &mut Vec<u8>, field: u64, values: &[u64]) {
    message(out, field, |list| {
        for &value in values {
            varint(list, value);
        }
    });
}

/// A field that is a message itself.
pub(super) fn message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    // Its length stands in front of it and is not known before, so it is made aside.
    let mut inner = Vec::new();
    write(&mut inner);
    bytes(out, field, &inner);
}
