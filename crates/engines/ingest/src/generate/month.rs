//! Writes one month to its file, with or without quirks.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Order;
use super::archive::{ArchiveFile, Form};
use super::calendar::Month;
use super::line;
use super::planted::{ExpectedRow, Outcome, Planted};
use super::quirk::{LONG_LINE, QUIRKS, plant};
use super::random::Random;
use super::station::World;
use super::traffic::{Spot, Traffic};
use crate::{Error, Result};

/// The most over-long lines in a month, because each has 70 kB and a few are enough.
const LONG_LINES: u32 = 3;
/// Written after the last gzip member of a month with quirks.
const GARBAGE: &[u8] = b"this is not a gzip member\n";
/// Bytes of lines gathered before they are compressed.
const CHUNK_BYTES: usize = 64 * 1024;

/// The parameters of one month.
pub(super) struct MonthPlan<'a> {
    pub(super) world: &'a World,
    pub(super) seed: u64,
    pub(super) month: Month,
    pub(super) first_id: u64,
    pub(super) rows: u64,
    pub(super) quirks: f64,
    pub(super) form: Form,
    pub(super) order: Order,
}

/// The totals of one month.
pub(super) struct MonthDone {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) list: Vec<Planted>,
}

/// Decides where quirks go, and keeps the list of them.
pub(super) struct Planter {
    random: Random,
    rate: f64,
    next_kind: usize,
    long_lines: u32,
    list: Vec<Planted>,
}

impl Planter {
    fn new(plan: &MonthPlan<'_>) -> Planter {
        let keys = [u64::from(plan.month.year), u64::from(plan.month.month), 1];
        let mut random = Random::keyed(plan.seed, &keys);
        let next_kind = random.below(QUIRKS.len() as u32) as usize;
        Planter {
            random,
            rate: plan.quirks,
            next_kind,
            long_lines: 0,
            list: Vec::new(),
        }
    }

    /// Replaces the line that starts at `start` of `text` if its turn has come. Returns how many
    /// lines are there now.
    fn consider(&mut self, text: &mut Vec<u8>, start: usize, spot: &Spot<'_>, line: u64) -> u64 {
        if self.rate == 0.0 || !self.random.chance(self.rate) {
            return 1;
        }
        // The kinds take turns instead of being drawn, so that a small archive has as many of them
        // as possible.
        let mut quirk = &QUIRKS[self.next_kind];
        self.next_kind = (self.next_kind + 1) % QUIRKS.len();
        if quirk.name == LONG_LINE {
            self.long_lines += 1;
            if self.long_lines > LONG_LINES {
                quirk = &QUIRKS[0];
            }
        }
        let lines = plant(
            quirk,
            &text[start..],
            ExpectedRow::from_spot(spot),
            &mut self.random,
        );
        text.truncate(start);
        let count = lines.len() as u64;
        for (at, (bytes, outcome)) in lines.into_iter().enumerate() {
            text.extend_from_slice(&bytes);
            if let Some(outcome) = outcome {
                self.list.push(Planted {
                    line: line + at as u64,
                    kind: quirk.name.to_owned(),
                    outcome,
                });
            }
        }
        count
    }
}

/// Collects the lines of a month and writes them to the file.
struct MonthWriter<'a> {
    plan: &'a MonthPlan<'a>,
    progress: &'a (dyn Fn(u64) -> ControlFlow<()> + Sync),
    path: &'a Path,
    file: ArchiveFile,
    planter: Planter,
    /// Lines that have not been written to the file.
    text: Vec<u8>,
    /// Bytes and lines so far, before compression.
    bytes: u64,
    lines: u64,
    rows: u64,
    /// Rows that have been reported to `progress`.
    reported: u64,
    /// The row counts at which a gzip member ends.
    boundaries: VecDeque<u64>,
}

