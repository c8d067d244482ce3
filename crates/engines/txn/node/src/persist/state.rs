//! The file `remote` of an engine's directory: the number of its first log, the epoch of its last
//! start, and the newest epoch in which anything may have been answered
//! (docs/formats/txn-directory.md).

use std::path::Path;

use dyno_txn_api::Result;

use crate::sealed::{Fields, Sealed, damaged};

const FILE: Sealed = Sealed {
    file: "remote",
    name: "dyno-txn-remote",
    version: 1,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// The number of partition 0's log. Partition P's is P more.
    pub logs: u64,
    /// The epoch of this start: one more than that of the start before.
    pub epoch: u64,
    /// The epoch of the last start that may have answered anything; 0 if none has.
    pub active: u64,
}

impl State {
    /// The number of a partition's log at the stores.
    pub fn log_number(&self, partition: u32) -> u64 {
        self.logs.wrapping_add(u64::from(partition))
    }

    /// The state for a new start. It is on the disk when this returns, so no epoch is ever used
    /// twice, not even by a start that crashes at once. Only a directory that is `new` may have no
    /// such file: without it, the logs of an older one cannot be told from those of other engines.
    pub fn begin(directory: &Path, new: bool) -> Result<Self> {
        let mut state = match FILE.read(directory, parse)? {
            Some(state) => state,
            None if new => State {
                logs: dyno_txn_log::fresh_identity(),
                epoch: 0,
                active: 0,
            },
            None => return Err(FILE.missing(directory)),
        };
        state.epoch += 1;
        state.write(directory)?;
        Ok(state)
    }

    /// Writes down that answers may be given in this epoch. From then on a restart does not accept
    /// the log of an earlier one.
    pub fn activate(mut self, directory: &Path) -> Result<()> {
        self.active = self.epoch;
        self.write(directory)
    }

    fn write(&self, directory: &Path) -> Result<()> {
        FILE.write(
            directory,
            &[
                ("logs", &self.logs),
                ("epoch", &self.epoch),
                ("active", &self.active),
            ],
        )
    }
}

fn parse(fields: &mut Fields<'_>) -> Result<State> {
    let state = State {
        logs: fields.number("logs")?,
        epoch: fields.number("epoch")?,
        active: fields.number("active")?,
    };
    if state.active <= state.epoch {
        Ok(state)
    } else {
        Err(damaged("`active` is an epoch that has not been".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::assert_sealed;

    #[test]
    fn the_first_format_is_read_and_damage_found() {
        let state = State {
            logs: 77,
            epoch: 3,
            active: 2,
        };
        // Version 1 as it was first written: every later version must read it.
        assert_sealed(
            &FILE,
            "dyno-txn-remote 1\nlogs 77\nepoch 3\nactive 2\nchecksum cd286e43\n",
            &[("logs", &77), ("epoch", &3), ("active", &2)],
            state,
            parse,
        );
    }

    #[test]
    fn epochs_rise_and_the_active_one_stays() {
        let at = tempfile::tempdir().expect("a directory");
        let first = State::begin(at.path(), true).expect("new");
        assert_eq!((first.epoch, first.active), (1, 0));
        first.activate(at.path()).expect("written");
        let second = State::begin(at.path(), false).expect("again");
        assert_eq!((second.epoch, second.active), (2, 1));
        assert_eq!(second.logs, first.logs);
        std::fs::remove_file(at.path().join("remote")).expect("it was there");
        let refused = State::begin(at.path(), false).expect_err("its logs are not known");
        assert!(refused.text().contains("`remote`"), "{refused}");
    }
}
