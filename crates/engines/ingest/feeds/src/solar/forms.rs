//! Parses the lines of each form.

use crate::calendar::Day;
use crate::value::{clock, day_of, shown, thousandths};

const HOUR_MS: i64 = 3_600_000;

/// A form of text in which indices are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// GFZ, a day a line.
    GfzDaily,
    /// GFZ, three hours a line.
    GfzThreeHours,
    SilsoCsv,
    SilsoText,
    Drao,
    SwpcSolar,
    SwpcGeomagnetic,
}

/// A value of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) moment_ms: i64,
    pub(super) hours: u8,
    pub(super) index: &'static str,
    pub(super) thousandths: Option<i64>,
    pub(super) status: Option<&'static str>,
}

/// The form that a header announces.
pub(super) fn announced(line: &str) -> Option<Form> {
    if let Some(product) = line.strip_prefix(":Product:") {
        let product = product.trim_start().to_ascii_lowercase();
        if product.starts_with("daily solar data") {
            return Some(Form::SwpcSolar);
        }
        return product
            .starts_with("daily geomagnetic data")
            .then_some(Form::SwpcGeomagnetic);
    }
    line.trim_start()
        .starts_with("fluxdate ")
        .then_some(Form::Drao)
}

/// Blank lines, comments and rules under headers.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with(['#', ':'])
        || line.bytes().all(|b| matches!(b, b'-' | b' '))
}

/// The form that a line has by its look, of those that announce nothing.
pub(super) fn from_line(line: &str) -> Option<Form> {
    let candidates = [
        Form::GfzDaily,
        Form::GfzThreeHours,
        Form::SilsoCsv,
        Form::SilsoText,
    ];
    candidates
        .into_iter()
        .find(|form| form.read(line, &mut Vec::new()).is_ok())
}

impl Form {
    pub(super) fn source(self) -> &'static str {
        match self {
            Form::GfzDaily | Form::GfzThreeHours => "gfz",
            Form::SilsoCsv | Form::SilsoText => "silso",
            Form::Drao => "drao",
            Form::SwpcSolar => "swpc-dsd",
            Form::SwpcGeomagnetic => "swpc-dgd",
        }
    }

    /// Adds the values of a line.
    pub(super) fn read(self, line: &str, values: &mut Vec<Value>) -> Result<(), String> {
        let words: Vec<&str> = match self {
            Form::SilsoCsv => line.split(';').map(str::trim).collect(),
            _ => line.split_whitespace().collect(),
        };
        match self {
            Form::GfzDaily => gfz_daily(&words, values),
            Form::GfzThreeHours => gfz_three_hours(&words, values),
            Form::SilsoCsv => silso_csv(&words, values),
            Form::SilsoText => silso_text(&words, values),
            Form::Drao => drao(&words, values),
            Form::SwpcSolar => swpc_solar(&words, values),
            Form::SwpcGeomagnetic => swpc_geomagnetic(&words, values),
        }
    }
}

fn date(words: &[&str]) -> Result<Day, String> {
    let [year, month, day, ..] = words else {
        return Err(format!("it has {} words", words.len()));
    };
    let found = (year.len() == 4)
        .then(|| day_of(year, month, day))
        .flatten();
    found.ok_or_else(|| {
        let text = format!("{year} {month} {day}");
        format!("{} is not a date", shown(&text))
    })
}

fn count(words: &[&str], expected: usize) -> Result<(), String> {
    if words.len() == expected {
        return Ok(());
    }
    Err(format!("it has {} words, not {expected}", words.len()))
}

/// A number; no value where it is negative, which all forms use for what is missing.
fn value_of(word: &str, index: &'static str) -> Result<Option<i64>, String> {
    let value = thousandths(word, index)?;
    Ok((value >= 0).then_some(value))
}

fn daily(
    day: Day,
    index: &'static str,
    word: &str,
    status: Option<&'static str>,
) -> Result<Value, String> {
    Ok(Value {
        moment_ms: day.start_ms(),
        hours: 24,
        index,
        thousandths: value_of(word, index)?,
        status,
    })
}

fn three_hours(
    moment_ms: i64,
    index: &'static str,
    word: &str,
    status: Option<&'static str>,
) -> Result<Value, String> {
    Ok(Value {
        moment_ms,
        hours: 3,
        index,
        thousandths: value_of(word, index)?,
        status,
    })
}

/// Year, month, day, days, days at noon, Bartels rotation, day in it, 8 Kp, 8 ap, Ap, sunspots,
/// F10.7 observed and adjusted, and how definitive: 0 preliminary, 1 Kp definitive, 2 sunspots as
/// well.
fn gfz_daily(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    count(words, 28)?;
    let day = date(words)?;
    let (magnetic, sunspots) = match words[27] {
        "0" => ("preliminary", "preliminary"),
        "1" => ("definitive", "preliminary"),
        "2" => ("definitive", "definitive"),
        other => return Err(format!("{} is not 0, 1 or 2", shown(other))),
    };
    for (index, first) in [("kp", 7), ("ap", 15)] {
        for (part, word) in words[first..first + 8].iter().enumerate() {
            let moment_ms = day.start_ms() + part as i64 * 3 * HOUR_MS;
            values.push(three_hours(moment_ms, index, word, Some(magnetic))?);
        }
    }
    values.push(daily(day, "ap_daily", words[23], Some(magnetic))?);
    values.push(daily(day, "sunspots", words[24], Some(sunspots))?);
    values.push(daily(day, "f107_observed", words[25], None)?);
    values.push(daily(day, "f107_adjusted", words[26], None)?);
    Ok(())
}