impl MonthWriter<'_> {
    fn row(&mut self, spot: &Spot<'_>) -> Result<()> {
        let start = self.text.len();
        line::append(&mut self.text, spot);
        self.lines += self
            .planter
            .consider(&mut self.text, start, spot, self.lines + 1);
        self.rows += 1;
        if self.boundaries.front() == Some(&self.rows) {
            self.boundaries.pop_front();
            // Every other boundary cuts a line, because readers must not expect members to end with
            // lines.
            let cut = self.text.len()
                - if self.boundaries.len().is_multiple_of(2) {
                    0
                } else {
                    20
                };
            self.drain(cut)?;
            self.file
                .next_member()
                .map_err(|source| self.failed(source))?;
        }
        if self.text.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.drain(self.text.len())?;
        let news = self.rows - self.reported;
        self.reported = self.rows;
        match (self.progress)(news) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }

    /// Writes the first `count` bytes of the text to the file.
    fn drain(&mut self, count: usize) -> Result<()> {
        let written = self.file.write_all(&self.text[..count]);
        written.map_err(|source| self.failed(source))?;
        self.bytes += count as u64;
        self.text.drain(..count);
        Ok(())
    }

    fn finish(mut self) -> Result<MonthDone> {
        self.drain(self.text.len())?;
        let gzip = self.plan.form == Form::Gzip;
        let trailer = if self.plan.quirks > 0.0 && gzip {
            GARBAGE
        } else {
            b""
        };
        let in_file = |source| Error::io("write", self.path, source);
        let size = self.file.finish(self.path, trailer).map_err(in_file)?;
        let mut list = self.planter.list;
        if !trailer.is_empty() {
            list.push(Planted {
                line: self.lines,
                kind: "trailing-garbage".to_owned(),
                outcome: Outcome::Garbage {
                    offset: size.trailer_at,
                    bytes: trailer.len() as u64,
                },
            });
        }
        // The month is complete, so the answer is ignored; a stop request is noticed before the
        // next one.
        let _ = (self.progress)(self.rows - self.reported);
        Ok(MonthDone {
            path: self.path.to_owned(),
            bytes: self.bytes,
            file_bytes: size.bytes,
            list,
        })
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::io("write", self.path, source)
    }
}

/// Writes a month. `progress` gets the number of rows as they are written, and may stop the work.
pub(super) fn write(
    plan: &MonthPlan<'_>,
    folder: &Path,
    progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<MonthDone> {
    let name = format!("wsprspots-{:04}-{:02}", plan.month.year, plan.month.month);
    let path = folder.join(format!("{name}.{}", plan.form.suffix()));
    let in_file = |source: io::Error| Error::io("write", &path, source);
    let mut writer = MonthWriter {
        plan,
        progress,
        path: &path,
        file: ArchiveFile::create(&path, plan.form).map_err(in_file)?,
        planter: Planter::new(plan),
        text: Vec::with_capacity(2 * CHUNK_BYTES),
        bytes: 0,
        lines: 0,
        rows: 0,
        reported: 0,
        boundaries: member_boundaries(plan),
    };
    visit(plan, |spot| writer.row(spot))?;
    let done = writer.finish()?;
    write_list(&folder.join(format!("{name}.planted.ndjson")), &done.list)?;
    Ok(done)
}

/// Passes the rows of a month to `row`, in the order that is wanted.
fn visit(plan: &MonthPlan<'_>, mut row: impl FnMut(&Spot<'_>) -> Result<()>) -> Result<()> {
    let traffic = Traffic::new(plan.world, plan.seed, plan.month, plan.first_id);
    if plan.order == Order::Uploads {
        return traffic.visit(plan.rows, |spot| row(spot));
    }
    let mut spots = Vec::new();
    traffic.visit(plan.rows, |spot| {
        spots.push(spot.clone());
        Ok::<_, Error>(())
    })?;
    let keys = [u64::from(plan.month.year), u64::from(plan.month.month), 2];
    Random::keyed(plan.seed, &keys).shuffle(&mut spots);
    spots.iter().try_for_each(row)
}

/// A month with quirks has three members; one without has one, like the published files.
fn member_boundaries(plan: &MonthPlan<'_>) -> VecDeque<u64> {
    if plan.quirks > 0.0 && plan.rows >= 3 {
        VecDeque::from([plan.rows / 3, plan.rows * 2 / 3])
    } else {
        VecDeque::new()
    }
}

/// Writes the list beside the archive. Without quirks an older list there would be wrong, so it is
/// removed.
fn write_list(path: &Path, list: &[Planted]) -> Result<()> {
    let in_file = |source: io::Error| Error::io("write", path, source);
    if list.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(in_file(error)),
            _ => Ok(()),
        };
    }
    let mut file = ArchiveFile::create(path, Form::Plain).map_err(in_file)?;
    for planted in list {
        let mut text = serde_json::to_vec(planted).map_err(|e| in_file(e.into()))?;
        text.push(b'\n');
        file.write_all(&text).map_err(in_file)?;
    }
    file.finish(path, b"").map_err(in_file)?;
    Ok(())
}
