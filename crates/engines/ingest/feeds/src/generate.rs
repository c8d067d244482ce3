//! Generates archives of a feed that look like the published ones, from a seed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use dyno_ingest::generate::Random;
use dyno_ingest::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::RowFormat;
pub use crate::batch::{Batch, MadeLine, Packing};
use crate::calendar::Day;

/// gzip's own default, which published archives have.
const LEVEL: u32 = 6;

/// The parameters of the archives to generate.
#[derive(Debug, Clone)]
pub struct Making {
    /// Rows in all archives together, as near as the feed's lines allow.
    pub rows: u64,
    /// Archives: days, hours, logs or tables, as the feed has them.
    pub archives: u32,
    /// The day of the first one.
    pub start: Day,
    /// The seed that determines everything else.
    pub seed: u64,
    /// Share of lines with a planted oddity, 0 to 1. Above 0 a `.planted.ndjson` beside each
    /// archive lists them ([`Planted`]).
    pub quirks: f64,
}

/// One planted oddity: a line of `NAME.planted.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Line of the archive's text, from 1.
    pub line: u64,
    /// Kebab-case name of the oddity.
    pub kind: String,
    /// Whether the line goes into quarantine.
    pub bad: bool,
    /// The number of rows that a loader makes of it.
    pub rows: u32,
}

/// Totals of what was generated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows that a loader makes of it.
    pub rows: u64,
    /// Lines that a loader puts into quarantine.
    pub bad: u64,
    /// Bytes of all lines before compression.
    pub bytes: u64,
    /// Bytes of all archive files.
    pub file_bytes: u64,
    /// Planted oddities of all archives.
    pub planted: u64,
    /// The archives in their order.
    pub files: Vec<PathBuf>,
}

/// Writes archives of a feed into `folder`, which is made when missing, and counts rows in
/// `progress` until `stop` is set.
///
/// # Errors
/// [`Error::Refused`] for a request that makes no sense, [`Error::Io`], [`Error::Stopped`].
/// Finished archives stay; an unfinished one leaves no file behind.
pub fn write(
    format: &RowFormat,
    making: &Making,
    folder: &Path,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Summary> {
    check(making).map_err(|reason| Error::Refused {
        path: folder.to_owned(),
        reason,
    })?;
    fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
    let mut summary = Summary::default();
    let archives = u64::from(making.archives);
    for number in 0..making.archives {
        let odd_one = u64::from(u64::from(number) < making.rows % archives);
        let batch = Batch {
            number,
            rows: making.rows / archives + odd_one,
            start: making.start,
            seed: making.seed,
            quirks: making.quirks,
        };
        archive(format, &batch, folder, progress, stop, &mut summary)?;
    }
    Ok(summary)
}

fn check(making: &Making) -> std::result::Result<(), String> {
    if making.archives == 0 || making.rows < u64::from(making.archives) {
        return Err(format!(
            "each archive needs a row, and there are more archives ({}) than rows ({})",
            making.archives, making.rows
        ));
    }
    if !(0.0..=1.0).contains(&making.quirks) {
        return Err(format!(
            "a quirk rate of {} is not between 0 and 1",
            making.quirks
        ));
    }
    Ok(())
}

fn archive(
    format: &RowFormat,
    batch: &Batch,
    folder: &Path,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
    summary: &mut Summary,
) -> Result<()> {
    let name = (format.file_name)(batch);
    let path = folder.join(&name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
    }
    let mut aside = path.clone().into_os_string();
    aside.push(".partial");
    let aside = PathBuf::from(aside);
    let failed = |e| Error::io("write", &path, e);
    // The lines go to a partial file, so that a killed run leaves no archive that looks complete.
    let made = lines(format, batch, &aside, &path, progress, stop, summary);
    match made {
        Ok(planted) => {
            if batch.quirks > 0.0 {
                let list = folder.join(format!("{name}.planted.ndjson"));
                fs::write(&list, planted).map_err(|e| Error::io("write", &list, e))?;
            }
            // The list is there before the archive, so a reader that finds the archive finds its
            // list, too.
            fs::rename(&aside, &path).map_err(failed)?;
            summary.file_bytes += fs::metadata(&path).map_err(failed)?.len();
            summary.files.push(path);
            Ok(())
        }
        Err(error) => {
            // The error at hand says more than one from tidying up after it.
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

/// Writes the lines, and returns the list of what was planted.
fn lines(
    format: &RowFormat,
    batch: &Batch,
    aside: &Path,
    path: &Path,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
    summary: &mut Summary,
) -> Result<Vec<u8>> {
    let failed = |e| Error::io("write", path, e);
    let file = File::create(aside).map_err(|e| Error::io("create", aside, e))?;
    let mut out = Packed::new(file, format.packing, path).map_err(failed)?;
    let mut planted = Vec::new();
    for (at, line) in (format.lines)(batch).enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        out.line(&line.bytes).map_err(failed)?;
        summary.bytes += line.bytes.len() as u64 + 1;
        summary.rows += u64::from(line.rows);
        summary.bad += u64::from(line.bad);
        progress(line.rows.into());
        if let Some(quirk) = line.quirk {
            summary.planted += 1;
            let entry = Planted {
                line: at as u64 + 1,
                kind: quirk.to_owned(),
                bad: line.bad,
                rows: line.rows,
            };
            serde_json::to_writer(&mut planted, &entry).map_err(|e| failed(e.into()))?;
            planted.push(b'\n');
        }
    }
    out.finish().map_err(failed)?;
    Ok(planted)
}

enum Packed {
    Zip(Box<ZipWriter<BufWriter<File>>>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
    Plain(BufWriter<File>),
}

impl Packed {
    fn new(file: File, packing: Packing, path: &Path) -> io::Result<Packed> {
        let file = BufWriter::new(file);
        Ok(match packing {
            Packing::Plain => Packed::Plain(file),
            Packing::Gzip => Packed::Gzip(Box::new(GzEncoder::new(file, Compression::new(LEVEL)))),
            Packing::Zip { extension } => {
                let mut zip = ZipWriter::new(file);
                let entry = path.with_extension(extension);
                let entry = entry.file_name().unwrap_or_default().to_string_lossy();
                let options =
                    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
                zip.start_file(entry.as_ref(), options)?;
                Packed::Zip(Box::new(zip))
            }
        })
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let out: &mut dyn Write = match self {
            Packed::Zip(zip) => zip.as_mut(),
            Packed::Gzip(gzip) => gzip.as_mut(),
            Packed::Plain(file) => file,
        };
        out.write_all(line)?;
        out.write_all(b"\n")
    }

    fn finish(self) -> io::Result<()> {
        let file = match self {
            Packed::Zip(zip) => zip.finish()?,
            Packed::Gzip(gzip) => gzip.finish()?,
            Packed::Plain(file) => file,
        };
        file.into_inner()?.sync_all()
    }
}

/// A random callsign of a plausible form.
pub(crate) fn callsign(random: &mut Random) -> String {
    const PREFIXES: [&str; 16] = [
        "K", "W", "N", "AA", "DL", "G", "JA", "VE", "I", "EA", "F", "OH", "UA", "PY", "VK", "3A",
    ];
    let prefix = PREFIXES[random.below(PREFIXES.len() as u32) as usize];
    let digit = random.below(10);
    let letters = 1 + random.below(3);
    let suffix: String = (0..letters)
        .map(|_| char::from(b'A' + random.below(26) as u8))
        .collect();
    format!("{prefix}{digit}{suffix}")
}
