//! A table of the plan on a sheet of its own, and a chart of its first column of figures.

use rust_xlsxwriter::{Chart, ChartType, Format, Workbook, XlsxError};

use super::sheet::{WIDEST_CHARS, clipped, head_format, number_format, title};
use crate::model::{Cell, FilledTable};

pub(super) fn add(
    workbook: &mut Workbook,
    table: &FilledTable,
    name: &str,
) -> Result<(), XlsxError> {
    let sheet = workbook.add_worksheet().set_name(name)?;
    sheet.set_freeze_panes(1, 1)?;
    let head = head_format();
    for (at, title) in table.columns.iter().enumerate() {
        let unit = unit_of(table, at);
        let title = match (title.as_str(), unit) {
            (title, None | Some("" | "%" | "x")) => title.to_owned(),
            (title, Some(unit)) => format!("{title} ({unit})"),
        };
        let column = at as u16;
        sheet.write_string_with_format(0, column, clipped(&title), &head)?;
        sheet.set_column_width(column, width(table, at, &title))?;
    }
    for (row, cells) in (1..).zip(&table.rows) {
        for (at, cell) in cells.iter().enumerate() {
            let column = at as u16;
            let plain = if cell.loud {
                Format::new().set_bold()
            } else {
                Format::new()
            };
            match number(table, at, cell) {
                Some((value, unit)) => {
                    let mut format = number_format(value, unit, cell.loud);
                    // Our own rows say which peer it is that they are compared with.
                    if let Some((_, peer)) = cell.text.split_once('×').filter(|_| unit == "x") {
                        let peer = peer.replace(['"', '\\'], "");
                        format = format.set_num_format(format!("0.00\"×{peer}\""));
                    }
                    sheet.write_number_with_format(row, column, value, &format)?;
                }
                None => {
                    sheet.write_string_with_format(row, column, clipped(&cell.text), &plain)?;
                }
            }
        }
    }
    let end = table.rows.len() as u32;
    for (row, note) in (end + 2..).zip(&table.notes) {
        sheet.write_string(row, 0, clipped(note))?;
    }
    if let Some(chart) = chart(table, name) {
        sheet.insert_chart(end + 3 + table.notes.len() as u32, 0, &chart)?;
    }
    Ok(())
}

/// The unit that all numbers of a column have.
fn unit_of(table: &FilledTable, column: usize) -> Option<&str> {
    let amounts = table
        .rows
        .iter()
        .filter_map(|row| row[column].value.as_ref());
    let mut units = amounts.map(|amount| amount.unit.as_str());
    let first = units.next()?;
    units.all(|unit| unit == first).then_some(first)
}

/// A cell as a number; numbers of several units in one column stay text, which says its unit.
fn number<'a>(table: &'a FilledTable, column: usize, cell: &Cell) -> Option<(f64, &'a str)> {
    let unit = unit_of(table, column)?;
    Some((cell.value.as_ref()?.value, unit))
}

fn width(table: &FilledTable, column: usize, head: &str) -> f64 {
    let cells = table
        .rows
        .iter()
        .map(|row| row[column].text.chars().count());
    let widest = cells.chain([head.chars().count()]).max().unwrap_or(0);
    (widest as f64 + 2.0).clamp(10.0, WIDEST_CHARS)
}

/// A bar for each row that has a number in the first column of figures.
fn chart(table: &FilledTable, name: &str) -> Option<Chart> {
    let figures = |column: &usize| {
        let numbers = table.rows.iter().filter(|row| row[*column].value.is_some());
        numbers.count() > 1
            && unit_of(table, *column).is_some_and(|unit| !matches!(unit, "%" | "x"))
    };
    let column = (1..table.columns.len()).find(figures)?;
    let unit = unit_of(table, column)?;
    let last = table.rows.len() as u32;
    // Label and system together name a bar, where the table tells systems apart.
    let names = match table.columns.get(1).map(String::as_str) {
        Some("system") => 1,
        _ => 0,
    };
    let mut chart = Chart::new(ChartType::Column);
    chart
        .add_series()
        .set_name((name, 0, column as u16))
        .set_categories((name, 1, 0, last, names))
        .set_values((name, 1, column as u16, last, column as u16));
    chart.title().set_name(&title(&table.title));
    chart.y_axis().set_name(&title(unit));
    chart.legend().set_hidden();
    chart.set_width(900).set_height(360);
    Some(chart)
}
