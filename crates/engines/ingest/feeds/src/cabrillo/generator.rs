//! Generates contest logs from a seed.

use dyno_ingest::generate::Random;

use crate::batch::{Batch, MadeLine};
use crate::generate::callsign;

/// Contests, with the exchange that they have.
const CONTESTS: [(&str, Exchange); 4] = [
    ("CQ-WW-CW", Exchange::Zone),
    ("ARRL-SS-CW", Exchange::Sweepstakes),
    ("ARRL-VHF-JUN", Exchange::Locator),
    ("CQ-WPX-SSB", Exchange::Serial),
];

#[derive(Debug, Clone, Copy)]
enum Exchange {
    Zone,
    Sweepstakes,
    Locator,
    Serial,
}

pub(super) fn file_name(batch: &Batch) -> String {
    let (contest, _) = contest(batch);
    let (year, ..) = batch.start.date();
    let call = callsign(&mut batch.random(0)).to_lowercase();
    format!(
        "{year}-{}/{call}-{}.log",
        contest.to_lowercase(),
        batch.number
    )
}

fn contest(batch: &Batch) -> (&'static str, Exchange) {
    CONTESTS[batch.number as usize % CONTESTS.len()]
}

/// The lines of one log: each is a row, so headers count, too.
pub(super) fn lines(batch: &Batch) -> impl Iterator<Item = MadeLine> + use<> {
    let (contest, exchange) = contest(batch);
    let call = callsign(&mut batch.random(0));
    let version = if batch.number.is_multiple_of(2) {
        "3.0"
    } else {
        "2.0"
    };
    let category = if version == "3.0" {
        "CATEGORY-OPERATOR: SINGLE-OP"
    } else {
        "CATEGORY: SINGLE-OP ALL HIGH"
    };
    let front = [
        format!("START-OF-LOG: {version}"),
        format!("CONTEST: {contest}"),
        format!("CALLSIGN: {call}"),
        category.to_owned(),
        "CLAIMED-SCORE: 0".to_owned(),
    ];
    let contacts = batch.rows.saturating_sub(front.len() as u64 + 1);
    let (mut random, quirks, start) = (batch.random(1), batch.quirks, batch.start);
    let middle = (0..contacts).map(move |serial| {
        let minute = serial % 2880;
        let day = start.plus((minute / 1440) as i64);
        let time = format!("{:02}{:02}", minute % 1440 / 60, minute % 60);
        let (sent, received) = exchanges(&mut random, exchange, serial);
        let (frequency, mode) = match exchange {
            Exchange::Locator => (
                ["50", "144", "432"][random.below(3) as usize].to_owned(),
                "PH",
            ),
            Exchange::Serial => ((14_150 + random.below(200)).to_string(), "PH"),
            _ => ((7000 + random.below(100)).to_string(), "CW"),
        };
        let other = callsign(&mut random);
        let words = [
            frequency,
            mode.to_owned(),
            day.to_string(),
            time,
            call.clone(),
            sent,
            other,
            received,
        ];
        if random.chance(quirks) {
            quirk(&mut random, words)
        } else {
            MadeLine::new(format!("QSO: {}", words.join(" ")), 1)
        }
    });
    let front = front.map(|line| MadeLine::new(line, 1));
    let end = std::iter::once(MadeLine::new("END-OF-LOG:", 1));
    front.into_iter().chain(middle).chain(end)
}

fn exchanges(random: &mut Random, exchange: Exchange, serial: u64) -> (String, String) {
    let theirs = random.below(40) + 1;
    match exchange {
        Exchange::Zone => ("599 05".to_owned(), format!("599 {theirs:02}")),
        Exchange::Sweepstakes => (
            format!("{} B 74 STX", serial + 1),
            format!("{theirs} A 69 IL"),
        ),
        Exchange::Locator => ("FN31".to_owned(), format!("FN{theirs:02}")),
        Exchange::Serial => (format!("59 {:04}", serial + 1), format!("59 {theirs:04}")),
    }
}

/// The same contact in an odd form. None is bad, because every line of a log is a row.
fn quirk(random: &mut Random, mut words: [String; 8]) -> MadeLine {
    let odd = |text: String, name| MadeLine::new(text, 1).odd(name);
    match random.below(9) {
        0 => odd(format!("QSO:{}", words.join(" ")), "glued-tag"),
        1 => odd(format!("qso: {}", words.join(" ")), "tag-case"),
        2 => odd(format!("X-QSO: {}", words.join(" ")), "x-qso"),
        3 => {
            words[2].replace_range(0..4, "2063");
            odd(format!("QSO: {}", words.join(" ")), "off-year")
        }
        4 => odd(format!("QSO: {} 1", words.join("   ")), "transmitter"),
        5 => odd(String::new(), "blank"),
        6 => odd(format!("QSO: {}", words[..4].join(" ")), "cut-short"),
        7 => {
            let bytes = b"SOAPBOX: gr\xfc\xdfe".to_vec();
            MadeLine::new(bytes, 1).odd("latin-1")
        }
        _ => {
            words[2] = words[2].replace('-', "");
            odd(format!("QSO: {}", words.join(" ")), "date-form")
        }
    }
}
