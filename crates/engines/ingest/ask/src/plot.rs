//! Draws rows as bars on a terminal.

use crate::rows::Rows;

/// The most rows that are drawn; with more there is no plot.
const MOST_ROWS: usize = 60;
/// Columns of the terminal that the longest bar takes.
const BAR: usize = 50;
/// The most characters of a label; longer ones are cut.
const MOST_LABEL: usize = 24;
/// The end of a bar, by how many eighths of a column it fills.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar for each row: its length is the last column of numbers, its label the other columns.
/// Negative numbers, as signal reports are, begin at the least of them. `None` when there is
/// nothing to compare.
pub fn bars(rows: &Rows) -> Option<String> {
    let count = rows.values.len();
    if !(2..=MOST_ROWS).contains(&count) || rows.columns.len() < 2 {
        return None;
    }
    let column = (1..rows.columns.len())
        .rev()
        .find(|column| rows.numbers(*column).is_some())?;
    let numbers = rows.numbers(column)?;
    let labels: Vec<String> = rows.values.iter().map(|row| label(row, column)).collect();
    let wide = |label: &String| label.chars().count();
    let width = labels.iter().map(wide).max()?;
    // Bars begin at zero, unless there are negative numbers.
    let least = numbers.iter().copied().fold(0.0, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let mut text = format!("{}\n", rows.columns[column]);
    for ((label, number), row) in labels.iter().zip(&numbers).zip(&rows.values) {
        let share = match most - least {
            0.0 => 0.0,
            range => (number - least) / range,
        };
        let value = &row[column];
        text += &format!("{label:>width$} {} {value}\n", bar(share));
    }
    Some(text)
}

fn label(row: &[String], without: usize) -> String {
    let others = row.iter().enumerate().filter(|(place, _)| *place < without);
    let words: Vec<&str> = others.map(|(_, value)| value.as_str()).collect();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    words
        .join(" ")
        .chars()
        .map(plain)
        .take(MOST_LABEL)
        .collect()
}

/// A bar of a share, 0 to 1, of the longest.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(csv: &str) -> Rows {
        Rows::from_csv(csv.as_bytes()).expect("CSV")
    }

    #[test]
    fn the_longest_bar_is_the_largest_number() {
        let drawn = bars(&rows("band,spots\n20m,200\n40m,100\n6m,1\n")).expect("a plot");
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "spots");
        assert_eq!(lines[1], format!("20m {} 200", "█".repeat(50)));
        assert_eq!(lines[2], format!("40m {} 100", "█".repeat(25)));
        assert_eq!(lines[3], " 6m ▎ 1");
    }

    #[test]
    fn reports_below_nothing_begin_at_the_least() {
        let drawn = bars(&rows("grid,snr\nJO,-10\nIO,-30\n")).expect("a plot");
        let bar = |line: usize| {
            drawn
                .lines()
                .nth(line)
                .map(|line| line.matches('█').count())
        };
        assert_eq!((bar(1), bar(2)), (Some(33), Some(0)));
    }

    #[test]
    fn what_cannot_be_compared_is_not_drawn() {
        for csv in [
            "n\n1\n2\n",
            "a,b\nx,1\n",
            "a,b\nx,y\nz,w\n",
            "a,b\nx,1\nz,\n",
            "a,b\n",
        ] {
            assert_eq!(bars(&rows(csv)), None, "{csv}");
        }
    }
}
