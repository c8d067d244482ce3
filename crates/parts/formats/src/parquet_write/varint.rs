//! Writes ULEB128 and zigzag numbers, which Thrift's compact protocol and Parquet's encodings
//! share.

pub(super) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn zigzag(out: &mut Vec<u8>, value: i64) {
    unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}
