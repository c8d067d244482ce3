//! The file `remote` of an engine's directory: the number from which those of its logs are counted, the epoch of its
//! last start, and the newest epoch in which anything may have been answered (FORMAT.md, "An engine's directory").

use std::path::Path;

use dyno_txn_api::{Code, Error, Result};

use crate::directory::{read_text, write_text};

const FILE: &str = "remote";
const VERSION: u32 = 1;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// Partition P's log has this number and P more.
    pub logs: u64,
    /// Of this start.
    pub epoch: u64,
    /// Of the last start that answered anything; 0: none did.
    pub active: u64,
}

impl State {
    /// The number of a partition's log.
    pub fn log_of(&self, partition: u32) -> u64 {
        self.logs.wrapping_add(u64::from(partition))
    }

    /// The state for a new start, which is on the disk when this returns.
    pub fn begin(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let mut state = match read_text(&path)? {
            Some(text) => parse(&text).map_err(|error| {
                let text = format!("{}: {}", path.display(), error.text());
                Error::new(error.kind(), text)
            })?,
            None => State {
                logs: dyno_txn_log::fresh_identity(),
                epoch: 0,
                active: 0,
            },
        };
        state.epoch += 1;
        state.write(directory)?;
        Ok(state)
    }

    /// From now on answers may be given in this epoch.
    pub fn activate(mut self, directory: &Path) -> Result<()> {
        self.active = self.epoch;
        self.write(directory)
    }

    fn write(&self, directory: &Path) -> Result<()> {
        write_text(directory, FILE, &self.text())
    }

    fn text(&self) -> String {
        let Self {
            logs,
            epoch,
            active,
        } = self;
        let text =
            format!("dyno-txn-remote {VERSION}\nlogs {logs}\nepoch {epoch}\nactive {active}\n");
        let checksum = dyno_checksum::crc32c(text.as_bytes());
        format!("{text}checksum {checksum:08x}\n")
    }
}

fn parse(text: &str) -> Result<State> {
    let damaged = |what: &str| Error::new(Code::Damaged, what);
    let mut lines = text.lines();
    let mut field = |name: &str| -> Result<&str> {
        let line = lines
            .next()
            .and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.ok_or_else(|| damaged(&format!("no line `{name}` where it should be")))
    };
    let version: u32 = field("dyno-txn-remote")?
        .parse()
        .map_err(|_| damaged("no version"))?;
    if version > VERSION {
        let text = format!("format version {version}; this program knows up to {VERSION}");
        return Err(Error::new(Code::NewerVersion, text));
    }
    let mut number = |name: &str| -> Result<u64> {
        let found = field(name)?.parse();
        found.map_err(|_| damaged(&format!("`{name}` is no number")))
    };
    let (logs, epoch, active) = (number("logs")?, number("epoch")?, number("active")?);
    let state = State {
        logs,
        epoch,
        active,
    };
    match state.text() == text && active <= epoch {
        true => Ok(state),
        false => Err(damaged("its checksum is wrong")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1 as it was first written: every later version must read it.
    const FIXTURE: &str = "dyno-txn-remote 1\nlogs 77\nepoch 3\nactive 2\nchecksum cd286e43\n";

    #[test]
    fn the_first_format_is_read_and_damage_found() {
        let state = State {
            logs: 77,
            epoch: 3,
            active: 2,
        };
        assert_eq!(state.text(), FIXTURE);
        assert_eq!(parse(FIXTURE), Ok(state));
        for at in 0..FIXTURE.len() {
            let mut bytes = FIXTURE.as_bytes().to_vec();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).expect("still ASCII");
            assert!(parse(&text).is_err(), "byte {at}");
        }
        let newer = parse("dyno-txn-remote 2\n").expect_err("newer");
        assert_eq!(newer.kind(), Code::NewerVersion);
    }

    #[test]
    fn epochs_rise_and_the_active_one_stays() {
        let at = tempfile::tempdir().expect("a directory");
        let first = State::begin(at.path()).expect("new");
        assert_eq!((first.epoch, first.active), (1, 0));
        first.activate(at.path()).expect("written");
        let second = State::begin(at.path()).expect("again");
        assert_eq!((second.epoch, second.active), (2, 1));
        assert_eq!(second.logs, first.logs);
    }
}
