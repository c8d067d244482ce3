//! What can go wrong around a run. A failing child is not an error here: it becomes a sample that
//! says so.

use std::path::PathBuf;

/// Why a suite could not be read, planned or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The suite or peer file is wrong at a line; mend the file.
    #[error("{file}:{line}: {reason}")]
    Definition {
        /// The file, as the reader was told of it.
        file: String,
        /// The line of the mistake, counted from 1.
        line: usize,
        /// What is wrong at that line, as a sentence.
        reason: String,
    },
    /// A file or directory could not be used; the path says which.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory that an action failed on.
        path: PathBuf,
        /// The reason that the operating system gave.
        source: std::io::Error,
    },
    /// No suite or peer has this name; the message lists the names that exist.
    #[error("no {kind} is called `{name}`; {nearest}there are: {known}")]
    Unknown {
        /// What was looked for: a suite, a peer, a case of the suite.
        kind: &'static str,
        /// The name as the user wrote it.
        name: String,
        /// The name that was probably meant, as a part of the message; empty if none is near.
        nearest: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// Every case of a suite was left out; leave out fewer.
    #[error("suite {suite}: no case is left to run")]
    NothingLeft {
        /// The name of the suite whose cases are all left out.
        suite: String,
    },
    /// A child program could not be started at all.
    #[error("{program} could not be started: {reason}")]
    Start {
        /// The executable as it was to be started.
        program: String,
        /// The reason that the operating system gave.
        reason: String,
    },
    /// Data that cases need could not be made; nothing was timed.
    #[error("data `{name}` could not be prepared by {system}: {reason}")]
    Data {
        /// The name of the `[[data]]` section.
        name: String,
        /// The system that was making it.
        system: String,
        /// What the maker said on standard error, or why it was not asked.
        reason: String,
    },
    /// The plan needs more than the machine has, or than the user grants; take a smaller size.
    #[error("the run does not fit: {0}")]
    TooBig(String),
    /// A peer could not be installed or does not answer as declared.
    #[error("peer {name}: {reason}")]
    Peer {
        /// The name of the peer as it is declared.
        name: String,
        /// The step that failed, with what the step said.
        reason: String,
    },
    /// The load beside a sample could not be started or ended by itself; give one that runs until
    /// it is killed. Samples up to here are on disk.
    #[error("the load beside the run, `{load}`: {reason}")]
    Beside {
        /// The load as the user wrote it.
        load: String,
        /// What the system said, or how it ended.
        reason: String,
    },
    /// The record could not be written; samples up to here are on disk.
    #[error(transparent)]
    Record(#[from] dyno_record::RecordError),
    /// The run was stopped by the user before it could time anything.
    #[error("stopped before anything was timed")]
    Stopped,
}

impl Error {
    /// The error for a name that is not among `known`.
    pub fn unknown(kind: &'static str, name: &str, known: &[&str]) -> Error {
        let near = nearest(name, known.iter().copied());
        Error::Unknown {
            kind,
            name: name.to_owned(),
            nearest: near.map_or_else(String::new, |near| format!("did you mean `{near}`? ")),
            known: known.join(", "),
        }
    }

    /// Wraps an I/O error with the path it concerns.
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io {
            path: path.into(),
            source,
        }
    }
}

/// The name that `word` was probably meant to be: the one that the fewest insertions, deletions,
/// replacements and transpositions of neighbours away, if these are at most a third of its letters.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits = |name: &&'a str| (strsim::damerau_levenshtein(word, name), *name);
    let (edits, name) = names
        .into_iter()
        .map(|name| edits(&name))
        .min_by_key(|(edits, _)| *edits)?;
    let letters = word.chars().count().max(name.chars().count());
    (edits <= (letters / 3).max(1)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_also_where_letters_changed_places() {
        let names = ["run", "report", "wspr", "wspr-queries"];
        assert_eq!(nearest("rnu", names), Some("run"));
        assert_eq!(nearest("wpsr", names), Some("wspr"));
        assert_eq!(nearest("repotr", names), Some("report"));
        assert_eq!(nearest("wspr-query", names), Some("wspr-queries"));
        assert_eq!(nearest("nothing", names), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_all_names() {
        assert_eq!(
            Error::unknown("suite", "wpsr", &["wspr", "k2"]).to_string(),
            "no suite is called `wpsr`; did you mean `wspr`? there are: wspr, k2"
        );
        assert_eq!(
            Error::unknown("suite", "nothing", &["wspr", "k2"]).to_string(),
            "no suite is called `nothing`; there are: wspr, k2"
        );
    }
}
