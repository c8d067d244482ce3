//! Prints values one by one, the obvious way. Only this way quotes, and refuses what cannot be
//! printed.

use std::io::Write;

use super::days::civil;
use super::error::{Result, TextError};
use super::layout::{Column, Dialect, Layout, Quote};
use super::passages::Texts;
use crate::columns::{Kind, Values};

/// A batch of rows, with all that is needed to print any of them.
pub(super) struct Rows<'a> {
    pub(super) layout: &'a Layout,
    pub(super) columns: &'a [Values<'a>],
    /// The text of those columns that are [`Values::Text`] or [`Values::Slices`].
    pub(super) texts: &'a [Option<Texts<'a>>],
    /// Rows of the block before this batch, by which errors count.
    pub(super) rows_before: u64,
}

impl Rows<'_> {
    /// Appends the line of one row. After an error a part of it may stand in `out`.
    pub(super) fn append(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let separator = self.layout.separator();
        let last = self.columns.len() - 1;
        for (at, column) in self.layout.columns.iter().enumerate() {
            self.append_value(at, column, row, out)?;
            if at < last || self.layout.options.dialect == Dialect::Tbl {
                out.push(separator);
            }
        }
        out.push(b'\n');
        Ok(())
    }

    fn append_value(
        &self,
        at: usize,
        column: &Column,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self.columns[at] {
            Values::Int64(values) => append_integer(values[row], column, out),
            Values::CodedInt64 { codes, values } => {
                append_integer(values[codes.get(row)], column, out);
            }
            Values::Int32(values) if column.field.kind == Kind::Date => {
                append_date(values[row], out);
            }
            Values::Int32(values) => print(format_args!("{}", values[row]), out),
            Values::CodedText { codes, words } => {
                let word = words.word(codes.get(row));
                self.append_text(word, column, row, out)?;
            }
            Values::Text { .. } | Values::Slices(_) => {
                let text = self.texts[at]
                    .as_ref()
                    .map_or(&[][..], |texts| texts.get(row));
                self.append_text(text, column, row, out)?;
            }
        }
        Ok(())
    }

    fn append_text(
        &self,
        text: &[u8],
        column: &Column,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        append_text(text, column, self.layout, out).map_err(|byte| TextError::Unquotable {
            name: column.field.name,
            row: self.rows_before + row as u64,
            byte: char::from(byte),
        })
    }
}

/// Appends text, in quotes where the layout wants them. The error is the byte that makes it
/// impossible to print.
pub(super) fn append_text(
    text: &[u8],
    column: &Column,
    layout: &Layout,
    out: &mut Vec<u8>,
) -> std::result::Result<(), u8> {
    let separator = layout.separator();
    match layout.options.dialect {
        Dialect::Tbl => {
            // There are no quotes here, so a reader would take such a byte for the end of the
            // value.
            let ambiguous = |&&byte: &&u8| byte == separator || byte == b'\n';
            if let Some(&byte) = text.iter().find(ambiguous) {
                return Err(byte);
            }
            out.extend_from_slice(text);
        }
        Dialect::Csv => {
            let special = |&byte: &u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
            if column.quote == Quote::Always || text.is_empty() || text.iter().any(special) {
                append_quoted(text, out);
            } else {
                out.extend_from_slice(text);
            }
        }
    }
    Ok(())
}

/// Appends text in quotes. A quote within it becomes two (RFC 4180, section 2.7).
pub(super) fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends a number of a column that is [`Kind::Int64`] or [`Kind::Decimal`].
pub(super) fn append_integer(value: i64, column: &Column, out: &mut Vec<u8>) {
    let scale = match column.field.kind {
        Kind::Decimal { scale, .. } => u32::from(scale),
        _ => 0,
    };
    let one = 10_u64.pow(scale);
    // Without its sign, because the least integer has no positive counterpart, and values between
    // -1 and 0 have a sign that their whole part 0 would lose.
    let (whole, part) = (value.unsigned_abs() / one, value.unsigned_abs() % one);
    let sign = if value < 0 { "-" } else { "" };
    print(format_args!("{sign}{whole}"), out);
    if scale > 0 && !(column.whole && part == 0) {
        print(format_args!(".{part:0width$}", width = scale as usize), out);
    }
}

/// Appends `1995-06-17`. Years before 0 have a minus, those after 9999 more digits.
pub(super) fn append_date(day: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil(day);
    let sign = if year < 0 { "-" } else { "" };
    print(
        format_args!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs()),
        out,
    );
}

fn print(text: std::fmt::Arguments, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}
