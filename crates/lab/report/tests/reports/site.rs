//! The site of the committed records and of made-up ones, read as files.

use crate::made_up;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::made_up::HOSTILE;
use dyno_record::{CasePlan, RUN_FILE, RunDir, WITHDRAWN_FILE, find_runs};
use dyno_report::{ReportError, Site, write_site};

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../results")
}

fn site(results: &Path, out: &Path) -> Result<Site, ReportError> {
    write_site(results, out, |workload| {
        workload.split('-').next().unwrap_or_default().to_owned()
    })
}

/// Writes the made-up run as a record.
fn record(dir: &Path, started_at: &str) {
    let mut stored = made_up::stored();
    stored.run.started_at = started_at.into();
    let mut writer = RunDir::create(dir, stored.run).unwrap();
    for sample in &stored.samples {
        writer.append(sample).unwrap();
    }
    writer.finish("2026-11-22T00:00:00Z").unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// What stands between two pieces of text, each time.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let pieces = text.split(begin).skip(1);
    pieces
        .map(|piece| piece.split(end).next().unwrap())
        .collect()
}

fn pages(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path))
        } else {
            found.push(path)
        }
    }
    found
}

fn unescaped(link: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = link.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                let hex = std::str::from_utf8(&hex).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Every link of every page leads to a page that is there, and to a place in it that is there.
fn every_link_resolves(out: &Path) -> usize {
    let mut links = 0;
    for page in pages(out) {
        let text = read(&page);
        for link in between(&text, "href=\"", "\"") {
            let link = link.replace("&#x2f;", "/");
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(unescaped(file)),
            };
            assert!(target.is_file(), "{link} in {}", page.display());
            let place = format!("id=\"{anchor}\"");
            assert!(
                anchor.is_empty() || read(&target).contains(&place),
                "{link} in {}",
                page.display()
            );
            links += 1;
        }
    }
    links
}

#[test]
fn every_committed_record_and_case_has_its_place_and_every_link_resolves() {
    let out = tempfile::tempdir().unwrap();
    let made = site(&results(), out.path()).unwrap();
    let records = find_runs(&results()).unwrap();
    assert_eq!((made.records, made.damaged.len()), (records.len(), 0));
    let index = read(&made.index);
    let (mut measured, mut latest) = (BTreeSet::new(), BTreeSet::new());
    for dir in &records {
        let below = dir.strip_prefix(results()).unwrap();
        let page = format!("records/{}.html", below.display());
        let stored = RunDir::open(dir).unwrap();
        let section = between(&index, "<section class=\"record\"", "</section>");
        let link = page.replace('/', "&#x2f;");
        let mine = section.iter().find(|text| text.contains(&link)).unwrap();
        let text = read(&out.path().join(&page));
        for case in &stored.run.plan.cases {
            assert!(text.contains(&format!("id=\"case-{}\"", case.name)));
        }
        let withdrawn = dir.join(WITHDRAWN_FILE).exists();
        assert_eq!(mine.contains("data-standing=\"withdrawn\""), withdrawn);
        assert_eq!(mine.contains("class=\"withdrawn\""), withdrawn);
        assert_eq!(text.contains("class=\"withdrawn\""), withdrawn, "{page}");
        let plan = &stored.run.plan;
        let work = |case: &CasePlan| {
            let suite = (plan.suite.clone(), plan.size_text());
            (below.parent().unwrap().to_owned(), suite, case.name.clone())
        };
        if !withdrawn {
            measured.extend(plan.cases.iter().map(work));
        }
        if mine.contains("data-standing=\"latest\"") {
            latest.extend(plan.cases.iter().map(work));
        }
    }
    // The latest records of a machine together have every case that it has measured.
    assert_eq!(latest, measured);
    // Other cases, some of its cases, or the same with other parameters do not make a record old.
    for record in ["pubsub-quick", "pubsub-rate", "tpch-quick", "wspr-quick"] {
        let link = format!("epyc-zen4-2-cores&#x2f;2026-11-30-{record}.html");
        let section = between(&index, "<section class=\"record\"", "</section>");
        let mine = section.iter().find(|text| text.contains(&link)).unwrap();
        assert!(mine.contains("data-standing=\"latest\""), "{record}");
    }
    assert!(every_link_resolves(out.path()) > 500);
    // Made once more in the same place, it is the same site.
    site(&results(), out.path()).unwrap();
    assert_eq!(read(&made.index), index);
}

