//! Spots of the Reverse Beacon Network: a ZIP archive a day with one CSV file.
//!
//! Three eras, which each line shows: no header and 11 fields from 2009-02-21, a header from
//! 2010-06-15, and 13 fields (speed and mode of the sender) from 2011. Files may end with the
//! number of their rows, `(n rows)`.

use std::path::Path;

use dyno_ingest::contract::band_of;
use dyno_ingest::generate::Random;

use crate::batch::{Batch, MadeLine, Packing};
use crate::calendar::Day;
use crate::feed::{Feed, Layout, Line, Reader, Refusal, RowFormat, stem};
use crate::field::{Field, Kind};
use crate::generate::callsign;
use crate::rows::Rows;
use crate::value::{clock, day, day_of, integer, quoted_fields, shown, thousandths};

const FIELDS: &[Field] = &[
    Field::new("timestamp", Kind::Moment, "when the spot was made, UTC"),
    Field::new("de_call", Kind::Word, "the receiving station, a skimmer"),
    Field::new(
        "de_pfx",
        Kind::Word,
        "its country's prefix, empty where unknown",
    ),
    Field::new("de_cont", Kind::Word, "its continent, empty where unknown"),
    Field::new("frequency", Kind::unsigned(64), "Hz"),
    Field::new(
        "band",
        Kind::signed(32),
        "code of the band that holds the frequency, as in spots; 0 for none",
    ),
    Field::new("band_name", Kind::Word, "the band as the feed names it"),
    Field::new("dx_call", Kind::Word, "the station that was heard"),
    Field::new(
        "dx_pfx",
        Kind::Word,
        "its country's prefix, empty where unknown",
    ),
    Field::new("dx_cont", Kind::Word, "its continent, empty where unknown"),
    Field::nullable("spot_type", Kind::Word, "CQ, BEACON, DX, NCDXF B"),
    Field::nullable("snr", Kind::signed(16), "dB; more than 8 bits hold"),
    Field::nullable(
        "speed",
        Kind::unsigned(16),
        "words a minute, or baud; not before 2011",
    ),
    Field::nullable("tx_mode", Kind::Word, "CW, RTTY, PSK31; not before 2011"),
    Field::new(
        "column_count",
        Kind::unsigned(8),
        "fields of the source row: 11 or 13",
    ),
];

/// The names in headers; the last two are those of the third era.
const HEADER: [&str; 13] = [
    "callsign", "de_pfx", "de_cont", "freq", "band", "dx", "dx_pfx", "dx_cont", "mode", "db",
    "date", "speed", "tx_mode",
];
/// The number of fields before 2011.
const EARLY: usize = 11;

/// Spots of the Reverse Beacon Network: each day is an archive.
pub const FEED: Feed = Feed {
    name: "rbn",
    about: "Reverse Beacon Network",
    covers: "a day",
    lines_stand_alone: true,
    archive,
    claims,
    rows: Some(RowFormat {
        fields: FIELDS,
        layout: Layout {
            order: &["timestamp", "band", "dx_call"],
            seconds: &["timestamp"],
        },
        reader: || Box::new(Spots::default()),
        file_name: |batch| {
            let (year, month, day) = batch.start.plus(batch.number.into()).date();
            format!("{year:04}{month:02}{day:02}.zip")
        },
        packing: Packing::Zip { extension: "csv" },
        lines: |batch| Box::new(made(batch)),
    }),
};

fn archive(path: &Path) -> String {
    let stem = stem(path);
    let parts = |at| stem.get(at);
    let date = (stem.len() == 8)
        .then(|| Some(day_of(parts(0..4)?, parts(4..6)?, parts(6..8)?)?.to_string()));
    date.flatten().unwrap_or(stem)
}

fn claims(text: &str) -> bool {
    let is_header = |line: &str| line.starts_with("callsign,de_pfx,de_cont,freq,");
    let is_spot = |line: &str| {
        let fields: Vec<&str> = line.trim_end().split(',').collect();
        matches!(fields.len(), 11 | 13) && moment(fields[10]).is_ok()
    };
    text.lines().any(|line| is_header(line) || is_spot(line))
}

/// Reads the lines of one day.
#[derive(Default)]
struct Spots {
    /// Fields of the header, once it came.
    header: Option<usize>,
    lines: u64,
    /// The number of rows that the trailer states.
    rows: Option<u64>,
}

