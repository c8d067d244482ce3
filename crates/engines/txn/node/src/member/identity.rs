//! The file `member` of a directory: which share of which database it holds.

use std::path::Path;

use dyno_txn_api::{Code, Error, Result};

use crate::directory::{read_text, write_text};
use crate::error::bad;

const FILE: &str = "member";
const VERSION: u32 = 1;

/// The directory's identity, which stays; its share must be this one.
pub(crate) fn identity(directory: &Path, share: (u32, u32), fresh: bool) -> Result<u64> {
    let path = directory.join(FILE);
    let named = |error: Error| {
        Error::new(
            error.kind(),
            format!("{}: {}", path.display(), error.text()),
        )
    };
    match read_text(&path)? {
        Some(text) => {
            let (found, identity) = parse(&text).map_err(named)?;
            if found != share {
                let text = format!(
                    "it holds part {} of {}, not part {} of {}",
                    found.0, found.1, share.0, share.1
                );
                return Err(named(bad(text)));
            }
            Ok(identity)
        }
        None if !fresh => {
            let text = "the directory is of an engine in one process: it has no share of others";
            Err(bad(format!("{}: {text}", directory.display())))
        }
        None => {
            let identity = dyno_txn_log::fresh_identity();
            write_text(directory, FILE, &text(share, identity))?;
            Ok(identity)
        }
    }
}

fn text((part, of): (u32, u32), identity: u64) -> String {
    let text = format!("dyno-txn-member {VERSION}\npart {part} {of}\nidentity {identity}\n");
    let checksum = dyno_checksum::crc32c(text.as_bytes());
    format!("{text}checksum {checksum:08x}\n")
}

fn parse(from: &str) -> Result<((u32, u32), u64)> {
    let damaged = || Error::new(Code::Damaged, "it is not what was written");
    let mut words = from.split_ascii_whitespace();
    let (name, version) = (
        words.next(),
        words.next().and_then(|word| word.parse::<u32>().ok()),
    );
    match (name, version) {
        (Some("dyno-txn-member"), Some(version)) if version > VERSION => {
            let text = format!("format version {version}; this program knows up to {VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        (Some("dyno-txn-member"), Some(_)) => {}
        _ => return Err(damaged()),
    }
    let mut number = |skip: usize| words.nth(skip).and_then(|word| word.parse::<u64>().ok());
    let (part, of, identity) = (number(1), number(0), number(1));
    let (Some(part), Some(of), Some(identity)) = (part, of, identity) else {
        return Err(damaged());
    };
    let share = (
        u32::try_from(part).map_err(|_| damaged())?,
        u32::try_from(of).map_err(|_| damaged())?,
    );
    match text(share, identity) == from {
        true => Ok((share, identity)),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_share() {
        let at = tempfile::tempdir().expect("a directory");
        assert!(identity(at.path(), (1, 3), false).is_err());
        let first = identity(at.path(), (1, 3), true).expect("new");
        assert_eq!(identity(at.path(), (1, 3), false), Ok(first));
        assert!(identity(at.path(), (2, 3), false).is_err());
    }

    #[test]
    fn the_first_format_is_read_and_damage_found() {
        let fixture = "dyno-txn-member 1\npart 1 3\nidentity 77\nchecksum b44b739d\n";
        assert_eq!(text((1, 3), 77), fixture);
        assert_eq!(parse(fixture), Ok(((1, 3), 77)));
        for at in 0..fixture.len() {
            let mut bytes = fixture.as_bytes().to_vec();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).expect("still ASCII");
            assert!(parse(&text).is_err(), "byte {at}");
        }
        let newer = parse("dyno-txn-member 2\n").expect_err("newer");
        assert_eq!(newer.kind(), Code::NewerVersion);
    }
}
