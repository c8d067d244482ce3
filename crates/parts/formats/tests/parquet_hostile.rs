//! Parquet files made byte by byte: sound ones that no writer at hand makes, and hostile ones, from
//! which the reader must not take more memory, stack or time than their bytes can account for.

#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::io::{Seek, Write};
use std::path::Path;

use dyno_formats::parquet_read::{BLOCK_ROWS, CodeBlock, ParquetFile, ReadError};

/// Numbers of parquet.thrift.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;

/// Kinds of Thrift's compact protocol.
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63) as u64);
}

/// A field of an integer, whose id is `step` above that of the field before.
fn int(out: &mut Vec<u8>, step: u8, value: i64) {
    out.push(step << 4 | I64);
    zigzag(out, value);
}

fn text(out: &mut Vec<u8>, step: u8, value: &str) {
    out.push(step << 4 | BINARY);
    varint(out, value.len() as u64);
    out.extend(value.as_bytes());
}

/// The beginning of a field that is a list of `len` structs.
fn structs(out: &mut Vec<u8>, step: u8, len: usize) {
    out.push(step << 4 | LIST);
    out.push(0xf0 | STRUCT);
    varint(out, len as u64);
}

/// A page of version 1 that is not compressed.
fn page(kind: i64, values: usize, encoding: i64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    int(&mut out, 1, kind);
    int(&mut out, 1, body.len() as i64);
    int(&mut out, 1, body.len() as i64);
    let step = if kind == DICTIONARY_PAGE { 4 } else { 2 };
    out.push(step << 4 | STRUCT);
    int(&mut out, 1, values as i64);
    int(&mut out, 1, encoding);
    if kind == DATA_PAGE {
        int(&mut out, 1, RLE);
        int(&mut out, 1, RLE);
    }
    out.extend([0, 0]);
    out.extend(body);
    out
}

fn group(out: &mut Vec<u8>, name: &str, children: usize) {
    text(out, 4, name);
    int(out, 1, children as i64);
    out.push(0);
}

fn leaf(out: &mut Vec<u8>, name: &str, physical: i64) {
    int(out, 1, physical);
    int(out, 2, 0);
    text(out, 1, name);
    out.push(0);
}

/// A file of these `elements` of a schema, and of a row group of one column if there are rows.
fn file((elements, schema): (usize, &[u8]), rows: usize, pages: &[u8]) -> Vec<u8> {
    let mut footer = Vec::new();
    structs(&mut footer, 2, elements);
    footer.extend(schema);
    int(&mut footer, 1, rows as i64);
    structs(&mut footer, 1, usize::from(rows > 0));
    if rows > 0 {
        structs(&mut footer, 1, 1);
        footer.push(3 << 4 | STRUCT);
        int(&mut footer, 5, rows as i64);
        int(&mut footer, 2, pages.len() as i64);
        int(&mut footer, 2, 4);
        footer.extend([0, 0]);
        int(&mut footer, 2, rows as i64);
        footer.push(0);
    }
    footer.push(0);
    let mut bytes = [b"PAR1", pages, &footer].concat();
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    bytes
}

fn open(bytes: &[u8]) -> Result<ParquetFile, ReadError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    ParquetFile::from_file(Path::new("hostile.parquet"), file)
}

/// A file of one REQUIRED column.
fn one_column(physical: i64, rows: usize, pages: &[u8]) -> ParquetFile {
    let mut schema = Vec::new();
    group(&mut schema, "rows", 1);
    leaf(&mut schema, "value", physical);
    open(&file((2, &schema), rows, pages)).unwrap()
}

/// Codes as one bit-packed run behind their width.
fn coded(codes: &[u32], width: u8) -> Vec<u8> {
    let mut body = vec![width];
    varint(&mut body, (codes.len() as u64 / 8) << 1 | 1);
    let start = body.len();
    body.resize(start + codes.len() / 8 * usize::from(width), 0);
    for (at, code) in codes.iter().enumerate() {
        for bit in 0..usize::from(width) {
            let place = at * usize::from(width) + bit;
            body[start + place / 8] |= ((code >> bit & 1) as u8) << (place % 8);
        }
    }
    body
}

/// DELTA_BINARY_PACKED: `count` numbers from `first` on, each `step` above the one before.
fn steps(out: &mut Vec<u8>, count: usize, first: i64, step: i64) {
    varint(out, 128);
    varint(out, 4);
    varint(out, count as u64);
    zigzag(out, first);
    for _ in 0..(count - 1).div_ceil(128) {
        zigzag(out, step);
        out.extend([0; 4]);
    }
}

#[test]
fn codes_of_any_width_reach_the_end_of_a_large_dictionary() {
    const STRINGS: usize = 70_000;
    let mut dictionary = Vec::new();
    for number in 0..STRINGS {
        dictionary.extend(6u32.to_le_bytes());
        dictionary.extend(format!("{number:06}").as_bytes());
    }
    let codes: Vec<u32> = (0..1600u32)
        .map(|row| row * 43)
        .chain([65_535, 65_536, 69_999, 0, 255, 256, 69_999, 1])
        .collect();
    for width in 17..=32 {
        let mut pages = page(DICTIONARY_PAGE, STRINGS, PLAIN, &dictionary);
        let body = coded(&codes, width);
        pages.extend(page(DATA_PAGE, codes.len(), RLE_DICTIONARY, &body));
        let file = one_column(BYTE_ARRAY, codes.len(), &pages);
        let mut texts = Vec::new();
        let mut values = file.values(0, 0).unwrap();
        values.texts(codes.len(), &mut texts).unwrap();
        for (text, code) in texts.iter().zip(&codes) {
            let expected = format!("{code:06}");
            assert_eq!(text.as_deref(), Some(expected.as_bytes()), "{width} bits");
        }
        let (mut reader, mut block) = (file.codes(0, 0).unwrap(), [0; BLOCK_ROWS]);
        let mut read = Vec::new();
        while let CodeBlock::Codes(rows) = reader.next(&mut block).unwrap() {
            read.extend_from_slice(&block[..rows]);
        }
        assert_eq!(read, codes, "{width} bits");
    }
}

