//! How the tree is written, counted: `cargo run -p xtask -- words`.
//!
//! The counts are signs of comments that say nothing or are missing, not the goal. Crates whose
//! language has been gone through are listed in [`EDITED`], and stay within the bounds.

use std::collections::BTreeMap;
use std::fmt;

use crate::tidy::Finding;
use crate::tidy::tree::{File, Tree};

/// Crates that an editor has gone through, by their folders.
const EDITED: &[&str] = &[
    "crates/dyno",
    "crates/dyno-sql",
    "crates/engines/ingest",
    "crates/engines/ingest/ask",
    "crates/engines/ingest/clickhouse",
    "crates/engines/ingest/collect",
    "crates/engines/ingest/feeds",
    "crates/engines/ingest/fetch",
    "crates/engines/ingest/watch",
    "crates/engines/pages",
    "crates/engines/pages/disk",
    "crates/engines/pages/fuse",
    "crates/engines/pages/hold",
    "crates/engines/pages/microvm",
    "crates/engines/pages/nbd",
    "crates/engines/pages/region",
    "crates/engines/pages/ublk",
    "crates/engines/pubsub",
    "crates/engines/pubsub/broker",
    "crates/engines/pubsub/check",
    "crates/engines/pubsub/kafka",
    "crates/engines/tpch",
    "crates/engines/tpch/arrow",
    "crates/engines/tpch/baseline",
    "crates/engines/tpch/files",
    "crates/engines/txn/api",
    "crates/engines/txn/check",
    "crates/engines/txn/core",
    "crates/engines/txn/etcd",
    "crates/engines/txn/log",
    "crates/engines/txn/node",
    "crates/engines/txn/open",
    "crates/engines/txn/postgres",
    "crates/engines/txn/resp",
    "crates/lab/ab",
    "crates/lab/machine",
    "crates/lab/measure",
    "crates/lab/record",
    "crates/lab/report",
    "crates/lab/stats",
    "crates/lab/suite",
    "crates/parts/certificates",
    "crates/parts/checksum",
    "crates/parts/codec",
    "crates/parts/formats",
    "crates/parts/grouping",
    "crates/parts/http",
    "crates/parts/iceberg",
    "crates/parts/io",
    "crates/parts/messages",
    "crates/parts/net",
    "crates/parts/objects",
    "crates/parts/ports",
    "crates/parts/postgres",
    "crates/parts/random",
    "crates/parts/redis",
    "crates/parts/serve",
    "crates/parts/sim",
    "crates/parts/soak",
    "crates/parts/wire",
    "crates/python",
    "crates/readback",
    "crates/rigs",
    "crates/workloads/tpcc",
    "xtask",
];

/// The most doc comments of four words or fewer, in percent.
const MOST_SHORT_DOCS_PERCENT: usize = 6;
/// The fewest lines of other comments in 1,000 lines of code outside tests, where a crate has that
/// many.
const FEWEST_COMMENTS: usize = 22;
/// Words of a doc comment that is counted as short.
const SHORT_DOC_WORDS: usize = 4;
/// Columns of a line of comment.
const COLUMNS: usize = 100;
/// Forms that name no actor, or deny a noun instead of the verb.
///
/// Written in halves, so that this file does not find itself.
const BANNED: [&str; 7] = [
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("who", "ever"),
    concat!("is ", "no"),
    concat!("is ", "none"),
    concat!("are ", "none"),
    concat!("are ", "no"),
];

/// What is counted in one crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines of code outside tests, without comments and blank lines.
    code: usize,
    /// Doc comments, each of one line or several.
    docs: usize,
    /// Those of at most [`SHORT_DOC_WORDS`] words.
    short_docs: usize,
    /// Lines of other comments, without those that state the reason of `unsafe`.
    comments: usize,
    /// Lines of comments beyond [`COLUMNS`].
    wide: usize,
    /// Banned forms in comments and messages.
    banned: usize,
}

impl Counts {
    fn short_percent(&self) -> usize {
        self.short_docs * 100 / self.docs.max(1)
    }

