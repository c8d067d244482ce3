//! The file `member` of a directory: which part of which database it holds.

use std::path::Path;

use dyno_txn_api::Result;

use crate::error::bad_argument;
use crate::sealed::{Fields, Sealed, damaged};

const FILE: Sealed = Sealed {
    file: "member",
    name: "dyno-txn-member",
    version: 1,
};

/// Returns the directory's identity, which it keeps for ever. A `fresh` directory is given one.
///
/// # Errors
/// If the directory holds another part than this `(part, of)`, or none although it is not fresh.
pub(crate) fn identity(directory: &Path, share: (u32, u32), fresh: bool) -> Result<u64> {
    match FILE.read(directory, parse)? {
        Some((found, identity)) if found == share => Ok(identity),
        Some((found, _)) => Err(bad_argument(format!(
            "{}: it holds part {} of {}, not part {} of {}",
            directory.join(FILE.file).display(),
            found.0,
            found.1,
            share.0,
            share.1
        ))),
        None if !fresh => {
            let text =
                "it has no file `member`: it is of an engine in one process, or the file is lost";
            Err(bad_argument(format!("{}: {text}", directory.display())))
        }
        None => {
            let identity = dyno_txn_log::fresh_identity();
            let part = format!("{} {}", share.0, share.1);
            FILE.write(directory, &[("part", &part), ("identity", &identity)])?;
            Ok(identity)
        }
    }
}

fn parse(fields: &mut Fields<'_>) -> Result<((u32, u32), u64)> {
    let share = fields.text("part")?.split_once(' ');
    let share = share.and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    let share = share.ok_or_else(|| damaged("`part` is not two numbers".to_owned()))?;
    Ok((share, fields.number("identity")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::assert_sealed;

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
        assert_sealed(
            &FILE,
            "dyno-txn-member 1\npart 1 3\nidentity 77\nchecksum b44b739d\n",
            &[("part", &"1 3"), ("identity", &77)],
            ((1, 3), 77),
            parse,
        );
    }
}
