//! Reading and writing a `FIGURES.toml`.

use std::path::Path;

use crate::error::RecordError;
use crate::figures::{FIGURES_VERSION, Figures, QuotedFigure};
use crate::run_dir::replace_file;

const MAGIC: &str = "dyno-figures";

/// Reads a `FIGURES.toml`.
///
/// # Errors
/// With file and line: an unknown key, a missing one, a wrong magic, a newer version, two figures
/// of one id, a reference to a figure, a limit or percentiles that the file does not have.
pub fn read_figures(path: &Path) -> Result<Figures, RecordError> {
    let text = std::fs::read_to_string(path).map_err(RecordError::io(path, "read"))?;
    parse_figures(path, &text)
}

/// Does as [`read_figures`] with the text of the file; errors name `path`.
///
/// # Errors
/// As [`read_figures`].
pub fn parse_figures(path: &Path, text: &str) -> Result<Figures, RecordError> {
    // Magic and version are looked at before the typed parse, because a file of a newer version has
    // keys that this one would call unknown, and the user would be told to mend a file that is
    // right.
    let table: toml::Table = text.parse().map_err(|e| malformed(path, text, &e))?;
    check_version(path, &table)?;
    let mut figures: Figures = toml::from_str(text).map_err(|e| malformed(path, text, &e))?;
    // What was read is in the form of today, and is written as that.
    figures.version = FIGURES_VERSION;
    match dangling(&figures) {
        None => Ok(figures),
        Some((name, reason)) => Err(RecordError::Malformed {
            path: path.to_path_buf(),
            line: line_of(text, &name),
            reason,
        }),
    }
}

/// Writes a `FIGURES.toml`, whole or not at all, with the magic and version of this program.
///
/// # Errors
/// When the file can't be written.
pub fn write_figures(path: &Path, figures: &Figures) -> Result<(), RecordError> {
    let stamped = Figures {
        magic: MAGIC.to_owned(),
        version: FIGURES_VERSION,
        ..figures.clone()
    };
    let text = toml::to_string(&stamped).map_err(|e| RecordError::Unstorable {
        path: path.to_path_buf(),
        object: "figures".to_owned(),
        reason: e.to_string(),
    })?;
    replace_file(path, text.as_bytes())
}

fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> RecordError {
    let offset = error.span().map_or(0, |span| span.start);
    let line = text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    RecordError::Malformed {
        path: path.to_path_buf(),
        line,
        reason: error.message().to_owned(),
    }
}

fn check_version(path: &Path, table: &toml::Table) -> Result<(), RecordError> {
    let magic = table.get("magic").and_then(toml::Value::as_str);
    if magic != Some(MAGIC) {
        return Err(RecordError::Magic {
            path: path.to_path_buf(),
            expected: MAGIC,
            found: magic.map_or("missing".to_owned(), |found| format!("{found:?}")),
        });
    }
    match table.get("version").and_then(toml::Value::as_integer) {
        Some(found) if found > i64::from(FIGURES_VERSION) => Err(RecordError::Newer {
            path: path.to_path_buf(),
            format: MAGIC,
            found: found.unsigned_abs(),
            newest: FIGURES_VERSION,
        }),
        // Versions 2 to 4 added keys that may be left out, so an older file is one of version 4. A
        // version that is not a number is named by the typed parse.
        Some(found) if found < 1 => Err(RecordError::Malformed {
            path: path.to_path_buf(),
            line: 1,
            reason: format!("version {found} was never released"),
        }),
        _ => Ok(()),
    }
}

/// The first name that refers to nothing, or stands twice, with the reason.
fn dangling(figures: &Figures) -> Option<(String, String)> {
    let mut ids: Vec<&str> = figures.figures.iter().map(|f| f.id.as_str()).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        let reason = format!("two figures have the id \"{}\"", pair[0]);
        return Some((pair[0].to_owned(), reason));
    }
    for claim in &figures.claims {
        for id in [&claim.winner, &claim.loser] {
            if ids.binary_search(&id.as_str()).is_err() {
                let reason = format!("claim \"{}\": no figure has the id \"{id}\"", claim.text);
                return Some((id.clone(), reason));
            }
        }
    }
    figures
        .figures
        .iter()
        .find_map(|figure| missing(figures, figure))
}

/// The first name in `figure` that refers to nothing, with the reason.
fn missing(figures: &Figures, figure: &QuotedFigure) -> Option<(String, String)> {
    let limit = |name: &String| figures.limits.iter().any(|l| &l.name == name);
    let latency = |name: &String| figures.latencies.iter().any(|l| &l.subject == name);
    let anything = |name: &String| {
        limit(name)
            || latency(name)
            || figures.figures.iter().any(|f| &f.id == name)
            || figures.counts.iter().any(|c| &c.subject == name)
            || figures.totals.iter().any(|t| &t.subject == name)
            || figures.properties.iter().any(|p| &p.subject == name)
    };
    let of = |name: &String, what: &str| {
        let reason = format!("figure \"{}\": {what} \"{name}\"", figure.id);
        Some((name.clone(), reason))
    };
    let named = |name: &Option<String>, known: &dyn Fn(&String) -> bool, what: &str| {
        let unknown = name.as_ref().filter(|name| !known(name));
        unknown.and_then(|name| of(name, what))
    };
    named(&figure.limit, &limit, "no limit is named")
        .or_else(|| named(&figure.latency, &latency, "no percentiles are those of"))
        .or_else(|| {
            let mut from = figure.from.iter();
            let name = from.find(|name| !anything(name))?;
            of(name, "it is made from something that is not in the file,")
        })
}

/// The line where a quoted name stands last, since the first is the one that defines it.
fn line_of(text: &str, name: &str) -> usize {
    let quoted = format!("\"{name}\"");
    let found = text
        .lines()
        .enumerate()
        .filter(|(_, l)| l.contains(&quoted));
    found.last().map_or(1, |(index, _)| index + 1)
}
