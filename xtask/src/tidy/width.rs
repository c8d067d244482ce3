//! Documents that are wider or longer than a reader wants.

use super::Finding;
use super::tree::Tree;

/// Columns of Markdown source. Tables and blocks of code are exempt, because they cannot be
/// wrapped.
const COLUMNS: usize = 100;

/// The most that a document may have: lines, bytes, and columns of a table's row.
const BOUNDS: [(&str, usize, usize, usize); 2] = [
    ("README.md", 160, 9 * 1024, usize::MAX),
    ("ARCHITECTURE.md", 250, usize::MAX, COLUMNS),
];

/// Folders whose Markdown is not written by hand: printed reports, and what programs print.
const PRINTED: [&str; 2] = ["results/", "crates/"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        if PRINTED.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        findings.extend(wide_lines(&file.path, &file.text));
        let bounds = BOUNDS.iter().find(|bounds| bounds.0 == file.path);
        if let Some((path, lines, bytes, _)) = bounds {
            let (has_lines, has_bytes) = (file.text.lines().count(), file.text.len());
            if has_lines > *lines || has_bytes > *bytes {
                let text = format!(
                    "has {has_lines} lines and {has_bytes} bytes, and may have {lines} and {bytes}: \
                     move something into the book"
                );
                findings.push(Finding::breach(path, 0, text));
            }
        }
    }
    findings
}

fn wide_lines(path: &str, text: &str) -> Vec<Finding> {
    let of_tables = BOUNDS.iter().find(|bounds| bounds.0 == path);
    let of_tables = of_tables.map_or(usize::MAX, |bounds| bounds.3);
    let mut in_block = false;
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let most = match line.trim_start().chars().next() {
            _ if in_block => usize::MAX,
            Some('|') => of_tables,
            // A word that is longer than a line, such as an address, stays in one.
            _ if !line.trim().contains(' ') => usize::MAX,
            _ => COLUMNS,
        };
        let columns = line.chars().count();
        if columns > most {
            let text = format!("has {columns} columns: wrap it at {most}");
            findings.push(Finding::breach(path, at + 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let found = check(&Tree::from_files(&[(path, text)]));
        found.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_wide_line_is_named_unless_it_cannot_be_wrapped() {
        let wide = "word ".repeat(21);
        let text = format!(
            "short\n{wide}\n| {wide} |\n```\n{wide}\n```\n{}\n",
            "x".repeat(200)
        );
        assert_eq!(lines("docs/a.md", &text), [2]);
        assert_eq!(lines("results/a/report.md", &text), []);
        assert_eq!(lines("ARCHITECTURE.md", &text), [2, 3]);
    }

    #[test]
    fn a_readme_that_grows_too_long_is_refused() {
        assert_eq!(lines("README.md", &"a\n".repeat(160)), []);
        assert_eq!(lines("README.md", &"a\n".repeat(161)), [0]);
    }
}