    fn comments_per_1000(&self) -> usize {
        self.comments * 1000 / self.code.max(1)
    }

    fn add(&mut self, file: &File) {
        let text = without_tests(&file.text);
        // The doc comments of arguments are printed as help, which has to be short.
        let is_help = file.path.contains("/src/args/") || file.path.ends_with("/src/args.rs");
        let mut doc_words = None;
        // The blanked form has the lines of the original, so the two can be read side by side. It
        // ends later, with the tests, which the zip leaves out.
        for (whole, code) in text.lines().zip(file.code.lines()) {
            let line = whole.trim();
            let doc = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"));
            if let Some(doc) = doc {
                *doc_words.get_or_insert(0) += doc.split_whitespace().count();
            } else if let Some(words) = doc_words.take() {
                self.docs += 1;
                self.short_docs += usize::from(words <= SHORT_DOC_WORDS && !is_help);
            }
            let is_comment = line.starts_with("//");
            self.comments += usize::from(is_comment && doc.is_none() && !line.contains("SAFETY"));
            self.code += usize::from(!code.trim().is_empty());
            // A row of a table cannot be wrapped.
            let is_row = doc.is_some_and(|doc| doc.trim_start().starts_with('|'));
            let is_wide = whole.chars().count() > COLUMNS;
            self.wide += usize::from(is_comment && is_wide && !is_row);
            // What the blanked form has lost of the line is comments and messages.
            if is_comment || line.contains('"') {
                self.banned += BANNED.iter().filter(|form| has_words(line, form)).count();
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>7} {:>6} {:>5}% {:>8} {:>5} {:>6}",
            self.code,
            self.docs,
            self.short_percent(),
            self.comments_per_1000(),
            self.wide,
            self.banned
        )
    }
}

/// A table of all crates, and of the tree.
pub fn table(tree: &Tree) -> String {
    let mut out = format!(
        "{:<38} {:>7} {:>6} {:>6} {:>8} {:>5} {:>6}\n",
        "crate", "code", "docs", "short", "why/1000", "wide", "banned"
    );
    let mut all = Counts::default();
    for file in sources(tree) {
        all.add(file);
    }
    for (name, counts) in by_crate(tree) {
        out += &format!("{name:<38} {counts}\n");
    }
    out + &format!("{:<38} {all}\n", "all")
}

/// What is out of bounds in the crates of [`EDITED`], and banned forms in suites and SQL.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = banned_elsewhere(tree);
    for (name, counts) in by_crate(tree) {
        // A crate that was never gone through would fail at once, so the bounds hold only where
        // they were once reached.
        if !EDITED.contains(&name) {
            continue;
        }
        let short = counts.short_percent();
        if short > MOST_SHORT_DOCS_PERCENT {
            let text = format!(
                "{short}% of its doc comments have {SHORT_DOC_WORDS} words or fewer, and \
                 {MOST_SHORT_DOCS_PERCENT}% may: say what the name does not, or nothing"
            );
            findings.push(Finding::breach(name, 0, text));
        }
        let comments = counts.comments_per_1000();
        // In a small crate a comment more or less decides, which says nothing about the code.
        if counts.code >= 1000 && comments < FEWEST_COMMENTS {
            let text = format!(
                "has {comments} comments in 1,000 lines of code, and {FEWEST_COMMENTS} are wanted: \
                 explain the hard turns"
            );
            findings.push(Finding::breach(name, 0, text));
        }
        if counts.banned + counts.wide > 0 {
            let text = format!(
                "has {} of the forms {} and {} comments beyond {COLUMNS} columns",
                counts.banned,
                BANNED.join(", "),
                counts.wide
            );
            findings.push(Finding::breach(name, 0, text));
        }
    }
    findings
}

/// The banned forms in texts that are not Rust: suites, whose analyses stand in reports, and SQL,
/// which has comments and messages too.
fn banned_elsewhere(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| is_suite_or_sql(&f.path)) {
        for (at, line) in file.text.lines().enumerate() {
            for form in BANNED.iter().filter(|form| has_words(line, form)) {
                let text = format!("says \"{form}\": name the actor, or deny the verb");
                findings.push(Finding::breach(&file.path, at + 1, text));
            }
        }
    }
    findings
}

