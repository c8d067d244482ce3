//! What a crash leaves; the model is in the crate's documentation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_random::Random;

/// The unit that a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// A change of a file that is not synced.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A file: what its users see, and what a crash cannot take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub seen: Vec<u8>,
    pub stable: Vec<u8>,
    pub unsynced: Vec<Change>,
    /// Writes, each of them stable when it ends, that have not ended; by number.
    pub in_flight: Vec<(u64, usize, Vec<u8>)>,
}

impl Content {
    pub fn change(&mut self, change: Change) {
        apply(&mut self.seen, &change);
        self.unsynced.push(change);
    }

    /// What is stable stays so; what an earlier failed sync lost does not come back.
    pub fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.stable, &change);
        }
    }

    /// A write that is stable when it ends begins.
    pub fn begin(&mut self, number: u64, offset: usize, bytes: Vec<u8>) {
        let change = Change::Write { offset, bytes };
        apply(&mut self.seen, &change);
        if let Change::Write { offset, bytes } = change {
            self.in_flight.push((number, offset, bytes));
        }
    }

    /// Takes a write that begun back out; what it overwrote is seen again.
    pub fn withdraw(&mut self, number: u64) -> Option<(usize, Vec<u8>)> {
        let at = self.in_flight.iter().position(|entry| entry.0 == number)?;
        let (_, offset, bytes) = self.in_flight.swap_remove(at);
        let end = (offset + bytes.len()).min(self.seen.len());
        for (at, seen) in self.seen[offset..end].iter_mut().enumerate() {
            *seen = self.stable.get(offset + at).copied().unwrap_or(0);
        }
        Some((offset, bytes))
    }

    /// Bytes that are on the disk, come what may.
    pub fn settle(&mut self, offset: usize, bytes: &[u8]) {
        // A stable write takes along what is needed to find it: the file's length. An older write
        // to the same place that is not synced cannot come over it any more.
        for mut change in std::mem::take(&mut self.unsynced) {
            match &mut change {
                Change::Length(_) => apply(&mut self.stable, &change),
                Change::Write {
                    offset: older,
                    bytes: beneath,
                } => {
                    let from = offset.max(*older);
                    let to = (offset + bytes.len()).min(*older + beneath.len());
                    if from < to {
                        beneath[from - *older..to - *older]
                            .copy_from_slice(&bytes[from - offset..to - offset]);
                    }
                    self.unsynced.push(change);
                }
            }
        }
        let change = Change::Write {
            offset,
            bytes: bytes.to_vec(),
        };
        apply(&mut self.seen, &change);
        apply(&mut self.stable, &change);
    }

    /// The process is gone: of its writes in flight some were begun, and none is known to be
    /// stable.
    pub fn settle_in_flight(&mut self, random: &mut Random) {
        // The kernel goes on without the process: a write that it was given is done or was never
        // begun, but not torn, because the machine did not fail.
        let numbers: Vec<u64> = self.in_flight.iter().map(|entry| entry.0).collect();
        for number in numbers {
            if let Some((offset, bytes)) = self.withdraw(number)
                && random.one_in(2)
            {
                self.change(Change::Write { offset, bytes });
            }
        }
    }

    /// A write that failed leaves what a crash would have left of it.
    pub fn fail(&mut self, number: u64, random: &mut Random) {
        if let Some((offset, bytes)) = self.withdraw(number) {
            self.tear(offset, &bytes, random);
            let end = (offset + bytes.len()).min(self.stable.len());
            let left = self.stable.get(offset..end).unwrap_or_default().to_vec();
            apply(
                &mut self.seen,
                &Change::Write {
                    offset,
                    bytes: left,
                },
            );
        }
    }

    /// Each unsynced change meets its fate.
    pub fn lose(&mut self, random: &mut Random) {
        for (_, offset, bytes) in std::mem::take(&mut self.in_flight) {
            self.unsynced.push(Change::Write { offset, bytes });
        }
        // Each change is decided by itself, in the order in which they were made, so that a later
        // one that survives covers an earlier one.
        for change in std::mem::take(&mut self.unsynced) {
            match (random.below(3), &change) {
                (0, _) => {}
                (1, Change::Write { offset, bytes }) => self.tear(*offset, bytes, random),
                _ => apply(&mut self.stable, &change),
            }
        }
    }

    fn tear(&mut self, offset: usize, bytes: &[u8], random: &mut Random) {
        let mut at = 0;
        while at < bytes.len() {
            // Sectors are those of the disk and not of the write, so a write that begins inside one
            // may leave half of it.
            let sector_end = (offset + at + 1).next_multiple_of(SECTOR_BYTES) - offset;
            let end = sector_end.min(bytes.len());
            let written = match random.below(4) {
                0 | 1 => bytes[at..end].to_vec(),
                2 => vec![0xdb; end - at],
                _ => Vec::new(),
            };
            // Bytes that were synced before are not harmed by a write that did not reach them; the
            // stale ones stand for room that was taken and never written.
            let fresh = offset + at >= self.stable.len();
            if !written.is_empty() && (fresh || written == bytes[at..end]) {
                let change = Change::Write {
                    offset: offset + at,
                    bytes: written,
                };
                apply(&mut self.stable, &change);
            }
            at = end;
        }
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(len) => content.resize(*len, 0),
        Change::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset..end].copy_from_slice(bytes);
        }
    }
}

/// A change of a name that is not synced. Files go by number.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Create {
        path: PathBuf,
        file: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        file: usize,
    },
    Remove {
        path: PathBuf,
    },
}

impl NameChange {
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Create { path, .. } | Self::Remove { path } => path,
            Self::Rename { to, .. } => to,
        }
    }

    pub fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Create { path, file } => {
                names.insert(path.clone(), *file);
            }
            Self::Remove { path } => {
                names.remove(path);
            }
            Self::Rename { from, to, file } => {
                names.insert(to.clone(), *file);
                // After a crash that lost an earlier change, the old name may stand for another
                // file, which this rename did not touch.
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_write_that_was_not_synced_never_comes_over_a_stable_one() {
        for seed in 0..50 {
            let mut content = Content::default();
            content.begin(1, 0, vec![1; 1024]);
            // Killed with the write under way: it is seen, and not stable.
            content.settle_in_flight(&mut Random::new(seed));
            content.settle(512, &[2; 512]);
            content.lose(&mut Random::new(seed));
            assert_eq!(content.stable[512..], [2; 512], "seed {seed}");
        }
    }
}
