//! Reads and writes whole files of metadata.

use std::path::{Path, PathBuf};

use dyno_io::{Access, Caching, Existing, Opening, Storage, Syncing, write_whole};

use crate::Result;

/// The bytes of a file; `None` if no file has this name.
pub(crate) fn read(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    if !storage.exists(path)? {
        return Ok(None);
    }
    let file = storage.open(path, opening(Access::Read))?;
    let mut bytes = vec![0; usize::try_from(file.len_bytes()?).unwrap_or(0)];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Writes a file under its name. When this returns, its bytes are on stable storage; the name is
/// when the directory is synced.
pub(crate) fn write(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = storage.open(path, opening(Access::Create))?;
    write_whole(&*file, 0, bytes)?;
    file.sync()?;
    Ok(())
}

/// Writes a file that has its name only when all of it is on stable storage.
pub(crate) fn write_aside(
    storage: &dyn Storage,
    path: &Path,
    bytes: &[u8],
    existing: Existing,
) -> Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".next");
    let aside = PathBuf::from(aside);
    write(storage, &aside, bytes)?;
    storage.rename(&aside, path, existing)?;
    Ok(())
}

fn opening(access: Access) -> Opening {
    Opening {
        access,
        caching: Caching::Cached,
        syncing: Syncing::AtSync,
    }
}