#[test]
fn a_withdrawn_record_leaves_the_latest_to_the_one_before_it() {
    let (runs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(&runs.path().join("m/old"), "2026-11-20T08:00:00Z");
    record(&runs.path().join("m/valid"), "2026-11-21T08:00:00Z");
    record(&runs.path().join("m/newest"), "2026-11-22T08:00:00Z");
    let why = format!("# Withdrawn: all\n\nToo short. {HOSTILE}\n\nSecond reason.\n");
    std::fs::write(runs.path().join("m/newest").join(WITHDRAWN_FILE), why).unwrap();
    let made = site(runs.path(), out.path()).unwrap();
    let index = read(&made.index);
    let standings = between(&index, "data-standing=\"", "\"");
    assert_eq!(standings, ["withdrawn", "latest", "older"], "newest first");
    assert!(index.contains("Too short.") && index.contains("Second reason."));
}

#[test]
fn hostile_names_and_text_stay_text() {
    let (runs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = "a b#c%20&<img src=x onerror=1>\"'";
    record(&runs.path().join(name).join(name), "2026-11-20T08:00:00Z");
    // A record directly below the results is of the machine that it names.
    record(&runs.path().join("flat"), "2026-11-20T08:00:00Z");
    let made = site(runs.path(), out.path()).unwrap();
    assert_eq!(
        (made.records, every_link_resolves(out.path()) > 20),
        (2, true)
    );
    let index = read(&made.index);
    assert!(index.contains("data-machine=\"Example 9000, 2 cores at 2.4 GHz\""));
    for page in pages(out.path()) {
        let text = read(&page);
        assert!(!text.contains("<img"), "{}", page.display());
        for outside in ["src=\"", "href=\"http", "url(", "@import", "fetch("] {
            assert!(!text.contains(outside), "{outside} in {}", page.display());
        }
        assert!(text.contains("default-src 'none'"));
        // What scrolls can be reached by keyboard, and the first stop skips to the content.
        let scrolls = text.matches("class=\"scroll\"").count();
        assert_eq!(
            text.matches("class=\"scroll\" tabindex=\"0\"").count(),
            scrolls
        );
        assert!(
            text.split("<body>")
                .nth(1)
                .unwrap()
                .trim()
                .starts_with("<a class=\"skip\"")
        );
    }
}

#[test]
fn a_damaged_record_is_named_and_the_others_have_their_pages() {
    let (runs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let broken = runs.path().join("m/broken");
    record(&broken, "2026-11-20T08:00:00Z");
    std::fs::write(broken.join(RUN_FILE), "{").unwrap();
    let alone = site(runs.path(), out.path()).unwrap_err();
    assert!(matches!(alone, ReportError::NoRecord { .. }));
    assert!(alone.to_string().contains("broken"), "{alone}");
    assert_eq!(pages(out.path()), Vec::<PathBuf>::new());
    record(&runs.path().join("m/good"), "2026-11-20T08:00:00Z");
    let made = site(runs.path(), out.path()).unwrap();
    assert_eq!((made.records, made.damaged.len()), (1, 1));
    assert!(made.damaged[0].contains("broken"), "{:?}", made.damaged);
    assert!(read(&made.index).contains("Records that cannot be read"));
}

#[test]
fn nothing_is_written_without_a_record_or_over_a_page_of_another_program() {
    let (runs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let none = site(runs.path(), out.path()).unwrap_err().to_string();
    assert!(none.contains("has no record"), "{none}");
    assert!(site(&runs.path().join("gone"), out.path()).is_err());
    record(&runs.path().join("one"), "2026-11-20T08:00:00Z");
    std::fs::write(out.path().join("index.html"), "<h1>My own page</h1>").unwrap();
    let refused = site(runs.path(), out.path()).unwrap_err().to_string();
    assert!(
        refused.contains("is not a page of `dyno site`"),
        "{refused}"
    );
    assert_eq!(pages(out.path()).len(), 1);
}

#[test]
fn nothing_is_written_where_the_first_page_cannot_be_read() {
    let (results, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(&results.path().join("one"), "2026-11-20T10:00:00Z");
    std::fs::create_dir(out.path().join("index.html")).unwrap();
    let refused = site(results.path(), out.path()).unwrap_err().to_string();
    assert!(refused.contains("index.html: read: "), "{refused}");
    assert!(!out.path().join("records").exists());
}
