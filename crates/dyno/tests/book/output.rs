//! What a command prints, beside what the page says that it prints.
//!
//! Times, rates and sizes differ from run to run, so numbers with their units count as equal, and
//! so do spaces between columns. Everything else must be the same, line by line. A page leaves
//! lines out with a line of three dots.

/// Panics when `said` is not what the page shows.
pub fn compare(page: &str, shell: &str, printed: &str, said: &str) {
    assert!(
        matches(printed, said),
        "{page}: {shell}\nprints\n{said}\nand the page says\n{printed}"
    );
}

fn matches(printed: &str, said: &str) -> bool {
    let said: Vec<String> = said.lines().map(shape).collect();
    let mut rest = &said[..];
    let mut skips = false;
    for line in printed.lines() {
        if line.trim() == "..." {
            skips = true;
            continue;
        }
        let expected = shape(line);
        let at = if skips {
            rest.iter().position(|line| *line == expected)
        } else {
            (rest.first() == Some(&expected)).then_some(0)
        };
        let Some(at) = at else {
            return false;
        };
        rest = &rest[at + 1..];
        skips = false;
    }
    rest.is_empty() || skips
}

/// A line with `#` for each number and its unit, with one space for several, and with `---` for the
/// rule below the head of a table, whose columns are as wide as what is in them.
fn shape(line: &str) -> String {
    if !line.is_empty() && line.chars().all(|c| c == '|' || c == '-') {
        let columns = line.matches('|').count();
        return "---|".repeat(columns);
    }
    let words: Vec<String> = line.split_whitespace().map(numbers).collect();
    let mut shape: Vec<String> = Vec::new();
    for word in words {
        // A unit, or the prefix of one, behind a number is part of it: `1.30 s`, `2.1 M rows/s`.
        let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
        let unit = UNITS.contains(&bare);
        match shape.last_mut() {
            Some(last) if unit && last.ends_with('#') => last.push_str(&word[bare.len()..]),
            _ => shape.push(word),
        }
    }
    shape.join(" ")
}

/// Units that change with the size of a number.
const UNITS: [&str; 20] = [
    "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "B/s", "kB/s", "MB/s", "GB/s", "ns", "us", "µs",
    "ms", "s", "k", "M", "G", "×",
];

/// A word with `#` for each run of digits, points and commas within digits.
fn numbers(word: &str) -> String {
    let mut text = String::new();
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            text.push(c);
            continue;
        }
        text.push('#');
        while let Some(next) = chars.peek().copied() {
            let mut behind = chars.clone();
            behind.next();
            let within =
                ['.', ','].contains(&next) && behind.peek().is_some_and(char::is_ascii_digit);
            if !next.is_ascii_digit() && !within {
                break;
            }
            chars.next();
        }
    }
    text
}

#[test]
fn numbers_and_their_units_may_differ_and_words_may_not() {
    assert!(matches(
        "loaded 5 rows in 1.2 s\n",
        "loaded 70,000 rows in 300 ms\n"
    ));
    assert!(matches("|--|---|\n| 1 |\n", "|----|-|\n| 20 |\n"));
    assert!(matches("a  b\n...\nlast\n", "a b\nc\nd\nlast\n"));
    assert!(matches("a\n...\n", "a\nb\n"));
    assert!(!matches("loaded 5 rows\n", "lost 5 rows\n"));
    assert!(!matches("a\n", "a\nb\n"));
    assert!(!matches("a\nb\n", "a\n"));
}
