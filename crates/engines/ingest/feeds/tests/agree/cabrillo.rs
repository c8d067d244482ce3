use super::obvious::{band as code_of, day_ms, digits, thousandths};
use super::{Parsed, Row};

#[derive(Default)]
struct Log {
    number: u32,
    version: Option<String>,
    contest: Option<String>,
    station: Option<String>,
    year: Option<i64>,
}

pub fn parse(lines: &[&[u8]]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut log = Log::default();
    for (at, line) in lines.iter().enumerate() {
        let (raw, encoding) = match std::str::from_utf8(line) {
            Ok(text) => (text.to_owned(), "utf-8"),
            Err(_) => {
                let mut text = String::new();
                for &byte in *line {
                    text.push(byte as char);
                }
                (text, "latin-1")
            }
        };
        parsed.rows.push(row(&raw, encoding, at + 1, &mut log));
    }
    parsed
}

fn row(raw: &str, encoding: &str, line: usize, log: &mut Log) -> Row {
    let text = |text: &str| Some(text.to_owned());
    let mut contact: Vec<Option<String>> = vec![None; 11];
    let mut error = None;
    let (mut kind, mut tag, mut value) = ("other", None, None);
    if raw.trim().is_empty() {
        kind = "blank";
    } else if let Some((name, rest, remarks)) = contact_tag(raw) {
        kind = if name == "QSO" { "qso" } else { "x-qso" };
        tag = text(name);
        match read_contact(&rest, remarks, log) {
            Some(cells) => contact = cells,
            None => error = text("no contact"),
        }
    } else if let Some((name, behind)) = header(raw) {
        kind = "header";
        match name.as_str() {
            "START-OF-LOG" => {
                *log = Log {
                    number: log.number + 1,
                    version: nonempty(&behind),
                    ..Log::default()
                };
            }
            "CONTEST" => log.contest = nonempty(&behind),
            "CALLSIGN" => log.station = nonempty(&behind),
            _ => {}
        }
        tag = Some(name);
        value = Some(behind);
    } else {
        error = text("no tag");
    }
    let mut row = vec![
        text(&log.number.to_string()),
        text(&line.to_string()),
        log.version.clone(),
        log.contest.clone(),
        log.station.clone(),
        text(kind),
        tag,
        value,
    ];
    let remarks = contact.pop().unwrap();
    row.extend(contact);
    row.push(remarks);
    row.extend([error, text(encoding), text(raw)]);
    row
}

fn nonempty(text: &str) -> Option<String> {
    if text.is_empty() {
        None
    } else {
        Some(text.to_owned())
    }
}

fn contact_tag(raw: &str) -> Option<(&'static str, String, Vec<&'static str>)> {
    let begin = raw.trim_start();
    let upper: String = begin.chars().map(|c| c.to_ascii_uppercase()).collect();
    let name = if upper.starts_with("X-QSO") {
        "X-QSO"
    } else if upper.starts_with("QSO") {
        "QSO"
    } else {
        return None;
    };
    let mut remarks = Vec::new();
    if !begin.starts_with(name) {
        remarks.push("tag-case");
    }
    let behind = &begin[name.len()..];
    let rest = if behind.trim_start().starts_with(':') {
        behind.trim_start()[1..].to_owned()
    } else if behind.chars().next().is_some_and(char::is_whitespace) {
        remarks.push("no-colon");
        behind.to_owned()
    } else {
        return None;
    };
    if rest.chars().next().is_some_and(|c| !c.is_whitespace()) {
        remarks.push("glued-tag");
    }
    Some((name, rest, remarks))
}

fn header(raw: &str) -> Option<(String, String)> {
    let colon = raw.find(':')?;
    let name = raw[..colon].trim();
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if name.is_empty() || name.len() > 40 || !plain {
        return None;
    }
    Some((
        name.to_ascii_uppercase(),
        raw[colon + 1..].trim().to_owned(),
    ))
}

/// timestamp, frequency, band, band_name, mode, sent_call, sent_exchange, rcvd_call, rcvd_exchange,
/// transmitter and, last, the remarks.
fn read_contact(
    rest: &str,
    mut remarks: Vec<&'static str>,
    log: &mut Log,
) -> Option<Vec<Option<String>>> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    if words.len() < 5 || words.len() > 64 {
        return None;
    }
    let (hz, band, name) = read_band(words[0], &mut remarks)?;
    let mut mode = words[1].to_ascii_uppercase();
    if !["CW", "PH", "FM", "RY", "DG"].contains(&mode.as_str()) {
        mode = words[1].to_string();
        remarks.push("mode");
    }
    let (day, year) = read_date(words[2], &mut remarks)?;
    let minutes = read_time(words[3], &mut remarks)?;
    let first = *log.year.get_or_insert(year);
    if (first - year).abs() > 1 {
        remarks.push("off-year");
    }
    let behind = &words[5..];
    let second = second_call(behind)?;
    let sent = &behind[..second];
    let mut received = behind[second + 1..].to_vec();
    let mut transmitter = None;
    if received.len() == sent.len() + 1 && ["0", "1"].contains(received.last()?) {
        transmitter = received.pop().map(|word| word.to_owned());
    }
    Some(vec![
        Some((day + minutes * 60_000).to_string()),
        hz.map(|hz| hz.to_string()),
        Some(band.to_string()),
        Some(name),
        Some(mode),
        Some(words[4].to_ascii_uppercase()),
        Some(sent.join(" ")),
        Some(behind[second].to_ascii_uppercase()),
        Some(received.join(" ")),
        transmitter,
        if remarks.is_empty() {
            None
        } else {
            Some(remarks.join(","))
        },
    ])
}

