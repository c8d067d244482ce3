use super::obvious::{clock_ms, day_ms, thousandths};
use super::{Parsed, Row};

const HOUR_MS: i64 = 3_600_000;

pub fn parse(lines: &[&[u8]]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut form: Option<&'static str> = None;
    for (at, line) in lines.iter().enumerate() {
        let number = at as u64 + 1;
        let Ok(line) = std::str::from_utf8(line) else {
            parsed.bad.push(number);
            continue;
        };
        let lower = line.to_ascii_lowercase();
        if line.starts_with(":Product:") {
            let product = lower[":product:".len()..].trim_start();
            if product.starts_with("daily solar data") {
                form = Some("dsd");
            } else if product.starts_with("daily geomagnetic data") {
                form = Some("dgd");
            }
            continue;
        }
        if line.trim_start().starts_with("fluxdate ") {
            form = Some("drao");
            continue;
        }
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with(':') {
            continue;
        }
        if trimmed.chars().all(|c| c == '-' || c == ' ') {
            continue;
        }
        let tried = match form {
            Some(form) => vec![form],
            None => vec!["gfz", "gfz3", "csv", "txt"],
        };
        let read = tried
            .into_iter()
            .find_map(|form| Some((form, rows(form, line)?)));
        match read {
            Some((found, rows)) => {
                form = Some(found);
                parsed.rows.extend(rows);
            }
            None => parsed.bad.push(number),
        }
    }
    parsed
}

fn rows(form: &str, line: &str) -> Option<Vec<Row>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match form {
        "gfz" => gfz(&words),
        "gfz3" => gfz_three(&words),
        "csv" => {
            let mut words: Vec<&str> = line.split(';').map(|word| word.trim()).collect();
            if words.last() == Some(&"") {
                words.pop();
            }
            if words.len() != 8 {
                return None;
            }
            let status = match words[7] {
                "0" => "preliminary",
                "1" => "definitive",
                _ => return None,
            };
            silso(&words[..7], status)
        }
        "txt" => {
            let star = words.last() == Some(&"*");
            let words = if star {
                &words[..words.len() - 1]
            } else {
                &words[..]
            };
            silso(words, if star { "preliminary" } else { "definitive" })
        }
        "drao" => drao(&words),
        "dsd" => {
            if words.len() != 16 {
                return None;
            }
            let day = date(&words)?;
            Some(vec![
                row(day, 24, "f107_observed", star(words[3]), None, "swpc-dsd")?,
                row(day, 24, "sunspots_sesc", star(words[4]), None, "swpc-dsd")?,
            ])
        }
        "dgd" => {
            if words.len() < 14 || words.len() > 30 {
                return None;
            }
            let day = date(&words)?;
            let last = &words[words.len() - 9..];
            let status = Some("estimated");
            let mut rows = vec![row(day, 24, "ap_daily", star(last[0]), status, "swpc-dgd")?];
            for part in 0..8 {
                let begin = day + part as i64 * 3 * HOUR_MS;
                rows.push(row(
                    begin,
                    3,
                    "kp",
                    star(last[part + 1]),
                    status,
                    "swpc-dgd",
                )?);
            }
            Some(rows)
        }
        _ => None,
    }
}

fn star(word: &str) -> &str {
    if word == "*" { "-1" } else { word }
}

fn date(words: &[&str]) -> Option<i64> {
    if words.len() < 3 || words[0].len() != 4 {
        return None;
    }
    day_ms(words[0], words[1], words[2])
}

fn row(
    begin: i64,
    hours: u8,
    index: &str,
    word: &str,
    status: Option<&str>,
    source: &str,
) -> Option<Row> {
    let value = thousandths(word)?;
    Some(vec![
        Some(begin.to_string()),
        Some(hours.to_string()),
        Some(index.to_owned()),
        if value < 0 {
            None
        } else {
            Some(value.to_string())
        },
        status.map(|status| status.to_owned()),
        Some(source.to_owned()),
    ])
}

fn gfz(words: &[&str]) -> Option<Vec<Row>> {
    if words.len() != 28 {
        return None;
    }
    let day = date(words)?;
    let (magnetic, spots) = match words[27] {
        "0" => ("preliminary", "preliminary"),
        "1" => ("definitive", "preliminary"),
        "2" => ("definitive", "definitive"),
        _ => return None,
    };
    let mut rows = Vec::new();
    for (index, first) in [("kp", 7), ("ap", 15)] {
        for part in 0..8 {
            let begin = day + part as i64 * 3 * HOUR_MS;
            rows.push(row(
                begin,
                3,
                index,
                words[first + part],
                Some(magnetic),
                "gfz",
            )?);
        }
    }
    rows.push(row(day, 24, "ap_daily", words[23], Some(magnetic), "gfz")?);
    rows.push(row(day, 24, "sunspots", words[24], Some(spots), "gfz")?);
    rows.push(row(day, 24, "f107_observed", words[25], None, "gfz")?);
    rows.push(row(day, 24, "f107_adjusted", words[26], None, "gfz")?);
    Some(rows)
}

fn gfz_three(words: &[&str]) -> Option<Vec<Row>> {
    if words.len() != 10 {
        return None;
    }
    let day = date(words)?;
    let hour = thousandths(words[3])?;
    let hours = [0, 3000, 6000, 9000, 12000, 15000, 18000, 21000];
    let begin = day + hours.iter().find(|&&known| known == hour)? * 3600;
    let status = match words[9] {
        "0" => "preliminary",
        "1" => "definitive",
        _ => return None,
    };
    Some(vec![
        row(begin, 3, "kp", words[7], Some(status), "gfz")?,
        row(begin, 3, "ap", words[8], Some(status), "gfz")?,
    ])
}

fn silso(words: &[&str], status: &str) -> Option<Vec<Row>> {
    if words.len() != 7 || !words[3].contains('.') {
        return None;
    }
    let day = date(words)?;
    thousandths(words[3])?;
    thousandths(words[6])?;
    Some(vec![
        row(day, 24, "sunspots", words[4], Some(status), "silso")?,
        row(
            day,
            24,
            "sunspots_deviation",
            words[5],
            Some(status),
            "silso",
        )?,
    ])
}

fn drao(words: &[&str]) -> Option<Vec<Row>> {
    if words.len() != 7 {
        return None;
    }
    let (date, time) = (words[0], words[1]);
    if date.len() != 8 || time.len() != 6 || !date.is_ascii() || !time.is_ascii() {
        return None;
    }
    let day = day_ms(&date[..4], &date[4..6], &date[6..])?;
    let moment = day + clock_ms(&time[..2], &time[2..4], &time[4..])?;
    let indices = ["f107_observed", "f107_adjusted", "f107_absolute"];
    indices
        .iter()
        .zip(&words[4..])
        .map(|(index, word)| row(moment, 0, index, word, None, "drao"))
        .collect()
}
