//! The oddities of real archives, which are planted one at a time.

use super::planted::{ExpectedRow, Outcome};
use super::random::Random;

/// Fields of a line, from 0.
const TIME: usize = 1;
const REPORTER: usize = 2;
const REPORTER_GRID: usize = 3;
const SNR: usize = 4;
const FREQUENCY: usize = 5;
const CALL: usize = 6;
const GRID: usize = 7;
const POWER: usize = 8;
const DRIFT: usize = 9;
const DISTANCE: usize = 10;
const AZIMUTH: usize = 11;
const BAND: usize = 12;
const VERSION: usize = 13;
const CODE: usize = 14;

/// Bytes of a planted over-long line's callsign; lines may have 64 KiB.
const LONG_CALL_BYTES: usize = 70_000;

/// A line that is being changed, and what a reader must make of it.
pub(super) struct Victim {
    /// Fields without escapes, which are joined by commas at the end.
    pub(super) fields: Vec<Vec<u8>>,
    pub(super) row: ExpectedRow,
    pub(super) crlf: bool,
}

/// Changes a line so that it is odd but will still be loaded.
type Bend = fn(&mut Victim, &mut Random);
/// Changes a line so that it becomes a bad row.
type Break = fn(&mut Victim, &mut Random);

enum Effect {
    Bends(Bend),
    Breaks(&'static str, Break),
    /// A blank line goes before this one.
    Blank,
}

/// One kind of oddity.
pub(super) struct Quirk {
    /// A kebab-case name, which must not change.
    pub(super) name: &'static str,
    effect: Effect,
}

const fn bends(name: &'static str, bend: Bend) -> Quirk {
    Quirk {
        name,
        effect: Effect::Bends(bend),
    }
}

const fn breaks(name: &'static str, reason: &'static str, spoil: Break) -> Quirk {
    Quirk {
        name,
        effect: Effect::Breaks(reason, spoil),
    }
}

/// The only kind that takes much space; see [`Planter`](super::month::Planter) for its limit.
pub(super) const LONG_LINE: &str = "long-line";

/// All kinds that sit in a line, in the order in which they are planted.
pub(super) static QUIRKS: &[Quirk] = &[
    bends("escaped-quote", |v, _| {
        v.call(|c| (format!("\\\"{c}\\\""), format!("\"{c}\"")))
    }),
    bends("escaped-comma", |v, _| {
        v.call(|c| (format!("{c}\\,P"), format!("{c},P")))
    }),
    bends("escaped-backslash", |v, _| {
        v.call(|c| (format!("{c}\\\\P"), format!("{c}\\P")))
    }),
    bends("quoted-call", |v, _| {
        v.call(|c| (format!("\"{c}\""), c.to_owned()))
    }),
    bends("quoted-comma", |v, _| {
        v.call(|c| (format!("\"{c},P\""), format!("{c},P")))
    }),
    bends("doubled-quote", |v, _| {
        v.call(|c| (format!("\"{c}\"\"P\""), format!("{c}\"P")))
    }),
    bends("inner-quote", |v, _| {
        v.call(|c| (format!("{c}\"P"), format!("{c}\"P")))
    }),
    bends("angle-call", |v, _| {
        v.call(|c| (format!("<{c}>"), format!("<{c}>")))
    }),
    bends("long-call", |v, _| {
        v.call(|c| twice(format!("VP8/{c}/MARITIME-MOBILE")))
    }),
    bends("non-ascii-call", |v, _| v.call(|c| twice(format!("{c}/Ł")))),
    bends("lower-grid", |v, _| {
        v.row.grid = v.row.grid.to_lowercase();
        v.fields[GRID] = v.row.grid.clone().into();
    }),
    bends("short-grid", |v, _| {
        v.row.grid.truncate(2);
        v.fields[GRID].truncate(2);
    }),
    bends("empty-grids", |v, _| {
        v.row.grid.clear();
        v.row.reporter_grid.clear();
        v.fields[GRID].clear();
        v.fields[REPORTER_GRID].clear();
    }),
    bends("swl-reporter", |v, random| {
        v.row.reporter = format!("SWL {}", random.below(1000));
        v.fields[REPORTER] = v.row.reporter.clone().into();
    }),
    bends("negative-power", |v, random| {
        v.row.power = -1 - random.below(30) as i8;
        v.fields[POWER] = v.row.power.to_string().into();
    }),
    bends("long-version", |v, random| {
        v.row.version = format!("2.{}.0-rc{}", random.below(9), 1 + random.below(5));
        v.fields[VERSION] = v.row.version.clone().into();
    }),
    bends("empty-version", |v, _| {
        v.row.version.clear();
        v.fields[VERSION].clear();
    }),
    bends("empty-code", |v, _| {
        v.row.code = 0;
        v.fields[CODE].clear();
    }),
    bends("quoted-number", |v, _| {
        v.fields[SNR] = format!("\"{}\"", v.row.snr).into()
    }),
    bends("rounded-up", |v, _| v.frequency("500", 1)),
    bends("rounded-down", |v, _| v.frequency("499", 0)),
    bends("no-band", |v, random| {
        v.row.frequency = 8_000_000 + u64::from(random.below(900_000));
        v.row.band = 0;
        v.frequency("", 0);
    }),
    bends("wrong-mhz", |v, _| v.fields[BAND] = b"99".to_vec()),
    bends("crlf", |v, _| v.crlf = true),
    Quirk {
        name: "blank-line",
        effect: Effect::Blank,
    },
    breaks("missing-code", "field-count", |v, _| v.fields.truncate(14)),
    breaks("missing-fields", "field-count", |v, random| {
        v.fields.truncate(1 + random.below(13) as usize);
    }),
    breaks("extra-field", "field-count", |v, _| {
        v.fields.push(b"0".to_vec())
    }),
    breaks("text-number", "number", |v, random| {
        let field = [SNR, POWER, DRIFT, DISTANCE, AZIMUTH, BAND][random.below(6) as usize];
        v.fields[field] = b"abc".to_vec();
    }),
    breaks("decimal-number", "number", |v, random| {
        let field = [SNR, POWER, DRIFT, AZIMUTH][random.below(4) as usize];
        v.fields[field].extend_from_slice(b".0");
    }),
    breaks("plus-number", "number", |v, random| {
        let field = [SNR, POWER, DRIFT, DISTANCE][random.below(4) as usize];
        v.fields[field] = b"+7".to_vec();
    }),
    breaks("empty-number", "number", |v, random| {
        let field = [TIME, SNR, FREQUENCY, POWER, DRIFT, DISTANCE, AZIMUTH, BAND];
        v.fields[field[random.below(8) as usize]].clear();
    }),
    breaks("snr-range", "number", |v, _| {
        v.fields[SNR] = b"-129".to_vec()
    }),
    breaks("power-range", "number", |v, _| {
        v.fields[POWER] = b"200".to_vec()
    }),
    breaks("drift-range", "number", |v, _| {
        v.fields[DRIFT] = b"128".to_vec()
    }),
    breaks("distance-range", "number", |v, _| {
        v.fields[DISTANCE] = b"4294967296".to_vec()
    }),
    breaks("azimuth-range", "number", |v, _| {
        v.fields[AZIMUTH] = b"65536".to_vec()
    }),
    breaks("code-range", "number", |v, _| {
        v.fields[CODE] = b"256".to_vec()
    }),
    breaks("time-range", "number", |v, _| {
        v.fields[TIME] = b"4294967296".to_vec()
    }),
    breaks("id-range", "number", |v, _| {
        v.fields[0] = b"18446744073709551616".to_vec()
    }),
    breaks("negative-frequency", "number", |v, _| {
        v.fields[FREQUENCY].insert(0, b'-')
    }),
    breaks("exponent-frequency", "number", |v, _| {
        v.fields[FREQUENCY] = b"1.4097e1".to_vec()
    }),
    breaks("invalid-utf8", "utf8", |v, _| v.fields[CALL].push(0xFF)),
    breaks("unterminated-quote", "quote", |v, _| {
        v.fields[CALL].insert(0, b'"')
    }),
    breaks("text-after-quote", "quote", |v, _| {
        v.fields[CALL] = b"\"K1\"ABC".to_vec()
    }),
    breaks(LONG_LINE, "long-line", |v, _| {
        v.fields[CALL] = vec![b'A'; LONG_CALL_BYTES]
    }),
];

fn twice(text: String) -> (String, String) {
    (text.clone(), text)
}

impl Victim {
    /// Replaces the sender's call by the result of `bend`: the text in the file, and its value.
    fn call(&mut self, bend: impl Fn(&str) -> (String, String)) {
        let (text, value) = bend(&self.row.callsign);
        self.fields[CALL] = text.into();
        self.row.callsign = value;
    }

