//! A history as a file with one event a line. A run that fails leaves it behind, to find the cause
//! with.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::{Event, History, HistoryError};

impl History {
    /// Writes all events to `path`, as JSON, one a line.
    pub fn save(&self, path: &Path) -> Result<(), HistoryError> {
        let failed = |source| HistoryError::Io {
            action: "write",
            path: path.to_path_buf(),
            source,
        };
        let mut to = BufWriter::new(File::create(path).map_err(failed)?);
        for event in &self.events {
            serde_json::to_writer(&mut to, event)
                .map_err(io::Error::from)
                .and_then(|()| to.write_all(b"\n"))
                .map_err(failed)?;
        }
        to.flush().map_err(failed)
    }

    /// Reads what [`History::save`] wrote, of at most `events_max` events.
    pub fn load(path: &Path, events_max: usize) -> Result<Self, HistoryError> {
        let failed = |source| HistoryError::Io {
            action: "read",
            path: path.to_path_buf(),
            source,
        };
        let mut history = Self::new(events_max);
        for (at, line) in BufReader::new(File::open(path).map_err(failed)?)
            .lines()
            .enumerate()
        {
            let event: Event = serde_json::from_str(&line.map_err(failed)?).map_err(|error| {
                HistoryError::Line {
                    path: path.to_path_buf(),
                    line: at + 1,
                    reason: error.to_string(),
                }
            })?;
            history.push(event)?;
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::What;
    use crate::message::Identity;

    #[test]
    fn a_history_survives_its_file_and_says_which_line_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.ndjson");
        let mut history = History::new(3);
        for sequence in 0..3 {
            let what = What::Failed(Identity {
                producer: 1,
                partition: 0,
                sequence,
            });
            history.push(Event { at_us: 5, what }).unwrap();
        }
        let full = history.push(history.events()[0]).unwrap_err();
        assert!(full.to_string().contains("3 events"), "{full}");
        history.save(&path).unwrap();
        let again = History::load(&path, 10).unwrap();
        assert_eq!(again.events(), history.events());
        std::fs::write(&path, "{}\n").unwrap();
        let error = History::load(&path, 10).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
