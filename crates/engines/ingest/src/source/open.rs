//! Recognises the kind of an input by its first bytes, not by its name.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dyno_codec::inflate::Engine;

use super::hashing::{HashingReader, Passed};
use super::text::TextSource;
use super::witness::Witness;
use super::zip_entries;
use crate::{Error, Result};

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One or more gzip members.
    Gzip,
    /// Uncompressed text, if no other kind matches.
    Text,
    /// A ZIP archive of text files.
    Zip,
    /// A Parquet file with the columns of the contract.
    Parquet,
}

impl Kind {
    /// An empty input is refused, because a failed download leaves one; and no row begins with the
    /// first byte of gzip's magic.
    fn detect(path: &Path, start: &[u8]) -> Result<Kind> {
        match start {
            [] => Err(Error::Input {
                path: path.to_owned(),
                offset: 0,
                reason: "it is empty".to_owned(),
            }),
            [0x1f] | [0x1f, 0x8b, ..] => Ok(Kind::Gzip),
            [b'P', b'K', 3 | 5, 4 | 6] => Ok(Kind::Zip),
            b"PAR1" => Ok(Kind::Parquet),
            _ => Ok(Kind::Text),
        }
    }
}

/// An opened input, ready to be read.
pub enum Source {
    /// Lines of text, packed or not.
    Text(Box<TextSource>),
    /// A Parquet file, which has its own reader, and the witness that tells whether it changed
    /// meanwhile.
    Parquet(File, Witness),
}

/// Opens the file at `path`. Bytes read are added to `total`.
///
/// # Errors
/// [`Error::Io`], [`Error::Input`] for an empty file, [`Error::Refused`] for what is not a regular
/// file and for a ZIP archive that cannot be taken.
pub fn open_path(path: &Path, engine: Engine, total: Option<Arc<AtomicU64>>) -> Result<Source> {
    refuse_unless_regular(path)?;
    let mut file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let witness = Witness::new(path, &file)?;
    let (start, n) = first_bytes(&mut file).map_err(|e| Error::io("read", path, e))?;
    // The first bytes are read again with the others, because the hash is that of the whole file.
    file.seek(SeekFrom::Start(0))
        .map_err(|e| Error::io("seek in", path, e))?;
    let passed = Passed::default();
    let source = match Kind::detect(path, &start[..n])? {
        Kind::Parquet => return Ok(Source::Parquet(file, witness)),
        Kind::Zip => TextSource::zip(zip_entries::list(path, &file)?, file, engine, total)?,
        Kind::Gzip => {
            let reader = HashingReader::new(file, passed.clone(), total);
            TextSource::gzip(path.to_owned(), Box::new(reader), engine, passed)
        }
        Kind::Text => {
            let reader = HashingReader::new(file, passed.clone(), total);
            TextSource::plain(path.to_owned(), Box::new(reader), passed)
        }
    };
    Ok(Source::Text(Box::new(source.watched_by(witness))))
}

/// Fails for anything but a regular file, because an archive is opened more than once: to recognise
/// it, to read it, and to compare it. A pipe gives its bytes only to the first reader, and opening
/// one waits for a writer that may never come.
fn refuse_unless_regular(path: &Path) -> Result<()> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io("open", path, e))?;
    let kind = metadata.file_type();
    let reason = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "it is a directory; give the files in it".to_owned()
    } else if kind.is_fifo() {
        format!(
            "it is a pipe, which can be read only once; give it as standard input: \
             dyno ingest load - --as NAME < {}",
            path.display()
        )
    } else {
        "it is not a regular file".to_owned()
    };
    Err(Error::Refused {
        path: path.to_owned(),
        reason,
    })
}

/// Opens text or gzip that comes from `reader`, called `name` in messages.
///
/// # Errors
/// [`Error::Io`], [`Error::Input`] for an empty stream, [`Error::Refused`] for a format that needs
/// a file to seek in.
pub fn open_stream(
    name: &str,
    mut reader: Box<dyn Read + Send>,
    engine: Engine,
    total: Option<Arc<AtomicU64>>,
) -> Result<TextSource> {
    let path = PathBuf::from(name);
    let (start, n) = first_bytes(&mut reader).map_err(|e| Error::io("read", &path, e))?;
    let passed = Passed::default();
    // A stream cannot be sought back, so the bytes that told its kind are put in front again.
    let whole = Cursor::new(start).take(n as u64).chain(reader);
    let reader = Box::new(HashingReader::new(whole, passed.clone(), total));
    match Kind::detect(&path, &start[..n])? {
        Kind::Gzip => Ok(TextSource::gzip(path, reader, engine, passed)),
        Kind::Text => Ok(TextSource::plain(path, reader, passed)),
        kind @ (Kind::Zip | Kind::Parquet) => Err(Error::Refused {
            path,
            reason: format!("{kind:?} cannot be read from a stream; give the file's name"),
        }),
    }
}

/// The first four bytes, or fewer if the input is shorter.
fn first_bytes(reader: &mut impl Read) -> io::Result<([u8; 4], usize)> {
    let mut start = [0; 4];
    let mut n = 0;
    while n < start.len() {
        match reader.read(&mut start[n..]) {
            Ok(0) => break,
            Ok(read) => n += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok((start, n))
}