#[test]
fn a_code_behind_the_end_of_its_dictionary_is_damage() {
    let mut pages = page(DICTIONARY_PAGE, 2, PLAIN, b"\x01\0\0\0a\x01\0\0\0b");
    let body = coded(&[0, 1, 0, 1, 0, 1 << 16, 0, 1], 17);
    pages.extend(page(DATA_PAGE, 8, RLE_DICTIONARY, &body));
    let file = one_column(BYTE_ARRAY, 8, &pages);
    let texts = file.values(0, 0).unwrap().texts(8, &mut Vec::new());
    let error = texts.unwrap_err().to_string();
    assert!(error.contains("code 65536"), "{error}");
    let codes = file.codes(0, 0).unwrap().next(&mut [0; BLOCK_ROWS]);
    let error = codes.unwrap_err().to_string();
    assert!(error.contains("code 65536"), "{error}");
}

/// Each string begins with all of the one before and is a byte longer, so that 43 KB of page say
/// 800 MB of strings.
#[test]
fn strings_by_prefix_cannot_take_the_square_of_their_page() {
    const ROWS: usize = 40_000;
    let mut body = Vec::new();
    steps(&mut body, ROWS, 0, 1);
    steps(&mut body, ROWS, 1, 0);
    body.extend(vec![b'x'; ROWS]);
    let pages = page(DATA_PAGE, ROWS, DELTA_BYTE_ARRAY, &body);
    let file = one_column(BYTE_ARRAY, ROWS, &pages);
    let texts = file.values(0, 0).unwrap().texts(1, &mut Vec::new());
    let error = texts.unwrap_err().to_string();
    assert!(error.contains("strings by prefix"), "{error}");
}

#[test]
fn strings_by_prefix_are_the_same_whether_they_are_shared_or_copied() {
    // "abcd", "abcd", "ab", "abx", "", "q": equal, shorter, longer, empty and of their own.
    let (prefixes, suffixes) = ([0, 4, 2, 2, 0, 0], [4, 0, 0, 1, 0, 1]);
    let mut body = Vec::new();
    for lengths in [prefixes, suffixes] {
        varint(&mut body, 128);
        varint(&mut body, 4);
        varint(&mut body, 6);
        zigzag(&mut body, lengths[0]);
        zigzag(&mut body, -8);
        body.extend([8, 0, 0, 0]);
        let deltas = lengths.windows(2).map(|two| (two[1] - two[0] + 8) as u8);
        body.extend(deltas.chain([0; 27]));
    }
    body.extend(b"abcdxq");
    let pages = page(DATA_PAGE, 6, DELTA_BYTE_ARRAY, &body);
    let mut texts = Vec::new();
    let file = one_column(BYTE_ARRAY, 6, &pages);
    file.values(0, 0).unwrap().texts(6, &mut texts).unwrap();
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_deref().unwrap()).collect();
    let expected: [&[u8]; 6] = [b"abcd", b"abcd", b"ab", b"abx", b"", b"q"];
    assert_eq!(texts, expected);
}

#[test]
fn a_chunk_of_dictionary_pages_is_refused_at_the_second_one() {
    let pages = page(DICTIONARY_PAGE, 0, PLAIN, b"").repeat(100_000);
    let file = one_column(BYTE_ARRAY, 1, &pages);
    let read = [
        file.values(0, 0).unwrap().texts(1, &mut Vec::new()),
        file.codes(0, 0)
            .unwrap()
            .next(&mut [0; BLOCK_ROWS])
            .map(|_| ()),
    ];
    for read in read {
        let error = read.unwrap_err().to_string();
        assert!(error.contains("second dictionary"), "{error}");
    }
    let file = one_column(INT64, 1, &pages);
    let (column, kind) = file.column("value").unwrap();
    let read = [
        file.values(0, 0).unwrap().integers(1, &mut Vec::new()),
        file.ints(0, column, kind).unwrap().read(&mut [0]),
    ];
    for read in read {
        let error = read.unwrap_err().to_string();
        assert!(error.contains("second dictionary"), "{error}");
    }
}

/// Each name of a nested column has those of all groups above it, so that a schema of 120 KB says
/// 290 MB of names.
#[test]
fn names_of_nested_columns_cannot_take_the_square_of_their_schema() {
    const DEPTH: usize = 8000;
    let mut deep = Vec::new();
    for _ in 0..DEPTH {
        group(&mut deep, "12345678", 1);
    }
    leaf(&mut deep, "value", INT64);
    let mut wide = Vec::new();
    group(&mut wide, "rows", 1);
    group(&mut wide, &"x".repeat(1 << 15), DEPTH);
    for _ in 0..DEPTH {
        leaf(&mut wide, "v", INT64);
    }
    for (elements, schema) in [(DEPTH + 1, deep), (DEPTH + 2, wide)] {
        let error = open(&file((elements, &schema), 0, &[])).unwrap_err();
        assert!(error.to_string().contains("names of columns"), "{error}");
    }
}
