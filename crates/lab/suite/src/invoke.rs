//! From a case to a child, and from what the child left to an outcome.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_record::{Answer, CasePlan, Outcome};
use serde_json::Value;

use crate::Error;
use crate::executor::{Ended, Exit, Invocation};
use crate::protocol::{self, Phase, Reply, Request};
use crate::system::System;

/// Where `${data.NAME}` lies for one system.
pub(crate) type DataDirs<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// Builds the invocation of a workload on a system.
pub(crate) fn invocation(
    system: &System,
    workload: &str,
    params: BTreeMap<String, Value>,
    phase: Phase,
    scratch: &Path,
    time_limit_s: f64,
) -> Invocation {
    Invocation {
        system: system.name.clone(),
        program: system.program.clone(),
        args: system.args.clone(),
        request: Request {
            workload: workload.to_string(),
            params,
            scratch: scratch.to_path_buf(),
            phase,
        },
        time_limit: Duration::from_secs_f64(time_limit_s),
    }
}

/// Replaces `${data.NAME}` by directories and lists the files of a pattern (`${data.NAME}/*.gz`).
///
/// # Errors
/// The reason, when a pattern matches nothing or its directory cannot be read.
pub(crate) fn resolve(
    params: &BTreeMap<String, Value>,
    dirs: &DataDirs<'_>,
) -> Result<BTreeMap<String, Value>, String> {
    params
        .iter()
        .map(|(key, value)| Ok((key.clone(), resolve_value(value, dirs)?)))
        .collect()
}

fn resolve_value(value: &Value, dirs: &DataDirs<'_>) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains("${data.") => {
            let path = resolve_text(text, dirs)?;
            if path.contains('*') {
                let files = matching(Path::new(&path))?;
                Ok(Value::Array(files.into_iter().map(Value::String).collect()))
            } else {
                Ok(Value::String(path))
            }
        }
        Value::Array(items) => items.iter().map(|v| resolve_value(v, dirs)).collect(),
        other => Ok(other.clone()),
    }
}

