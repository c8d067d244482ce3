//! The headline of a report as standard output shows it.

use dyno_report::{Headline, NOTHING, Report};

use crate::terminal;

/// The headline of `report`: a table, or lines for each case on a terminal that is narrower than
/// the table.
pub fn text(report: &Report) -> String {
    shown(
        &dyno_report::headline(report),
        terminal::columns_of_stdout(),
    )
}

/// The headline for a terminal of so many columns; `None` if a program reads it.
fn shown(headline: &Headline, columns: Option<usize>) -> String {
    // A terminal may break the summary and the notes, which are sentences, but a broken row of a
    // table cannot be read.
    let width = headline
        .table()
        .iter()
        .map(|line| line.chars().count())
        .max();
    match columns {
        Some(columns) if width > Some(columns) => {
            terminal::wrapped_to(&by_case(headline), columns.min(terminal::WIDEST))
        }
        _ => headline.to_lines().join("\n"),
    }
}

/// The summary, some lines for each case, and the notes.
fn by_case(headline: &Headline) -> String {
    let [_, _, peer_head, ratio_head, limit_head, _, choose_head] = headline.columns;
    let mut lines = vec![headline.summary.clone(), String::new()];
    for row in &headline.rows {
        let [case, ours, best_peer, ratio, of_limit, verdict, choose] = &row.cells;
        let mut first = format!("{case}: {ours}");
        if ratio != NOTHING {
            first += &format!("; {ratio_head} {ratio}");
        }
        if verdict != NOTHING {
            first += &format!("; {verdict}");
        }
        lines.push(first);
        let rest = [
            (peer_head, best_peer),
            (limit_head, of_limit),
            (choose_head, choose),
        ];
        let rest = rest.into_iter().filter(|(_, cell)| *cell != NOTHING);
        lines.extend(rest.map(|(head, cell)| format!("  {head}: {cell}")));
    }
    lines.push(String::new());
    lines.extend(headline.notes.iter().cloned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use dyno_report::HeadlineRow;

    use super::*;

    fn row(cells: [&str; 7]) -> HeadlineRow {
        HeadlineRow {
            cells: cells.map(str::to_owned),
            best_peer: None,
            compared: false,
            loud: false,
        }
    }

    fn headline() -> Headline {
        Headline {
            summary: "Against the best peer in 1 case, dyno is faster.".to_owned(),
            columns: [
                "case",
                "dyno",
                "best peer",
                "ratio",
                "of limit",
                "verdict",
                "choose",
            ],
            rows: vec![
                row([
                    "load",
                    "12 MB/s",
                    "duckdb 6 MB/s",
                    "2.0 (1.9 to 2.1)",
                    "40% of disk-write",
                    "faster",
                    "dyno, unless a program that reads the rows needs the other's files",
                ]),
                row(["query", "3 ms", "none", "–", "–", "–", "–"]),
            ],
            notes: vec!["findings: 1 note".to_owned()],
        }
    }

    #[test]
    fn a_program_and_a_wide_terminal_get_the_table() {
        let table = headline().to_lines().join("\n");
        assert_eq!(shown(&headline(), None), table);
        assert_eq!(shown(&headline(), Some(200)), table);
    }

    #[test]
    fn a_narrow_terminal_gets_lines_for_each_case_that_fit() {
        let text = shown(&headline(), Some(60));
        assert_eq!(
            text,
            "Against the best peer in 1 case, dyno is faster.

load: 12 MB/s; ratio 2.0 (1.9 to 2.1); faster
  best peer: duckdb 6 MB/s
  of limit: 40% of disk-write
  choose: dyno, unless a program that reads the rows needs
  the other's files
query: 3 ms
  best peer: none

findings: 1 note"
        );
    }
}
