//! Printing to standard output: it survives a closed pipe, and knows whether a person reads it.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Context;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Prints to stdout, and adds a line end if there is none. A closed pipe is an error, which
/// [`is_broken_pipe`] recognizes.
pub fn print(text: &str) -> anyhow::Result<()> {
    // Flushed here, so that an error of the last bytes reaches the caller and not the end of the
    // process, where it would be lost.
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| {
            if text.ends_with('\n') {
                Ok(())
            } else {
                stdout.write_all(b"\n")
            }
        })
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Writes what no terminal can show to stdout.
pub fn write_binary(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    anyhow::ensure!(
        !stdout.is_terminal(),
        "this is not text: send it to a file or a pipe, such as > report.xlsx"
    );
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Formats an error and its causes in one line. Many libraries repeat the cause in their own
/// message, so a cause that stands there already is left out.
pub fn explain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Whether an error comes from a reader that closed its end.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// Whether standard output shows colours.
pub fn colours_stdout() -> bool {
    io::stdout().is_terminal() && colours_wanted()
}

/// Whether standard error shows colours.
pub fn colours_stderr() -> bool {
    io::stderr().is_terminal() && colours_wanted()
}

/// Whether the environment allows colours, by <https://no-color.org> and TERM.
fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// Whether standard output is a terminal, so that a person reads it and no program does.
pub fn is_stdout() -> bool {
    io::stdout().is_terminal()
}

/// The most columns that text is broken to: longer lines are hard to read.
pub const WIDEST: usize = 100;

/// The columns of the terminal that standard output is; `None` if it is not one.
pub fn columns_of_stdout() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// The columns of the terminal, at most [`WIDEST`]; that many as well without a terminal, or on one
/// too narrow for text.
fn width() -> usize {
    let width = columns_of_stdout().filter(|width| *width >= 40);
    width.map_or(WIDEST, |width| width.min(WIDEST))
}

/// Rows of two cells in columns without lines, of which the second is wrapped.
pub fn columns(rows: impl Iterator<Item = [String; 2]>) -> String {
    columns_to(rows, width())
}

/// Rows of two cells in lines of at most `width` columns, as [`columns`] has them.
fn columns_to(rows: impl Iterator<Item = [String; 2]>, width: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.add_rows(rows);
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// `text` in lines that fit the terminal; what follows a broken line is indented as far as it.
pub fn wrapped(text: &str) -> String {
    wrapped_to(text, width())
}

/// `text` in lines of at most `width` columns, as [`wrapped`] has them.
pub fn wrapped_to(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let mut current = indent.to_owned();
        for word in line.split_whitespace() {
            let fits = current.chars().count() + 1 + word.chars().count() <= width;
            if current.len() > indent.len() && !fits {
                lines.push(std::mem::replace(&mut current, indent.to_owned()));
            }
            if current.len() > indent.len() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// Markdown for standard output: as it is for a program or a file, without markup on a terminal.
pub fn markdown(text: String) -> String {
    match columns_of_stdout() {
        Some(columns) => without_markup(&text, columns),
        None => text,
    }
}

/// Markdown without emphasis and escapes. The columns of its tables are lined up; a table that is
/// much wider than the terminal is printed row by row.
fn without_markup(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        let rule = rest.next_if(|next| line.starts_with('|') && next.starts_with("|-"));
        let Some(rule) = rule else {
            lines.push(plain(line));
            continue;
        };
        let (header, rule) = (cells(line), cells(rule));
        let mut rows = Vec::new();
        while let Some(row) = rest.next_if(|row| row.starts_with('|')) {
            rows.push(cells(row));
        }
        let mut shown = table(&[]);
        shown.set_header(&header).add_rows(&rows);
        if natural_width(&shown) * 2 > columns * 3 {
            lines.extend(row_by_row(&header, &rows, columns));
        } else {
            lines.extend(lined_up(shown, &rule, columns));
        }
    }
    lines.join("\n")
}

/// The columns that a table takes when no cell is wrapped.
fn natural_width(table: &Table) -> usize {
    let widths = table.column_max_content_widths();
    // A bar and two spaces belong to each cell, and a bar ends the row.
    let cells = widths.iter().map(|width| usize::from(*width) + 3);
    cells.sum::<usize>() + 1
}

/// A table in lines that fit `columns`, its cells wrapped where they must be.
fn lined_up(mut table: Table, rule: &[String], columns: usize) -> Vec<String> {
    table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    for (column, rule) in table.column_iter_mut().zip(rule) {
        if rule.ends_with(':') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().collect()
}

/// Each row as a paragraph: its first cell, then a line for each other one that says something,
/// behind the name of its column.
fn row_by_row(header: &[String], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(row.first().cloned());
        let others = header.iter().zip(row).skip(1);
        let told = others.filter(|(_, cell)| !["", "–"].contains(&cell.as_str()));
        let pairs = told.map(|(name, cell)| [format!(" {name}"), cell.clone()]);
        let shown = columns_to(pairs, columns);
        lines.extend(shown.lines().map(str::to_owned));
    }
    lines
}

/// The cells of a row of a table, which stand between bars that are not escaped.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in row.trim().trim_start_matches('|').chars() {
        if c == '|' && !escaped {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    // Nothing stands behind the last bar.
    cells.pop();
    cells.iter().map(|cell| plain(cell.trim())).collect()
}

/// Text without the marks that Markdown acts on.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = text.replace("**", "");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = rest.next_if(|next| c == '\\' && next.is_ascii_punctuation());
        out.push(escaped.unwrap_or(c));
    }
    out.replace("&lt;", "<").replace("&gt;", ">")
}

/// Whether progress bars make sense.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

/// A table that reads well on a terminal and pastes well into Markdown.
pub fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(columns);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_reads_well_on_a_terminal() {
        let text = "\
# a\\*b: then &lt;c&gt;

- **not the same**: machine

| case | ratio | verdict |
|---|--:|---|
| load\\|gz | 1.02× | faster |
| query | 10.5× | no difference shown |

No regression.";
        assert_eq!(
            without_markup(text, 80),
            "\
# a*b: then <c>

- not the same: machine

| case    | ratio | verdict             |
|---------|-------|---------------------|
| load|gz | 1.02× | faster              |
| query   | 10.5× | no difference shown |

No regression."
        );
        let narrow = without_markup(text, 36);
        assert!(narrow.lines().all(|l| l.chars().count() <= 36), "{narrow}");
        assert!(narrow.contains("| query   |"), "{narrow}");
    }

    #[test]
    fn a_table_much_wider_than_the_terminal_is_printed_row_by_row() {
        let text = "\
| case | dyno | best peer | verdict |
|---|--:|---|---|
| load | 9.61 M rows/s ±9.5%, n = 6 | chdb 2.25 M rows/s | faster |
| age | 27.0 k txn/s ±4.1%, n = 8 | – | the interval holds 1, so more blocks are needed |";
        assert_eq!(
            without_markup(text, 48),
            "\
load
  dyno       9.61 M rows/s ±9.5%, n = 6
  best peer  chdb 2.25 M rows/s
  verdict    faster

age
  dyno     27.0 k txn/s ±4.1%, n = 8
  verdict  the interval holds 1, so more blocks
           are needed"
        );
    }

    #[test]
    fn numbers_stand_under_each_other() {
        let text = "| n |\n|--:|\n| 10 |\n| 5 |";
        assert_eq!(without_markup(text, 80), "|  n |\n|----|\n| 10 |\n|  5 |");
    }
}