    /// Writes the row's frequency with more decimals, which may round it up.
    fn frequency(&mut self, decimals: &str, more_hz: u64) {
        let hz = self.row.frequency;
        let text = format!("{}.{:06}{decimals}", hz / 1_000_000, hz % 1_000_000);
        self.fields[FREQUENCY] = text.into();
        self.row.frequency += more_hz;
    }
}

/// The lines that replace `line` (which ends in a line feed and has no quirk), each with what is
/// expected of it; an ordinary line has no expectation.
pub(super) fn plant(
    quirk: &Quirk,
    line: &[u8],
    row: ExpectedRow,
    random: &mut Random,
) -> Vec<(Vec<u8>, Option<Outcome>)> {
    let fields = line[..line.len() - 1]
        .split(|&b| b == b',')
        .map(<[u8]>::to_vec)
        .collect();
    let mut victim = Victim {
        fields,
        row,
        crlf: false,
    };
    let outcome = match &quirk.effect {
        Effect::Blank => {
            let blank = if random.chance(0.5) { "\n" } else { "\r\n" };
            return vec![(blank.into(), Some(Outcome::Blank)), (line.to_vec(), None)];
        }
        Effect::Bends(bend) => {
            bend(&mut victim, random);
            Outcome::Kept { row: victim.row }
        }
        Effect::Breaks(reason, spoil) => {
            spoil(&mut victim, random);
            Outcome::Bad {
                reason: (*reason).to_owned(),
            }
        }
    };
    let mut bytes = victim.fields.join(&b',');
    bytes.extend_from_slice(if victim.crlf { b"\r\n" } else { b"\n" });
    vec![(bytes, Some(outcome))]
}
