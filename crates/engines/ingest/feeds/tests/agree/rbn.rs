use super::obvious::{band, clock_ms, day_ms, digits, integer, thousandths};
use super::{Parsed, Row};

const NAMES: &str =
    "callsign,de_pfx,de_cont,freq,band,dx,dx_pfx,dx_cont,mode,db,date,speed,tx_mode";

pub fn parse(lines: &[&[u8]]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut columns = None;
    for (at, line) in lines.iter().enumerate() {
        let number = at as u64 + 1;
        if line.is_empty() {
            continue;
        }
        let Ok(line) = std::str::from_utf8(line) else {
            parsed.bad.push(number);
            continue;
        };
        if is_trailer(line) {
            continue;
        }
        if line.starts_with("callsign,") {
            let names: Vec<&str> = line.split(',').map(|name| name.trim()).collect();
            let joined = names.join(",");
            if joined == NAMES || joined == NAMES.strip_suffix(",speed,tx_mode").unwrap() {
                columns = Some(names.len());
                continue;
            }
            parsed.refused = Some(number);
            break;
        }
        match row(line, columns) {
            Some(row) => parsed.rows.push(row),
            None => parsed.bad.push(number),
        }
    }
    parsed
}

fn is_trailer(line: &str) -> bool {
    let line = line.trim();
    if !line.starts_with('(') || !line.ends_with(')') || line.len() < 2 {
        return false;
    }
    let inner = &line[1..line.len() - 1];
    let number = inner.strip_suffix(" rows").or(inner.strip_suffix(" row"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

fn row(line: &str, columns: Option<usize>) -> Option<Row> {
    let fields = fields(line)?;
    let fields: Vec<&str> = fields.iter().map(|field| field.trim()).collect();
    if fields.len() != 11 && fields.len() != 13 {
        return None;
    }
    if columns.is_some_and(|columns| columns != fields.len()) {
        return None;
    }
    if fields[0].is_empty() || fields[5].is_empty() {
        return None;
    }
    let hz = thousandths(fields[3]).filter(|&hz| hz >= 0)?;
    let optional = |at: usize, least, most| match fields.get(at) {
        None | Some(&"") => Some(None),
        Some(text) => integer(text, least, most).map(Some),
    };
    let snr = optional(9, -32768, 32767)?;
    let speed = optional(11, 0, 65535)?;
    let time = moment(fields[10])?;
    let word = |at: usize| {
        fields
            .get(at)
            .filter(|f| !f.is_empty())
            .map(|f| f.to_string())
    };
    let text = |at: usize| Some(fields[at].to_owned());
    Some(vec![
        Some(time.to_string()),
        text(0),
        text(1),
        text(2),
        Some(hz.to_string()),
        Some(band(hz).to_string()),
        text(4),
        text(5),
        text(6),
        text(7),
        word(8),
        snr.map(|snr| snr.to_string()),
        speed.map(|speed| speed.to_string()),
        word(12),
        Some(fields.len().to_string()),
    ])
}

/// One character after the other; a quote counts at the begin of a field only.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars().peekable();
    let mut at_begin = true;
    while let Some(c) = chars.next() {
        if c == '"' && at_begin {
            loop {
                match chars.next()? {
                    '"' if chars.peek() == Some(&'"') => {
                        chars.next();
                        fields.last_mut()?.push('"');
                    }
                    '"' => break,
                    other => fields.last_mut()?.push(other),
                }
            }
            if !matches!(chars.peek(), None | Some(',')) {
                return None;
            }
            at_begin = false;
        } else if c == ',' {
            fields.push(String::new());
            at_begin = true;
        } else {
            fields.last_mut()?.push(c);
            at_begin = false;
        }
    }
    Some(fields)
}

fn moment(text: &str) -> Option<i64> {
    let text = text
        .strip_suffix("+00:00")
        .or(text.strip_suffix("+00"))
        .unwrap_or(text);
    let (date, time) = text.split_once(' ')?;
    let date: Vec<&str> = date.split('-').collect();
    let time: Vec<&str> = time.split(':').collect();
    if date.len() != 3
        || time.len() != 3
        || date[0].len() != 4
        || date[1].len() != 2
        || date[2].len() != 2
    {
        return None;
    }
    if !digits(date[0], 4) {
        return None;
    }
    Some(day_ms(date[0], date[1], date[2])? + clock_ms(time[0], time[1], time[2])?)
}
