//! The order-independent checksum of docs/formats/checksums.md, once by the server's SQL and once
//! from the text.

use dyno_ingest::contract::{COLUMNS, TEXT_COLUMNS, bands};
use md5::{Digest, Md5};

/// SQL that answers with the rows of a table and the sum of each column.
pub fn query(table: &str) -> String {
    let sums: Vec<String> = COLUMNS
        .iter()
        .map(|name| {
            let value = if TEXT_COLUMNS.contains(name) {
                let text = format!("toStringCutToZero(CAST({name} AS String))");
                format!("reinterpretAsUInt32(reverse(unhex(substring(hex(MD5({text})), 1, 8))))")
            } else {
                (*name).to_owned()
            };
            format!("sum(toUInt64({value}) * (1 + id % 65521))")
        })
        .collect();
    format!("SELECT count(), {} FROM {table}", sums.join(", "))
}

/// The same of archives without oddities, by splitting at commas.
pub fn expected(text: &str) -> String {
    let mut sums = [0u64; COLUMNS.len()];
    let mut rows = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let id: u64 = fields[0].parse().unwrap();
        let hertz = hertz(fields[5]);
        let band = bands()
            .iter()
            .find(|band| band.0 <= hertz && hertz <= band.1)
            .map_or(0, |band| band.2);
        let number = |at: usize| fields[at].parse::<i64>().unwrap() as u64;
        let values = [
            id,
            number(1),
            string(fields[2]),
            string(fields[3]),
            number(4),
            hertz,
            string(fields[6]),
            string(fields[7]),
            number(8),
            number(9),
            number(10),
            number(11),
            band as u64,
            string("WSPR"),
            string(fields[13]),
            number(14),
            15,
        ];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.wrapping_add(value.wrapping_mul(1 + id % 65_521));
        }
        rows += 1;
    }
    let sums = sums.map(|sum| sum.to_string());
    format!("{rows}\t{}", sums.join("\t"))
}

fn hertz(megahertz: &str) -> u64 {
    let (whole, decimals) = megahertz.split_once('.').unwrap_or((megahertz, ""));
    let decimals = format!("{decimals:0<7}");
    let tenths: u64 = format!("{whole}{}", &decimals[..7]).parse().unwrap();
    (tenths + 5) / 10
}

fn string(text: &str) -> u64 {
    let digest = Md5::digest(text.as_bytes());
    u64::from(u32::from_be_bytes(digest[..4].try_into().unwrap()))
}