fn resolve_text(text: &str, dirs: &DataDirs<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${data.") {
        out.push_str(&rest[..at]);
        let after = &rest[at + "${data.".len()..];
        let close = after
            .find('}')
            .ok_or_else(|| format!("`{text}` is never closed"))?;
        let dir = dirs(&after[..close])
            .ok_or_else(|| format!("data `{}` was not made", &after[..close]))?;
        out.push_str(&dir.to_string_lossy());
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Files whose name matches a pattern with one `*`, in order of name.
fn matching(pattern: &Path) -> Result<Vec<String>, String> {
    let dir = pattern.parent().unwrap_or(Path::new("."));
    let name = pattern.file_name().unwrap_or_default().to_string_lossy();
    let Some((before, after)) = name.split_once('*') else {
        return Err(format!(
            "`{}`: `*` belongs into the file's name",
            pattern.display()
        ));
    };
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: {e}", dir.display()))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let fits = file.len() >= before.len() + after.len()
            && file.starts_with(before)
            && file.ends_with(after);
        if fits {
            files.push(entry.path().to_string_lossy().into_owned());
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("no file matches {}", pattern.display()));
    }
    Ok(files)
}

/// What a child that was not stopped came to: its reply, if it ended well, and the outcome.
pub(crate) fn judge(ended: &Ended, time_limit_s: f64) -> (Option<Reply>, Outcome) {
    let failed = |reason: String| (None, Outcome::Failed(reason));
    match ended.exit {
        Exit::TimedOut => (
            None,
            Outcome::Hung(format!(
                "killed after {:.1} s; its limit is {time_limit_s} s{}",
                ended.wall_s,
                stderr_end(&ended.stderr)
            )),
        ),
        Exit::Stopped => failed("stopped by the user".to_string()),
        Exit::Signal(signal) => failed(format!(
            "ended by signal {signal}{}{}",
            // The kernel ends a process this way when memory runs out, and nothing else does here.
            if signal == 9 { " (out of memory?)" } else { "" },
            stderr_end(&ended.stderr)
        )),
        // A child that says that all went well must also have answered; an empty or torn reply
        // fails the sample and not the run.
        Exit::Code(0) => match protocol::parse_last_line::<Reply>(&ended.stdout) {
            Ok(reply) => (Some(reply), Outcome::Done),
            Err(reason) => failed(reason),
        },
        Exit::Code(code) => failed(format!(
            "ended with code {code}{}",
            stderr_end(&ended.stderr)
        )),
    }
}

/// The end of what a child complained about, for a message; of a panic, its reason and not the
/// trace that follows.
fn stderr_end(stderr: &str) -> String {
    const SHOWN_BYTES: usize = 600;
    let text = stderr.trim();
    let panic = text.find(" panicked at ").map(|at| &text[at + 1..]);
    if let Some(panic) = panic {
        let lines: Vec<&str> = panic.lines().take(2).collect();
        return format!(": {}", lines.join(" "));
    }
    if text.is_empty() {
        return String::new();
    }
    let mut from = text.len().saturating_sub(SHOWN_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    format!(": {}", &text[from..])
}

/// Why the answer of a system is wrong, if it is.
pub(crate) fn wrong_answer(
    case: &CasePlan,
    system: &str,
    answer: Option<&Answer>,
    agreed: Option<&Answer>,
) -> Option<String> {
    let Some(answer) = answer else {
        return Some("it gave no answer".to_string());
    };
    // Before the comparison with the others: when all systems were fed the same wrong input, they
    // agree on the wrong count.
    if let Some(expected) = case.expected_count
        && answer.count != expected
    {
        return Some(format!(
            "it counted {} and {expected} was expected",
            answer.count
        ));
    }
    // An experiment whose output goes nowhere has nothing left that could be read back.
    let experiment = case.experiments.get(system);
    let agrees = |agreed: &Answer| match experiment {
        Some(experiment) if experiment.keeps_nothing => agreed.count == answer.count,
        _ => agreed == answer,
    };
    match agreed {
        Some(agreed) if !agrees(agreed) => Some(format!(
            "it answered {} ({}) and the verified answer is {} ({})",
            answer.count, answer.checksum, agreed.count, agreed.checksum
        )),
        _ => None,
    }
}

/// Keeps a histogram log that a child left in its scratch directory.
pub(crate) fn keep_histogram(from: &Path, run: &Path, name: &str) -> Result<String, Error> {
    let file = format!("{name}.hdr");
    let to = run.join(&file);
    fs::copy(from, &to).map_err(|e| Error::io(from, e))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_by_its_reason() {
        let text =
            "loading\nthread 'main' panicked at src/x.rs:1:2:\nindex out of bounds\nstack:\n";
        assert_eq!(
            stderr_end(text),
            ": panicked at src/x.rs:1:2: index out of bounds"
        );
        assert_eq!(stderr_end("it broke\n"), ": it broke");
        assert_eq!(stderr_end(" "), "");
    }

    #[test]
    fn patterns_become_files() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["b.csv.gz", "a.csv.gz", "notes.txt"] {
            fs::write(dir.path().join(name), "").expect("a file");
        }
        let root = dir.path().to_path_buf();
        let dirs = move |name: &str| (name == "archive").then(|| root.clone());
        let params = |text: &str| BTreeMap::from([("files".to_string(), Value::from(text))]);
        let got = resolve(&params("${data.archive}/*.csv.gz"), &dirs).expect("two files");
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        assert_eq!(
            got["files"],
            serde_json::json!([at("a.csv.gz"), at("b.csv.gz")])
        );
        let got = resolve(&params("${data.archive}"), &dirs).expect("the directory");
        assert_eq!(got["files"], dir.path().to_string_lossy().into_owned());
        let e = resolve(&params("${data.archive}/*.zip"), &dirs).expect_err("none");
        assert!(e.contains("no file matches"), "{e}");
        let e = resolve(&params("${data.db}"), &dirs).expect_err("none");
        assert!(e.contains("`db` was not made"), "{e}");
    }
}
