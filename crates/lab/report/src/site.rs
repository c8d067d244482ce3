//! All records below a folder as static pages: one for each record, and a first page that filters
//! them. The pages need neither a server nor a network.

use std::path::{Path, PathBuf};

use dyno_record::{Plan, RecordError, RunDir, find_runs};

use crate::error::ReportError;
use crate::headline::headline;
use crate::model::{Report, build_stored};
use crate::render::{Entry, Index, WithdrawnView, print_index, print_page, rows};

const INDEX: &str = "index.html";

/// What was written, and what could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Path of the first page.
    pub index: PathBuf,
    /// Number of records that have a page.
    pub records: usize,
    /// Why each of the others has none, with its path.
    pub damaged: Vec<String>,
}

/// Writes the site of every record below `results` into `out`, over an earlier one; pages of
/// records that are gone stay. `engine_of` says which engine a workload measures, because the lab
/// knows of none.
///
/// A record that cannot be read is left out and named in [`Site::damaged`].
///
/// # Errors
/// [`ReportError::NoRecord`] when not one record can be read, and [`ReportError::NotOurs`] when
/// `out` has an `index.html` of another program; nothing is written then, nor when that file cannot
/// be read. Otherwise when a page cannot be written.
pub fn write_site(
    results: &Path,
    out: &Path,
    engine_of: impl Fn(&str) -> String,
) -> Result<Site, ReportError> {
    // This comes before the first page is written, because `--out` may name a folder that holds
    // another site.
    refuse_foreign(&out.join(INDEX))?;
    let mut entries = Vec::new();
    let mut damaged = Vec::new();
    for dir in find_runs(results)? {
        // One damaged record must not keep all others from being published.
        let stored = match RunDir::open(&dir) {
            Ok(stored) => stored,
            Err(error) => {
                damaged.push(error.to_string());
                continue;
            }
        };
        let report = build_stored(&stored);
        let page = RecordPage::from_dir(results, &dir);
        write(out, &page.page, &print_page(&report, &page.home())?)?;
        let entry = entry(&report, &page, &engine_of);
        entries.push((entry, report.run.plan));
    }
    if entries.is_empty() {
        return Err(ReportError::NoRecord {
            path: results.to_path_buf(),
            damaged,
        });
    }
    entries.sort_by(|(a, _), (b, _)| (&b.started_at, &a.page).cmp(&(&a.started_at, &b.page)));
    let entries = mark_latest(entries);
    let records = entries.len();
    let index = index(entries, damaged.clone());
    // The first page is written last and replaced whole. A crash before leaves the earlier one,
    // whose links still work because pages of records are never removed.
    write(out, Path::new(INDEX), &print_index(&index)?)?;
    Ok(Site {
        index: out.join(INDEX),
        records,
        damaged,
    })
}

/// A page that this program did not make is not overwritten, because its author would miss it.
fn refuse_foreign(index: &Path) -> Result<(), ReportError> {
    match std::fs::read(index) {
        Ok(bytes) if !String::from_utf8_lossy(&bytes).contains("content=\"dyno site\"") => {
            Err(ReportError::NotOurs {
                path: index.to_path_buf(),
            })
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        // What cannot be read is not known to be ours, and to find that it cannot be replaced
        // either, after all other pages, would leave half a site.
        Err(source) => Err(ReportError::Record(RecordError::Io {
            path: index.to_path_buf(),
            doing: "read",
            source,
        })),
    }
}

/// Where a record lies below the results, and its page below the site.
struct RecordPage {
    /// The folders above the record; empty when it lies directly below the results.
    machine: String,
    name: String,
    page: PathBuf,
}

impl RecordPage {
    fn from_dir(results: &Path, dir: &Path) -> RecordPage {
        let below = dir.strip_prefix(results).unwrap_or(dir);
        let text = |path: Option<&Path>| path.map_or(String::new(), |p| p.display().to_string());
        // A folder that is itself a record has the name that it was called by.
        let name = below.file_name().or(dir.file_name());
        let name = name.map_or("record".to_owned(), |n| n.to_string_lossy().into_owned());
        let above = below.parent().unwrap_or(Path::new(""));
        let mut page = PathBuf::from("records").join(above);
        page.push(format!("{name}.html"));
        RecordPage {
            machine: text(below.parent()),
            name,
            page,
        }
    }

    /// The way back from the page to the first one.
    fn home(&self) -> String {
        "../".repeat(self.page.components().count() - 1) + INDEX
    }
}

fn write(out: &Path, page: &Path, text: &str) -> Result<(), ReportError> {
    let path = out.join(page);
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    let dir = path.parent().unwrap_or(out);
    std::fs::create_dir_all(dir).map_err(|source| RecordError::Io {
        path: dir.to_path_buf(),
        doing: "create directory",
        source,
    })?;
    RunDir::write_report(dir, &name, text.as_bytes())?;
    Ok(())
}

fn entry(report: &Report, page: &RecordPage, engine_of: impl Fn(&str) -> String) -> Entry {
    let run = &report.run;
    let headline = headline(report);
    let workloads = run.plan.cases.iter().map(|case| case.workload.as_str());
    Entry {
        page: link(&page.page),
        name: page.name.clone(),
        machine: match page.machine.as_str() {
            "" => processor(report),
            machine => machine.to_owned(),
        },
        engines: workloads.map(engine_of).collect(),
        suite: run.plan.suite.clone(),
        size: run.plan.size_text(),
        title: run.plan.title.clone(),
        started_at: run.started_at.clone(),
        revision: run.program.git_revision.clone(),
        standing: match report.withdrawn {
            Some(_) => "withdrawn",
            None => "older",
        },
        withdrawn: WithdrawnView::from_report(report),
        summary: headline.summary.clone(),
        columns: headline.columns,
        rows: rows(report, &headline),
        command: report.command(),
    }
}

fn processor(report: &Report) -> String {
    let machine = &report.run.machine;
    let cpu = machine.facts.iter().find(|(name, _)| name == "cpu");
    cpu.map_or(&machine.fingerprint, |(_, cpu)| cpu).clone()
}

/// A record is among the latest unless newer ones of its machine have measured each of its cases
/// again, so that an invocation of a few cases does not hide the others of a record.
/// Withdrawn records take no part, so an older record that is still valid is the latest. `entries`
/// are sorted, the newest first.
fn mark_latest(mut entries: Vec<(Entry, Plan)>) -> Vec<Entry> {
    for index in 0..entries.len() {
        let (newer, others) = entries.split_at_mut(index);
        let (entry, plan) = &mut others[0];
        let newer = newer
            .iter()
            .filter(|(other, _)| other.withdrawn.is_none() && other.machine == entry.machine);
        if entry.withdrawn.is_none() && !plan.is_replaced_by(newer.map(|(_, plan)| plan)) {
            entry.standing = "latest";
        }
    }
    entries.into_iter().map(|(entry, _)| entry).collect()
}

fn index(records: Vec<Entry>, damaged: Vec<String>) -> Index {
    let all = |value: fn(&Entry) -> Vec<String>| records.iter().flat_map(value).collect();
    Index {
        machines: all(|entry| vec![entry.machine.clone()]),
        engines: all(|entry| entry.engines.iter().cloned().collect()),
        suites: all(|entry| vec![entry.suite.clone()]),
        withdrawn: records.iter().filter(|e| e.withdrawn.is_some()).count(),
        records,
        damaged,
    }
}

/// A path as a link: every byte that means something in one is escaped.
fn link(path: &Path) -> String {
    let text = path.to_string_lossy();
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
