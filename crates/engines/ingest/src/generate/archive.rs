//! Writes one archive file under a temporary name, and renames it when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Whether archives are stored compressed or plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `.csv.gz`, like the published archives.
    Gzip,
    /// `.csv`, with the same lines uncompressed.
    Plain,
}

impl Form {
    /// The ending of a file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Form::Gzip => "csv.gz",
            Form::Plain => "csv",
        }
    }
}

/// gzip's own default, which the published archives have.
const LEVEL: u32 = 6;
/// Bytes gathered before a write call.
const BUFFER_BYTES: usize = 256 * 1024;

enum Sink {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

fn gzip(file: File) -> GzEncoder<BufWriter<File>> {
    let file = BufWriter::with_capacity(BUFFER_BYTES, file);
    GzEncoder::new(file, Compression::new(LEVEL))
}

/// A file that appears under its name only when it is complete. If it is dropped before, nothing is
/// left.
pub(super) struct ArchiveFile {
    sink: Sink,
    partial: Partial,
}

/// The name of an unfinished file, which is removed unless it was renamed.
struct Partial {
    path: PathBuf,
    done: bool,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done {
            // If the file cannot be removed nothing more can be done; its name says that it is
            // unfinished.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl ArchiveFile {
    pub(super) fn create(path: &Path, form: Form) -> io::Result<ArchiveFile> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".partial");
        let partial = Partial {
            path: path.with_file_name(name),
            done: false,
        };
        let file = File::create(&partial.path)?;
        let sink = match form {
            Form::Plain => Sink::Plain(BufWriter::with_capacity(BUFFER_BYTES, file)),
            Form::Gzip => Sink::Gzip(Box::new(gzip(file))),
        };
        Ok(ArchiveFile { sink, partial })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(file) => file.write_all(bytes),
            Sink::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Ends the gzip member and starts another; a plain file has no members and goes on.
    pub(super) fn next_member(&mut self) -> io::Result<()> {
        if let Sink::Gzip(encoder) = &mut self.sink {
            // The clone shares the file's offset, so the next member begins where this one ends.
            // Everything buffered must be in the file before that.
            encoder.try_finish()?;
            encoder.get_mut().flush()?;
            let same_file = encoder.get_ref().get_ref().try_clone()?;
            **encoder = gzip(same_file);
        }
        Ok(())
    }

    /// Makes the file durable under its name. Returns its size and the offset of `trailer`, which
    /// is written after the last member.
    pub(super) fn finish(mut self, path: &Path, trailer: &[u8]) -> io::Result<FileSize> {
        let mut buffered = match self.sink {
            Sink::Plain(file) => file,
            Sink::Gzip(encoder) => encoder.finish()?,
        };
        buffered.write_all(trailer)?;
        buffered.flush()?;
        let file = buffered.get_ref();
        // A file under its final name is complete, also after a power cut: the contents are synced
        // before the rename and the folder after it.
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        fs::rename(&self.partial.path, path)?;
        self.partial.done = true;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(FileSize {
            bytes,
            trailer_at: bytes - trailer.len() as u64,
        })
    }
}

/// The sizes of a finished file.
pub(super) struct FileSize {
    pub(super) bytes: u64,
    pub(super) trailer_at: u64,
}
