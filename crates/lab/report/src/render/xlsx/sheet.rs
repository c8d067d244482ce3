//! What all sheets share: names, formats, cells.

use std::collections::BTreeSet;

use rust_xlsxwriter::{Color, Format, FormatAlign, Worksheet, XlsxError};

/// A sheet's name has at most 31 characters.
const NAME_CHARS: usize = 31;
/// A cell has at most 32767 characters.
const CELL_CHARS: usize = 32_000;
/// Charts have no room for more.
const TITLE_CHARS: usize = 120;
/// No column is wider, in characters.
pub(super) const WIDEST_CHARS: f64 = 60.0;

/// Names of sheets, each once whatever its case.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// A name that is like `title` and that Excel accepts.
    pub(super) fn unique(&mut self, title: &str) -> String {
        let allowed = |c: &char| !c.is_control() && !"[]:*?/\\'".contains(*c);
        let plain: String = title.chars().filter(allowed).collect();
        let base = match plain.trim() {
            "" => "table",
            name => name,
        };
        let mut number = 1;
        loop {
            let end = match number {
                1 => String::new(),
                number => format!(" {number}"),
            };
            let kept = base.chars().take(NAME_CHARS - end.len());
            let name = format!("{}{end}", kept.collect::<String>().trim_end());
            // Excel keeps one name for itself.
            let lower = name.to_lowercase();
            if lower != "history" && self.taken.insert(lower) {
                return name;
            }
            number += 1;
        }
    }
}

/// Text that fits into a cell.
pub(super) fn clipped(text: &str) -> String {
    match text.chars().count() {
        0..=CELL_CHARS => text.to_owned(),
        _ => text.chars().take(CELL_CHARS).chain("...".chars()).collect(),
    }
}

/// Text above a chart or beside its axis, which would be taken for a place on a sheet after an
/// equals sign.
pub(super) fn title(text: &str) -> String {
    let text: String = text.chars().take(TITLE_CHARS).collect();
    if text.starts_with('=') {
        format!(" {text}")
    } else {
        text
    }
}

pub(super) fn title_format() -> Format {
    Format::new().set_bold().set_font_size(14)
}

pub(super) fn head_format() -> Format {
    Format::new()
        .set_bold()
        .set_text_wrap()
        .set_align(FormatAlign::Top)
        .set_background_color(Color::RGB(0x00E7_ECF2))
}

/// How a number of a unit is shown: three significant digits or so; the cell keeps all.
pub(super) fn number_format(value: f64, unit: &str, loud: bool) -> Format {
    let format = match (unit, value.abs()) {
        ("%", _) => "0.0%",
        ("x", _) => "0.00\"×\"",
        (_, size) if value.fract() == 0.0 && size < 1e15 => "#,##0",
        (_, 1000.0..) => "#,##0",
        (_, 1.0..) => "0.00",
        (_, 0.001..) => "0.0000",
        _ => "0.00E+00",
    };
    let format = Format::new().set_num_format(format);
    if loud { format.set_bold() } else { format }
}

/// Rows of text, from one row on; gives back the row behind them.
pub(super) fn write_rows<const COLUMNS: usize>(
    sheet: &mut Worksheet,
    mut row: u32,
    heads: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> Result<u32, XlsxError> {
    let head = head_format();
    for (column, text) in (0..).zip(heads) {
        sheet.write_string_with_format(row, column, text, &head)?;
    }
    for cells in rows {
        row += 1;
        for (column, text) in (0..).zip(cells) {
            sheet.write_string(row, column, clipped(&text))?;
        }
    }
    Ok(row + 2)
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_such_as_excel_takes() {
        let mut names = Names::default();
        assert_eq!(names.unique("Load: rows/s [gz]"), "Load rowss gz");
        assert_eq!(names.unique("LOAD ROWSS GZ"), "LOAD ROWSS GZ 2");
        assert_eq!(names.unique("'*?"), "table");
        assert_eq!(names.unique("History"), "History 2");
        let long = "a".repeat(40);
        assert_eq!(names.unique(&long), "a".repeat(31));
        assert_eq!(names.unique(&long), format!("{} 2", "a".repeat(29)));
    }
}
