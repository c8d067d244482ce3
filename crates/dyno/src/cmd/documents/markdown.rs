//! Markdown source of one width.

/// The width of Markdown source, in characters.
const WIDTH: usize = 100;

/// `text` in lines of at most [`WIDTH`] characters: the first begins with `first`, the others with
/// as many spaces. Text between backquotes is never broken, because it may be a command.
pub fn paragraph(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut lines = vec![first.to_owned()];
    let mut empty = true;
    for word in words(text) {
        let line = lines.last_mut().expect("there is a first line");
        let width = line.chars().count() + word.chars().count() + usize::from(!empty);
        if !empty && width > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            if !empty {
                line.push(' ');
            }
            line.push_str(&word);
        }
        empty = false;
    }
    lines.join("\n") + "\n"
}

/// The words of `text`; what stands between two backquotes is part of one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        // An odd number of backquotes opens or closes a span of code.
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// A table; every row has as many cells as `columns`.
pub fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let escaped = |cell: &String| cell.replace('|', "\\|");
    let mut text = line(columns.iter().map(ToString::to_string).collect());
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len())));
    for row in rows {
        text.push_str(&line(row.iter().map(escaped).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_width_and_code_stays_in_one_line() {
        let code = format!("`{}`", "a b".repeat(20));
        let text = paragraph("- ", &format!("{} {code} end", "word ".repeat(12)));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines.iter().any(|line| line.contains(&code)), "{text}");
        assert!(lines[1].starts_with("  `a b"), "{text}");
    }
}
