//! Generates tables of indices from a seed; the forms take turns.

use dyno_ingest::generate::Random;

use crate::batch::{Batch, MadeLine};
use crate::calendar::Day;

/// The values of Kp in thirds, and the ap of each (Bartels).
const AP: [u32; 28] = [
    0, 2, 3, 4, 5, 6, 7, 9, 12, 15, 18, 22, 27, 32, 39, 48, 56, 67, 80, 94, 111, 132, 154, 179,
    207, 236, 300, 400,
];

/// A form's file, how it begins, rows of a line, and how to write one.
type Maker = (
    &'static str,
    &'static [&'static str],
    u32,
    fn(&mut Random, Day) -> String,
);

const MAKERS: [Maker; 5] = [
    (
        "Kp_ap_Ap_SN_F107",
        &["# PURPOSE: a table like that of GFZ", "#YYY MM DD"],
        20,
        gfz,
    ),
    ("SN_d_tot", &[], 2, silso),
    (
        "fluxtable",
        &[
            "fluxdate    fluxtime    fluxjulian    fluxcarrington  fluxobsflux  fluxadjflux  fluxursi",
            "----------  ----------",
        ],
        3,
        drao,
    ),
    (
        "DSD",
        &[
            ":Product: Daily Solar Data            DSD.txt",
            ":Issued: 0825 UT 22 Sep 2026",
            "#",
        ],
        2,
        swpc_solar,
    ),
    (
        "DGD",
        &[":Product: Daily Geomagnetic Data          DGD.txt", "#"],
        9,
        swpc_geomagnetic,
    ),
];

fn maker(batch: &Batch) -> Maker {
    MAKERS[batch.number as usize % MAKERS.len()]
}

pub(super) fn file_name(batch: &Batch) -> String {
    let (stem, ..) = maker(batch);
    format!("{stem}-{}.txt", batch.number)
}

/// A day a line, until there are enough rows.
pub(super) fn lines(batch: &Batch) -> impl Iterator<Item = MadeLine> + use<> {
    let (_, front, rows, make) = maker(batch);
    let (mut random, quirks, start) = (batch.random(1), batch.quirks, batch.start);
    let days = batch.rows.div_ceil(rows.into());
    let table = (0..days).map(move |day| {
        let line = make(&mut random, start.plus(day as i64));
        if !random.chance(quirks) {
            return MadeLine::new(line, rows);
        }
        match random.below(4) {
            0 => MadeLine::new("", 0).odd("blank"),
            1 => MadeLine::new("# a remark", 0).odd("comment"),
            2 => MadeLine::bad(line[..line.len() / 3].trim_end().to_owned(), "cut-short"),
            _ => MadeLine::bad(
                line.replacen(&start.plus(day as i64).date().0.to_string(), "year", 1),
                "no-date",
            ),
        }
    });
    let front = front.iter().map(|line| MadeLine::new(*line, 0));
    front.chain(table)
}

fn gfz(random: &mut Random, day: Day) -> String {
    let (year, month, date) = day.date();
    let thirds: Vec<u32> = (0..8).map(|_| random.below(28)).collect();
    let kp: String = thirds
        .iter()
        .map(|k| format!(" {:6.3}", f64::from(*k) / 3.0))
        .collect();
    let ap: String = thirds
        .iter()
        .map(|&k| format!(" {:4}", AP[k as usize]))
        .collect();
    let missing = random.chance(0.05);
    let flux = if missing {
        -1.0
    } else {
        f64::from(650 + random.below(2000)) / 10.0
    };
    let sunspots = random.below(300);
    format!(
        "{year:04} {month:02} {date:02} 34290 34290.5 2622 10{kp}{ap} {:5} {sunspots:3} {flux:8.1} {flux:8.1} {}",
        thirds[0],
        random.below(3)
    )
}

fn silso(random: &mut Random, day: Day) -> String {
    let (year, month, date) = day.date();
    let fraction = (u32::from(month) - 1) * 83 + u32::from(date);
    let missing = random.chance(0.05);
    let number = if missing {
        -1
    } else {
        i64::from(random.below(400))
    };
    format!(
        "{year};{month:02};{date:02};{year}.{fraction:03};{number:4}; {:4.1};{:4};{}",
        if missing { -1.0 } else { 8.1 },
        random.below(40),
        random.below(2)
    )
}

fn drao(random: &mut Random, day: Day) -> String {
    let (year, month, date) = day.date();
    let tenths = 650 + random.below(2000);
    let flux = |share: u32| {
        let tenths = tenths * share / 100;
        format!("{:06}.{}", tenths / 10, tenths % 10)
    };
    format!(
        "{year:04}{month:02}{date:02}    200000      02453307.354  002022.610      {}     {}     {}",
        flux(100),
        flux(99),
        flux(90)
    )
}

fn swpc_solar(random: &mut Random, day: Day) -> String {
    let (year, month, date) = day.date();
    let flux = if random.chance(0.05) {
        "*".to_owned()
    } else {
        (65 + random.below(200)).to_string()
    };
    format!(
        "{year:04} {month:02} {date:02} {flux:>4} {:6} {:8}      1    -999      *   3  2  0  4  2  0  0",
        random.below(200),
        random.below(2000)
    )
}

fn swpc_geomagnetic(random: &mut Random, day: Day) -> String {
    let (year, month, date) = day.date();
    let stations = if random.chance(0.1) {
        "    -1-1-1-1-1-1-1-1-1"
    } else {
        "     7  1 1 0 2 3 3 2 1"
    };
    let kp: String = (0..8)
        .map(|_| format!(" {:6.2}", f64::from(random.below(28)) / 3.0))
        .collect();
    format!(
        "{year:04} {month:02} {date:02} {stations}{stations} {:5}{kp}",
        random.below(60)
    )
}