impl Reader for Spots {
    fn line(&mut self, line: &[u8], rows: &mut Rows) -> Result<Line, Refusal> {
        if line.is_empty() {
            return Ok(Line::Nothing);
        }
        let text = std::str::from_utf8(line);
        if let Ok(text) = text {
            if let Some(count) = trailer(text) {
                self.rows = Some(count);
                return Ok(Line::Nothing);
            }
            if text.starts_with("callsign,") {
                return self.header(text);
            }
        }
        self.lines += 1;
        // The line was counted before it is refused, because the trailer counts all of them.
        let text = text.map_err(|_| "it is not UTF-8".to_owned())?;
        // Quotes are rare, and fields without them need no copy.
        if memchr::memchr(b'"', line).is_some() {
            let fields = quoted_fields(text)?;
            self.spot(fields.iter().map(|field| field.as_str()), rows)?;
        } else {
            let commas = memchr::memchr_iter(b',', line);
            let mut start = 0;
            let fields = commas.chain([text.len()]).map(|end| {
                let field = &text[start..end];
                start = end + 1;
                field
            });
            self.spot(fields, rows)?;
        }
        Ok(Line::Rows)
    }

    fn passed_over(&mut self) {
        self.lines += 1;
    }

    fn end(&mut self) -> Option<String> {
        let rows = self.rows.filter(|&rows| rows != self.lines)?;
        Some(format!(
            "it says that it has {rows} rows and has {} lines of them",
            self.lines
        ))
    }
}

impl Spots {
    fn spot<'a>(
        &self,
        given: impl Iterator<Item = &'a str>,
        rows: &mut Rows,
    ) -> Result<(), String> {
        let mut fields = [""; HEADER.len()];
        let mut count = 0;
        for field in given {
            // Fields beyond the last are counted and not kept; the count then refuses the line.
            if let Some(place) = fields.get_mut(count) {
                *place = field.trim();
            }
            count += 1;
        }
        match self.header {
            Some(expected) if count != expected => {
                Err(format!("it has {count} fields, the header has {expected}"))
            }
            None if !matches!(count, EARLY | 13) => {
                Err(format!("it has {count} fields, not 11 or 13"))
            }
            _ => push(&fields, count, rows),
        }
    }

    /// Checks a header. With other names, values would be put into the wrong columns unnoticed.
    fn header(&mut self, line: &str) -> Result<Line, Refusal> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        if !matches!(names.len(), EARLY | 13) || names[..] != HEADER[..names.len()] {
            let known = HEADER.join(",");
            return Err(Refusal::Archive(format!(
                "its header is {}, not {known} or the first 11 of them",
                shown(line)
            )));
        }
        self.header = Some(names.len());
        Ok(Line::Nothing)
    }
}

/// The number in `(n rows)`.
fn trailer(line: &str) -> Option<u64> {
    let inner = line.trim_start().strip_prefix('(')?;
    let inner = inner.trim_end().strip_suffix(')')?;
    let number = inner
        .strip_suffix(" rows")
        .or_else(|| inner.strip_suffix(" row"))?;
    number.parse().ok()
}

fn push(fields: &[&str; 13], count: usize, rows: &mut Rows) -> Result<(), String> {
    let [
        de,
        de_pfx,
        de_cont,
        freq,
        band,
        dx,
        dx_pfx,
        dx_cont,
        kind,
        db,
        date,
        speed,
        tx_mode,
    ] = *fields;
    for (name, call) in [("callsign", de), ("dx", dx)] {
        if call.is_empty() {
            return Err(format!("{name} is empty"));
        }
    }
    let frequency = thousandths(freq, "freq")?;
    if frequency < 0 {
        return Err(format!("freq {} is negative", shown(freq)));
    }
    let snr = given(db).map(|db| integer::<i16>(db, "db")).transpose()?;
    let speed = given(speed).map(|speed| integer::<u16>(speed, "speed"));
    rows.push(&[
        moment(date)?.into(),
        de.into(),
        de_pfx.into(),
        de_cont.into(),
        frequency.into(),
        band_of(frequency.unsigned_abs()).into(),
        band.into(),
        dx.into(),
        dx_pfx.into(),
        dx_cont.into(),
        given(kind).into(),
        snr.into(),
        speed.transpose()?.into(),
        given(tx_mode).into(),
        (count as u8).into(),
    ]);
    Ok(())
}

fn given(field: &str) -> Option<&str> {
    (!field.is_empty()).then_some(field)
}

