//! Small files that are replaced atomically, and listings of directories.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::PgError;
use crate::os::Owner;

/// Writes `text` to `path` so that a reader sees the old or the new text, even after a crash. The
/// file belongs to `owner` (without one, to the caller), and only that user can read it.
pub(crate) fn replace_file(path: &Path, text: &str, owner: Option<&Owner>) -> Result<(), PgError> {
    let staged = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    // The server's user owns some of these directories. Root must not follow a link that it put
    // there.
    options.custom_flags(libc::O_NOFOLLOW);
    let mut file = options
        .open(&staged)
        .map_err(PgError::io("write", &staged))?;
    // The bytes are synced before the rename. A file system may store the rename first, and a crash
    // would leave an empty file under the final name.
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(PgError::io("write", &staged))?;
    if let Some(owner) = owner {
        owner.give_file(&file, &staged)?;
    }
    fs::rename(&staged, path).map_err(PgError::io("replace", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), PgError> {
    File::open(dir)
        .and_then(|file| file.sync_all())
        .map_err(PgError::io("sync", dir))
}

/// Creates a directory and its missing parents with `mode`, regardless of the caller's umask,
/// because the server's user may be another than the caller. An existing directory keeps its mode.
pub(crate) fn make_dir(dir: &Path, mode: u32) -> Result<(), PgError> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_dir(parent, mode)?;
    }
    fs::create_dir(dir).map_err(PgError::io("create", dir))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(dir, mode).map_err(PgError::io("change the mode of", dir))
}

/// The name of an entry of `dir` that is not in `known`, if there is one.
pub(crate) fn first_other_entry(dir: &Path, known: &[&str]) -> Result<Option<String>, PgError> {
    let entries = fs::read_dir(dir).map_err(PgError::io("read", dir))?;
    for entry in entries {
        let entry = entry.map_err(PgError::io("read", dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !known.contains(&name.as_str()) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// At most `lines` lines from the end of a log, of what follows byte `from`, and of its last 8 KiB.
pub(crate) fn last_lines(path: &Path, from: u64, lines: usize) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(8 << 10).max(from)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(cannot read it: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_with_its_parents() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        make_dir(&inner, 0o755).unwrap();
        for path in [dir.path().join("a"), inner.clone()] {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755);
        }
        make_dir(&inner, 0o700).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        let error = make_dir(&inner.join("file/c"), 0o755).unwrap_err();
        assert!(error.to_string().starts_with("cannot create"), "{error}");
    }

    #[test]
    fn the_end_of_a_log_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        replace_file(&path, "a\nb\nc\n", None).unwrap();
        assert_eq!(last_lines(&path, 0, 2), "b\nc");
        assert_eq!(last_lines(&path, 4, 2), "c");
        assert!(last_lines(&dir.path().join("none"), 0, 2).contains("cannot read"));
    }
}
