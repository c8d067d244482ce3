//! The file tree that facts are read from: `/`, or a made-up one in tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Where /proc, /sys and /etc are looked for.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// The tree of this machine, for everything but tests.
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree under `path` that is laid out like a machine's.
    pub fn at(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    /// The trimmed text of a file; `None` when it is missing, unreadable or empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(path)).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The number in a file that holds nothing else.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a directory, sorted; empty when it is missing.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path))
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Whether a file or directory exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

/// The word in brackets of a kernel setting such as `always [madvise] never`.
pub(crate) fn chosen(setting: &str) -> Option<&str> {
    let start = setting.find('[')? + 1;
    let end = start + setting[start..].find(']')?;
    Some(&setting[start..end])
}

/// The value after `key` in `key : value` lines.
pub(crate) fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once([':', '='])?;
        (name.trim() == key).then(|| value.trim().trim_matches('"'))
    })
}