/// Milliseconds of `YYYY-MM-DD HH:MM:SS`, with the offset of UTC behind it or without.
fn moment(text: &str) -> Result<i64, String> {
    let refused = || format!("date {} is not YYYY-MM-DD HH:MM:SS of UTC", shown(text));
    let (date, time) = text.split_once(' ').ok_or_else(refused)?;
    let (time, offset) = time.split_at_checked(8).ok_or_else(refused)?;
    if !matches!(offset, "" | "+00" | "+00:00") {
        return Err(refused());
    }
    let day = day(date, b'-').ok_or_else(refused)?;
    Ok(day.start_ms() + clock(time).ok_or_else(refused)?)
}

/// A day's lines, each era as it was.
fn made(batch: &Batch) -> impl Iterator<Item = MadeLine> + use<> {
    let day = batch.start.plus(batch.number.into());
    let columns = if day < Day::new(2011, 1, 1) {
        EARLY
    } else {
        HEADER.len()
    };
    let has_header = day >= Day::new(2010, 6, 15);
    let header = has_header.then(|| MadeLine::new(HEADER[..columns].join(","), 0));
    let mut random = batch.random(1);
    let skimmers: Vec<String> = (0..40).map(|_| callsign(&mut random) + "-#").collect();
    let senders: Vec<String> = (0..3000).map(|_| callsign(&mut random)).collect();
    let (rows, quirks) = (batch.rows, batch.quirks);
    let (mut row, mut spots) = (0, 0);
    let lines = std::iter::from_fn(move || {
        row += 1;
        if row > rows {
            return (row == rows + 1).then(|| MadeLine::new(format!("({spots} rows)"), 0));
        }
        let de = &skimmers[random.below(40) as usize];
        let dx = &senders[random.below(3000) as usize];
        let second = (row - 1) * 86_400 / rows;
        let fields = spot_fields(&mut random, de, dx, day, second, columns);
        let line = if random.chance(quirks) {
            quirk(&mut random, fields)
        } else {
            MadeLine::new(fields.join(","), 1)
        };
        spots += u64::from(!line.bytes.is_empty());
        Some(line)
    });
    header.into_iter().chain(lines)
}

fn spot_fields(
    random: &mut Random,
    de: &str,
    dx: &str,
    day: Day,
    second: u64,
    columns: usize,
) -> Vec<String> {
    const BANDS: [(&str, u32, u32); 6] = [
        ("160m", 18000, 400),
        ("80m", 35000, 700),
        ("40m", 70000, 600),
        ("20m", 140_000, 900),
        ("15m", 210_000, 900),
        ("10m", 280_000, 900),
    ];
    let (band, low, width) = BANDS[random.below(6) as usize];
    let tenths = low + random.below(width);
    let clock = format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    let mut fields = vec![
        de.to_owned(),
        "K".to_owned(),
        "NA".to_owned(),
        format!("{}.{}", tenths / 10, tenths % 10),
        band.to_owned(),
        dx.to_owned(),
        "DL".to_owned(),
        "EU".to_owned(),
        ["CQ", "CQ", "CQ", "BEACON", "DX", "NCDXF B"][random.below(6) as usize].to_owned(),
        (2 + random.below(50)).to_string(),
        format!("{day} {clock}"),
    ];
    if columns > EARLY {
        fields.push((15 + random.below(25)).to_string());
        fields.push(["CW", "CW", "RTTY", "PSK31"][random.below(4) as usize].to_owned());
    }
    fields
}

/// The same row with something odd about it.
fn quirk(random: &mut Random, mut fields: Vec<String>) -> MadeLine {
    let taken = |fields: &[String], quirk| MadeLine::new(fields.join(","), 1).odd(quirk);
    match random.below(9) {
        0 => {
            fields[9] = (128 + random.below(106)).to_string();
            taken(&fields, "wide-snr")
        }
        1 => {
            fields[10].push_str("+00");
            taken(&fields, "offset")
        }
        2 => {
            fields[9].clear();
            taken(&fields, "no-snr")
        }
        3 => {
            (fields[1], fields[2]) = (String::new(), String::new());
            taken(&fields, "no-country")
        }
        4 => taken(
            &fields
                .iter()
                .map(|f| format!("\"{f}\""))
                .collect::<Vec<_>>(),
            "quoted",
        ),
        5 => MadeLine::new("", 0).odd("blank"),
        6 => MadeLine::bad(fields[..7].join(","), "cut-short"),
        7 => {
            fields[3] = "fourteen".to_owned();
            MadeLine::bad(fields.join(","), "no-number")
        }
        _ => {
            fields[5] = "D\u{fffd}L1".to_owned();
            let mut bytes = fields.join(",").into_bytes();
            bytes.push(0xff);
            MadeLine::bad(bytes, "not-utf8")
        }
    }
}
