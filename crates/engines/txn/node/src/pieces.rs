//! Cuts records that are longer than the log takes into pieces, and records of checkpoints
//! likewise. A record that fits stays as it is: it begins with its version, which is not one of the
//! marks below.

use dyno_txn_api::{Code, Error, Result};

const FIRST: u8 = 0xfd;
const MIDDLE: u8 = 0xfe;
const LAST: u8 = 0xff;

/// Cuts a record into pieces of at most `most_bytes` each, their marks included.
pub(crate) fn cut(record: &[u8], most_bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    let size = most_bytes.max(2) - 1;
    let count = record.len().div_ceil(size);
    record.chunks(size).enumerate().map(move |(at, part)| {
        let mark = match at {
            0 => FIRST,
            _ if at + 1 == count => LAST,
            _ => MIDDLE,
        };
        [&[mark], part].concat()
    })
}

/// Puts pieces together again, as a log or a checkpoint is read.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    bytes: Vec<u8>,
    /// Whether a first piece has come, and not yet the last one.
    open: bool,
    /// Whether what comes next may be the rest of a record that began before all that is read.
    midway: bool,
}

impl Joiner {
    /// For the log behind a checkpoint, which may begin in the middle of a record: a full log can
    /// take the first pieces of one and have room for the others only when the checkpoint is over.
    /// The partition had carried the whole record out before the checkpoint began, so its effects
    /// are in the checkpoint and the pieces that are left of it are dropped.
    pub fn for_log() -> Self {
        Self {
            midway: true,
            ..Self::default()
        }
    }

    /// Adds what was read next. Returns the record that ends with it, if one does. Pieces whose
    /// last one never comes are dropped: a crash cut the record short, so its commit was not
    /// answered.
    ///
    /// # Errors
    /// [`Code::Damaged`] for a piece without the one before it, which no crash leaves.
    pub fn push<'a>(&'a mut self, read: &'a [u8]) -> Result<Option<&'a [u8]>> {
        let (mark, piece) = match read.split_first() {
            Some((&mark, piece)) if mark >= FIRST => (mark, piece),
            _ => {
                (self.open, self.midway) = (false, false);
                return Ok(Some(read));
            }
        };
        if mark == FIRST {
            self.bytes.clear();
            (self.open, self.midway) = (true, false);
        } else if self.midway {
            self.midway = mark != LAST;
            return Ok(None);
        } else if !self.open {
            return Err(Error::new(
                Code::Damaged,
                "a piece of a record without its beginning",
            ));
        }
        self.bytes.extend_from_slice(piece);
        if mark != LAST {
            return Ok(None);
        }
        self.open = false;
        Ok(Some(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_together_and_what_a_crash_left_is_dropped() {
        let long: Vec<u8> = (0..100).map(|at| at % 7).collect();
        let mut joiner = Joiner::default();
        let all: Vec<Vec<u8>> = cut(&long, 16).collect();
        assert!(all.len() == 7 && all.iter().all(|piece| piece.len() <= 16));
        for piece in &all[..4] {
            assert_eq!(joiner.push(piece), Ok(None));
        }
        assert_eq!(joiner.push(b"\x01whole"), Ok(Some(&b"\x01whole"[..])));
        for piece in &all[..6] {
            assert_eq!(joiner.push(piece), Ok(None));
        }
        assert_eq!(joiner.push(&all[6]), Ok(Some(&long[..])));
        assert!(joiner.push(&all[6]).is_err(), "a last piece alone");
    }

    #[test]
    fn a_log_may_begin_with_the_rest_of_a_record_and_only_begin_with_it() {
        let long: Vec<u8> = (0..100).map(|at| at % 7).collect();
        let all: Vec<Vec<u8>> = cut(&long, 16).collect();
        // The rest with its last piece, the rest of a record that a crash cut short, and nothing.
        for (rest, whole) in [(&all[3..], true), (&all[3..5], true), (&all[..0], false)] {
            let mut joiner = Joiner::for_log();
            for piece in rest {
                assert_eq!(joiner.push(piece), Ok(None));
            }
            if whole {
                assert_eq!(joiner.push(b"\x01whole"), Ok(Some(&b"\x01whole"[..])));
            }
            for piece in &all[..6] {
                assert_eq!(joiner.push(piece), Ok(None));
            }
            assert_eq!(joiner.push(&all[6]), Ok(Some(&long[..])));
            assert!(joiner.push(&all[6]).is_err(), "a last piece in the middle");
        }
        let mut joiner = Joiner::for_log();
        assert_eq!(joiner.push(&all[6]), Ok(None));
        assert!(joiner.push(&all[6]).is_err(), "a second rest");
        let mut joiner = Joiner::default();
        assert!(joiner.push(&all[5]).is_err(), "a checkpoint begins whole");
    }
}