/// Year, month, day, hour of begin and of the middle, days of both, Kp, ap, and whether definitive.
fn gfz_three_hours(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    count(words, 10)?;
    let day = date(words)?;
    // The hour is a decimal number, and only the eight beginnings of three hours are in the form.
    let hour = thousandths(words[3], "hour")?;
    if !(0..24_000).contains(&hour) || hour % 3000 != 0 {
        return Err(format!(
            "{} is not the begin of three hours",
            shown(words[3])
        ));
    }
    let status = match words[9] {
        "0" => "preliminary",
        "1" => "definitive",
        other => return Err(format!("{} is not 0 or 1", shown(other))),
    };
    let moment_ms = day.start_ms() + hour / 1000 * HOUR_MS;
    values.push(three_hours(moment_ms, "kp", words[7], Some(status))?);
    values.push(three_hours(moment_ms, "ap", words[8], Some(status))?);
    Ok(())
}

fn silso(words: &[&str], status: &'static str, values: &mut Vec<Value>) -> Result<(), String> {
    let day = date(words)?;
    // The year with its fraction tells this form from others.
    if !words[3].contains('.') {
        return Err(format!(
            "{} is not a year with its fraction",
            shown(words[3])
        ));
    }
    thousandths(words[3], "year")?;
    values.push(daily(day, "sunspots", words[4], Some(status))?);
    values.push(daily(day, "sunspots_deviation", words[5], Some(status))?);
    value_of(words[6], "observations").map(|_| ())
}

/// Year, month, day, fractional year, sunspot number, deviation, observations, whether definitive.
fn silso_csv(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    let words = words.strip_suffix(&[""]).unwrap_or(words);
    count(words, 8)?;
    let status = match words[7] {
        "0" => "preliminary",
        "1" => "definitive",
        other => return Err(format!("{} is not 0 or 1", shown(other))),
    };
    silso(words, status, values)
}

/// The same by whitespace, with a star behind what is not definitive.
fn silso_text(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    let (words, status) = match words {
        [words @ .., "*"] => (words, "preliminary"),
        words => (words, "definitive"),
    };
    count(words, 7)?;
    silso(words, status, values)
}

/// Date and time as digits, Julian date, Carrington rotation, observed, adjusted and absolute flux.
fn drao(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    count(words, 7)?;
    let refused = || format!("{} {} is not a moment", shown(words[0]), shown(words[1]));
    let parts = |text: &str, year_digits: usize| {
        let (first, rest) = text.split_at_checked(year_digits)?;
        let (second, third) = rest.split_at_checked(2)?;
        (third.len() == 2).then(|| [first.to_owned(), second.to_owned(), third.to_owned()])
    };
    let [year, month, day] = parts(words[0], 4).ok_or_else(refused)?;
    let [hour, minute, second] = parts(words[1], 2).ok_or_else(refused)?;
    let day = date(&[&year, &month, &day])?;
    let of_day = clock(&format!("{hour}:{minute}:{second}")).ok_or_else(refused)?;
    for (index, word) in [
        ("f107_observed", words[4]),
        ("f107_adjusted", words[5]),
        ("f107_absolute", words[6]),
    ] {
        values.push(Value {
            moment_ms: day.start_ms() + of_day,
            hours: 0,
            index,
            thousandths: value_of(word, index)?,
            status: None,
        });
    }
    Ok(())
}

/// Replaces the star that SWPC uses for a missing value by a negative number, which all forms use.
fn swpc(word: &str) -> &str {
    if word == "*" { "-1" } else { word }
}

/// Date, flux, sunspot number, area, new regions, mean field, X-ray background, seven counts of
/// flares.
fn swpc_solar(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    count(words, 16)?;
    let day = date(words)?;
    values.push(daily(day, "f107_observed", swpc(words[3]), None)?);
    values.push(daily(day, "sunspots_sesc", swpc(words[4]), None)?);
    Ok(())
}

/// Date, then A and eight K of a middle and of a high latitude, then estimated A and Kp. The K of
/// single stations may run into each other where they are missing, so the last nine words count.
fn swpc_geomagnetic(words: &[&str], values: &mut Vec<Value>) -> Result<(), String> {
    const ESTIMATED: usize = 9;
    if words.len() < 3 + ESTIMATED + 2 || words.len() > 30 {
        return Err(format!("it has {} words, not up to 30", words.len()));
    }
    let day = date(words)?;
    // The line is read from its end, because the columns before may have run together.
    let estimated = &words[words.len() - ESTIMATED..];
    values.push(daily(
        day,
        "ap_daily",
        swpc(estimated[0]),
        Some("estimated"),
    )?);
    for (part, word) in estimated[1..].iter().enumerate() {
        let moment_ms = day.start_ms() + part as i64 * 3 * HOUR_MS;
        values.push(three_hours(moment_ms, "kp", swpc(word), Some("estimated"))?);
    }
    Ok(())
}
