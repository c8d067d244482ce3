//! Prints rows as dbgen does, value by value. This is the obvious way, against which faster ones
//! are checked.

use std::io::Write;

use crate::batch::Batch;
use crate::dates;
use crate::table::Kind;
use crate::text::TextPool;
use crate::values::Values;

/// Appends a line for each row of a batch, with a `|` behind every value.
pub fn append(batch: &Batch, pool: &TextPool, out: &mut Vec<u8>) {
    let columns = batch.table().columns();
    let values: Vec<Values> = (0..columns.len()).map(|at| batch.values(at)).collect();
    for row in 0..batch.rows() {
        for (column, values) in columns.iter().zip(&values) {
            append_value(values, row, column.kind, pool, out);
            out.push(b'|');
        }
        out.push(b'\n');
    }
}

/// Appends one value as dbgen prints it.
pub fn append_value(values: &Values, row: usize, kind: Kind, pool: &TextPool, out: &mut Vec<u8>) {
    match *values {
        Values::Key(keys) => number(keys[row], out),
        Values::Integer(integers) => number(integers[row].into(), out),
        Values::Decimal(hundredths) => decimal(hundredths[row], kind, out),
        Values::Date(days) => out.extend_from_slice(&dates::text(days[row])),
        Values::CodedDecimal { codes, dictionary } => {
            decimal(dictionary[usize::from(codes[row])], kind, out);
        }
        Values::Coded { codes, dictionary } => {
            out.extend_from_slice(dictionary[usize::from(codes[row])].as_bytes());
        }
        Values::Numbered { prefix, numbers } => {
            out.extend_from_slice(prefix.as_bytes());
            print(format_args!("{:09}", numbers[row]), out);
        }
        Values::Passages(passages) => passages.append(row, pool, out),
        Values::Bytes { offsets, bytes } => {
            out.extend_from_slice(&bytes[offsets[row] as usize..offsets[row + 1] as usize]);
        }
    }
}

fn number(value: i64, out: &mut Vec<u8>) {
    print(format_args!("{value}"), out);
}

fn decimal(hundredths: i64, kind: Kind, out: &mut Vec<u8>) {
    if kind == Kind::WholeDecimal {
        // dbgen counts quantities in whole units and prints them so.
        return number(hundredths / 100, out);
    }
    let sign = if hundredths < 0 { "-" } else { "" };
    let size = hundredths.unsigned_abs();
    print(format_args!("{sign}{}.{:02}", size / 100, size % 100), out);
}

fn print(text: std::fmt::Arguments, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}