/// Folders below `suites` hold what documents print, which is quoted as it is.
fn is_suite_or_sql(path: &str) -> bool {
    let suite = path.strip_prefix("suites/");
    let is_suite = suite.is_some_and(|name| name.ends_with(".toml") && !name.contains('/'));
    let is_test = path.contains("/tests/");
    is_suite || (path.starts_with("crates/") && path.ends_with(".sql") && !is_test)
}

fn by_crate(tree: &Tree) -> BTreeMap<&str, Counts> {
    let mut crates: BTreeMap<&str, Counts> = BTreeMap::new();
    for file in sources(tree) {
        let name = file.path.split("/src/").next().unwrap_or(&file.path);
        crates.entry(name).or_default().add(file);
    }
    crates
}

/// Rust sources, without files that hold only tests.
fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| {
        let is_test = file.path.contains("/tests/")
            || file.name() == "tests.rs"
            || file.name().ends_with("_test.rs");
        file.is_rust() && file.path.contains("/src/") && !is_test
    })
}

/// A file up to its tests, which stand at its end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {")
        .map_or(text, |at| &text[..at])
}

/// Whether `words` stand in the line with nothing else of a word on either side. "There is no
/// server" and "is no longer there" are good English, so they are passed over.
fn has_words(line: &str, words: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(words).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + words.len()..]);
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
        let next = after.split_whitespace().next().unwrap_or("");
        !is_part(before.chars().next_back())
            && !is_part(after.chars().next())
            && !before.ends_with("there ")
            && !["longer", "more", "better", "other"].contains(&next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_comments_and_forms_are_counted_outside_tests() {
        let text = [
            "//! Of a file, said in five words.",
            "",
            "/// Which.",
            "fn a() {",
            "    // It waits, because the clock may go back.",
            "    say(\"nobody is no-one\");",
            "}",
            "#[cfg(test)]",
            "mod tests {",
            "    // Somebody.",
            "}",
        ];
        let text = &text.join("\n");
        let tree = Tree::from_files(&[("crates/x/src/lib.rs", text)]);
        let expected = Counts {
            code: 3,
            docs: 2,
            short_docs: 1,
            comments: 1,
            wide: 0,
            banned: 1,
        };
        assert_eq!(by_crate(&tree)["crates/x"], expected);
    }

    #[test]
    fn suites_and_sql_have_none_of_the_forms() {
        let said = "-- There are no rows.\n-- These are no rows, and nobody reads them.\n";
        let tree = Tree::from_files(&[
            ("suites/a.toml", "analysis = \"it is no measure\"\n"),
            ("suites/figures/a.toml", "text = \"it is no measure\"\n"),
            ("crates/x/sql/a.sql", said),
            ("crates/x/tests/a.sql", said),
        ]);
        let found: Vec<(String, usize)> = check(&tree)
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect();
        let sql = ("crates/x/sql/a.sql".to_owned(), 2);
        assert_eq!(found, [("suites/a.toml".to_owned(), 1), sql.clone(), sql]);
    }

    #[test]
    fn help_may_be_short() {
        let help = "/// Print JSON\npub json: bool,\n";
        let tree = Tree::from_files(&[
            ("crates/x/src/args.rs", help),
            ("crates/x/src/args/y.rs", help),
            ("crates/x/src/y.rs", help),
        ]);
        let counts = &by_crate(&tree)["crates/x"];
        assert_eq!((counts.docs, counts.short_docs), (3, 1));
    }

    #[test]
    fn only_crates_that_were_edited_are_held_to_the_bounds() {
        let text = "/// Which.\nfn a() {}\n";
        let edited = format!("{}/src/lib.rs", EDITED[0]);
        let files = [("crates/x/src/lib.rs", text), (edited.as_str(), text)];
        let paths: Vec<String> = check(&Tree::from_files(&files))
            .into_iter()
            .map(|finding| finding.path)
            .collect();
        assert_eq!(paths, [EDITED[0]]);
    }
}
