//! What a crash leaves; the model is in the crate's documentation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::random::Random;

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

    /// Each unsynced change meets its fate.
    pub fn lose(&mut self, random: &mut Random) {
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
pub(crate) enum Naming {
    Give {
        path: PathBuf,
        file: usize,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
        file: usize,
    },
    Take {
        path: PathBuf,
    },
}

impl Naming {
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Give { path, .. } | Self::Take { path } => path,
            Self::Move { to, .. } => to,
        }
    }

    pub fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Give { path, file } => {
                names.insert(path.clone(), *file);
            }
            Self::Take { path } => {
                names.remove(path);
            }
            Self::Move { from, to, file } => {
                names.insert(to.clone(), *file);
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
            }
        }
    }
}