fn second_call(words: &[&str]) -> Option<usize> {
    let calls: Vec<usize> = (0..words.len()).filter(|&at| is_call(words[at])).collect();
    let balanced = |&at: &usize| {
        let (before, behind) = (at, words.len() - 1 - at);
        behind == before || behind == before + 1
    };
    let even: Vec<usize> = calls.iter().copied().filter(balanced).collect();
    let among = if even.is_empty() { calls } else { even };
    let no_locator = among.iter().copied().find(|&at| !is_locator(words[at]));
    no_locator.or(among.first().copied())
}

fn is_call(word: &str) -> bool {
    (3..=20).contains(&word.len())
        && word.split('/').any(|part| {
            let chars: Vec<char> = part.chars().collect();
            if !chars.iter().all(|c| c.is_ascii_alphanumeric()) {
                return false;
            }
            let letters_behind = chars
                .iter()
                .rev()
                .take_while(|c| c.is_ascii_alphabetic())
                .count();
            if letters_behind == 0 || letters_behind == chars.len() {
                return false;
            }
            let head = &chars[..chars.len() - letters_behind - 1];
            head.iter().any(|c| c.is_ascii_alphabetic())
        })
}

fn is_locator(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let chars: Vec<char> = word.chars().collect();
    chars.len() == 6
        && chars[..2].iter().all(|c| ('A'..='R').contains(c))
        && chars[2..4].iter().all(|c| c.is_ascii_digit())
        && chars[4..].iter().all(|c| ('A'..='X').contains(c))
}

/// What a code is called.
fn metres(code: i32) -> String {
    let (low, names) = match code {
        100..=111 => (100, "2190m 630m 160m 80m 60m 40m 30m 20m 17m 15m 12m 10m"),
        200..=203 => (200, "6m 4m 2m 1.25m"),
        300..=303 => (300, "70cm 33cm 23cm 13cm"),
        400..=402 => (400, "9cm 5cm 3cm"),
        _ => return String::new(),
    };
    names
        .split(' ')
        .nth((code - low) as usize)
        .unwrap()
        .to_owned()
}

fn read_band(word: &str, remarks: &mut Vec<&'static str>) -> Option<(Option<i64>, i32, String)> {
    let upper = word.to_ascii_uppercase();
    let names =
        "50=200 70=201 144=202 222=203 432=300 902=301 1.2G=302 2.3G=303 3.4G=400 5.7G=401 10G=402";
    for name in names.split(' ') {
        let (name, code) = name.split_once('=')?;
        if name == upper {
            let code = code.parse().ok()?;
            return Some((None, code, metres(code)));
        }
    }
    if "24G 47G 75G 119G 122G 134G 142G 241G"
        .split(' ')
        .any(|name| name == upper)
    {
        return Some((None, 0, upper));
    }
    if upper == "LIGHT" || upper == "300G" {
        return Some((None, 0, "LIGHT".to_owned()));
    }
    let giga = upper.ends_with('G');
    let value = thousandths(if giga { &word[..word.len() - 1] } else { word })?;
    if value <= 0 {
        return None;
    }
    let scaled = |scale: i64| value.checked_mul(scale).map_or(0, code_of);
    if giga {
        let code = scaled(1_000_000);
        remarks.push("gigahertz");
        return (code != 0).then(|| (None, code, metres(code)));
    }
    if code_of(value) != 0 {
        return Some((Some(value), code_of(value), metres(code_of(value))));
    }
    if scaled(1000) != 0 {
        remarks.push("megahertz");
        return Some((None, scaled(1000), metres(scaled(1000))));
    }
    Some((Some(value), 0, String::new()))
}

fn read_date(word: &str, remarks: &mut Vec<&'static str>) -> Option<(i64, i64)> {
    let year = |text: &str| text.parse::<i64>().ok();
    let parts: Vec<&str> = if word.len() == 8 && digits(word, 8) {
        vec![&word[..4], &word[4..6], &word[6..]]
    } else {
        word.split(['-', '/', '.']).collect()
    };
    if parts.len() != 3 {
        return None;
    }
    let usual = word.len() == 10 && word.as_bytes()[4] == b'-' && word.as_bytes()[7] == b'-';
    if !(usual && parts[0].len() == 4 && day_ms(parts[0], parts[1], parts[2]).is_some()) {
        remarks.push("date-form");
    }
    if parts[0].len() == 4 {
        return Some((day_ms(parts[0], parts[1], parts[2])?, year(parts[0])?));
    }
    if parts[2].len() != 4 || parts[0].len() > 2 || parts[1].len() > 2 {
        return None;
    }
    let one = day_ms(parts[2], parts[1], parts[0]);
    let other = day_ms(parts[2], parts[0], parts[1]);
    match (one, other) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some((a.or(b)?, year(parts[2])?)),
    }
}

fn read_time(word: &str, remarks: &mut Vec<&'static str>) -> Option<i64> {
    let mut plain = word.to_owned();
    if word.contains(':') {
        let parts: Vec<&str> = word.splitn(2, ':').collect();
        if parts[0].len() != 2 || parts[1].len() != 2 {
            return None;
        }
        remarks.push("time-form");
        plain = parts.concat();
    }
    if plain.len() != 4 || !digits(&plain, 4) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (plain[..2].parse().ok()?, plain[2..].parse().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}
