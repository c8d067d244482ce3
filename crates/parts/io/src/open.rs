//! Chooses the sink that a target supports.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::aligned::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::block_file::BlockFile;
use crate::device::{Device, Existing};
use crate::direct::DirectSink;
use crate::error::IoError;
use crate::host::HostFiles;
use crate::kind::SinkKind;
use crate::null::NullSink;
use crate::opening::{Access, Caching};
use crate::page_cache::FileSink;
use crate::ring::{Ring, UringSink};
use crate::staged::Staged;
use crate::stdout::StdoutSink;
use crate::{Output, Sink};

/// How a sink buffers. It takes `block_bytes` of memory once, and `depth` times more for uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes that are written in one call.
    pub block_bytes: usize,
    /// Writes in flight at once, for uring alone.
    pub depth: usize,
    /// The length that the file will have, roughly, if it is known.
    pub expected_bytes: Option<u64>,
}

impl Default for Buffering {
    fn default() -> Self {
        Self {
            block_bytes: 1 << 20,
            depth: 4,
            expected_bytes: None,
        }
    }
}

/// What was opened, and why; it displays as part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The kind that was opened; never `Auto`.
    pub kind: SinkKind,
    /// How it writes and, after a fallback, why the better kinds were refused.
    pub reason: String,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.reason)
    }
}

/// Opens a sink that writes `path` in place. `Auto` opens the best kind that works; any other kind
/// is opened or refused.
///
/// # Errors
/// [`IoError::DirectRefused`] and [`IoError::UringRefused`] for the kinds that need them, else the
/// system's reason.
pub fn open(
    kind: SinkKind,
    path: &Path,
    buffering: &Buffering,
) -> Result<(Box<dyn Sink>, Chosen), IoError> {
    let (sink, reason): (Box<dyn Sink>, String) = match kind {
        SinkKind::Auto => return best(path, buffering),
        SinkKind::Std => (
            Box::new(FileSink::create(path, buffering.block_bytes)?),
            "through the page cache".to_owned(),
        ),
        SinkKind::Direct => {
            let file = Box::new(probed(path)?);
            let block_bytes = buffering.block_bytes;
            let sink = DirectSink::over(file, block_bytes, buffering.expected_bytes);
            (Box::new(sink), "with O_DIRECT".to_owned())
        }
        SinkKind::Uring => {
            let ring = Ring::new(probed(path)?, buffering.depth)?;
            let sink = UringSink::over(ring, buffering.block_bytes, buffering.expected_bytes);
            let reason = format!("io_uring with O_DIRECT, depth {}", buffering.depth.max(1));
            (Box::new(sink), reason)
        }
        SinkKind::Null => (
            Box::new(NullSink::default()),
            "written bytes are dropped".to_owned(),
        ),
        SinkKind::Stdout => (
            Box::new(StdoutSink::new(buffering.block_bytes)?),
            "standard output".to_owned(),
        ),
    };
    Ok((sink, Chosen { kind, reason }))
}

fn best(path: &Path, buffering: &Buffering) -> Result<(Box<dyn Sink>, Chosen), IoError> {
    if HostFiles::in_memory(path) {
        // Some kernels accept O_DIRECT on tmpfs, and copy all the same.
        let (sink, chosen) = open(SinkKind::Std, path, buffering)?;
        let reason = format!("{}, as the file system lies in memory", chosen.reason);
        return Ok((sink, Chosen { reason, ..chosen }));
    }
    let refusal = match open(SinkKind::Uring, path, buffering) {
        Err(e @ (IoError::UringRefused { .. } | IoError::DirectRefused { .. })) => e,
        opened => return opened,
    };
    // Without io_uring, O_DIRECT may still work; without O_DIRECT, io_uring is of no use here.
    let next = match refusal {
        IoError::UringRefused { .. } => SinkKind::Direct,
        _ => SinkKind::Std,
    };
    let (sink, chosen) = match open(next, path, buffering) {
        Err(IoError::DirectRefused { .. }) => open(SinkKind::Std, path, buffering)?,
        opened => opened?,
    };
    let reason = format!("{}, as {refusal}", chosen.reason);
    Ok((sink, Chosen { reason, ..chosen }))
}

/// Opens an output that appears at `path` only when it is published. For kinds that are not files
/// (null, stdout) publishing does nothing special.
///
/// # Errors
/// Those of [`open`] and of [`Staged::create`].
pub fn stage(
    kind: SinkKind,
    path: &Path,
    existing: Existing,
    buffering: &Buffering,
) -> Result<(Box<dyn Output>, Chosen), IoError> {
    let mut chosen = Chosen {
        kind,
        reason: String::new(),
    };
    let output: Box<dyn Output> = match kind {
        SinkKind::Null => {
            chosen.reason = "written bytes are dropped".to_owned();
            Box::new(NullSink::default())
        }
        SinkKind::Stdout => {
            chosen.reason = "standard output".to_owned();
            Box::new(StdoutSink::new(buffering.block_bytes)?)
        }
        SinkKind::Auto | SinkKind::Std | SinkKind::Direct | SinkKind::Uring => {
            let staged = Staged::create(Arc::new(HostFiles), path, existing, |aside| {
                let (sink, how) = open(kind, aside, buffering)?;
                chosen = how;
                Ok(sink)
            })?;
            Box::new(staged)
        }
    };
    Ok((output, chosen))
}

/// Opens a file past the page cache. Some file systems refuse that only at the first write, so one
/// write is made and truncated away.
fn probed(path: &Path) -> Result<BlockFile, IoError> {
    let file = BlockFile::open(path, Access::Create, Caching::Direct)?;
    let block = AlignedBuffer::zeroed(ALIGNMENT_BYTES);
    match file.write_some_at(0, &block) {
        Err(IoError::System { source, .. }) if refuses(&source) => Err(IoError::DirectRefused {
            path: path.to_path_buf(),
        }),
        Err(error) => Err(error),
        Ok(_) => file.set_len(0).map(|()| file),
    }
}

fn refuses(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS)
    )
}
