use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::obvious::{band, clock_ms, day_ms};
use super::{Parsed, Row};

const KEYS: [&str; 13] = [
    "sq", "f", "md", "rp", "t", "t_tx", "sc", "sl", "rc", "rl", "sa", "ra", "b",
];

/// The keys and values of an object as they stand there, also those that occur twice.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(All)
    }
}

/// An object whose keys differ.
fn object(text: &str) -> Option<Vec<(String, Value)>> {
    let Pairs(pairs) = serde_json::from_str(text).ok()?;
    for (at, (key, _)) in pairs.iter().enumerate() {
        if pairs[..at].iter().any(|(other, _)| other == key) {
            return None;
        }
    }
    Some(pairs)
}

pub fn parse(lines: &[&[u8]]) -> Parsed {
    let mut parsed = Parsed::default();
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() {
            continue;
        }
        match std::str::from_utf8(line).ok().and_then(row) {
            Some(row) => parsed.rows.push(row),
            None => parsed.bad.push(at as u64 + 1),
        }
    }
    parsed
}

fn row(line: &str) -> Option<Row> {
    let pairs = object(line)?;
    let known = ["rx", "topic", "raw", "raw_hex", "event", "detail"];
    let is_capture = pairs.iter().any(|(key, _)| key == "rx")
        && pairs.iter().all(|(key, value)| {
            known.contains(&key.as_str()) && (value.is_string() || key != "rx" && value.is_null())
        });
    if !is_capture {
        if !pairs.iter().any(|(key, _)| KEYS.contains(&key.as_str())) {
            return None;
        }
        return Some(cells(
            None,
            None,
            None,
            None,
            Some(line),
            Some(pairs),
            false,
        ));
    }
    let text = |name: &str| {
        let found = pairs.iter().find(|(key, _)| key == name);
        found
            .and_then(|(_, value)| value.as_str())
            .map(|text| text.to_owned())
    };
    let (raw, hex, event) = (text("raw"), text("raw_hex"), text("event"));
    if [&raw, &hex, &event]
        .iter()
        .filter(|part| part.is_some())
        .count()
        != 1
    {
        return None;
    }
    let received = moment(&text("rx")?)?;
    let message = raw.as_deref().and_then(object);
    let failed = hex.is_some() || raw.is_some() && message.is_none();
    let raw = raw.or(hex);
    Some(cells(
        Some(received),
        text("topic"),
        event,
        text("detail"),
        raw.as_deref(),
        message,
        failed,
    ))
}

fn moment(text: &str) -> Option<i64> {
    if text.len() != 24 || !text.is_ascii() {
        return None;
    }
    let marks: String = [4, 7, 10, 13, 16, 19, 23]
        .iter()
        .map(|&at| text.as_bytes()[at] as char)
        .collect();
    if marks != "--T::.Z" {
        return None;
    }
    let ms: String = text[20..23].to_owned();
    if !ms.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(
        day_ms(&text[..4], &text[5..7], &text[8..10])?
            + clock_ms(&text[11..13], &text[14..16], &text[17..19])?
            + ms.parse::<i64>().ok()?,
    )
}

fn cells(
    received: Option<i64>,
    topic: Option<String>,
    event: Option<String>,
    detail: Option<String>,
    raw: Option<&str>,
    message: Option<Vec<(String, Value)>>,
    failed: bool,
) -> Row {
    let mut failed = failed;
    let mut values: [Option<String>; 13] = Default::default();
    let mut extra = serde_json::Map::new();
    for (key, value) in message.unwrap_or_default() {
        let Some(at) = KEYS.iter().position(|known| *known == key) else {
            extra.insert(key, value);
            continue;
        };
        let bounds = match key.as_str() {
            "sq" => Some((i64::MIN, i64::MAX)),
            "f" => Some((0, i64::MAX)),
            "rp" => Some((-32768, 32767)),
            "t" | "t_tx" => Some((0, 253_402_300_799)),
            "sa" | "ra" => Some((0, 65535)),
            _ => None,
        };
        values[at] = match bounds {
            Some((least, most)) => value
                .as_i64()
                .filter(|&v| least <= v && v <= most)
                .map(|v| v.to_string()),
            None => value.as_str().map(|text| text.to_owned()),
        };
        if values[at].is_none() {
            failed = true;
            extra.insert(key, value);
        }
    }
    let [sq, f, md, rp, t, t_tx, sc, sl, rc, rl, sa, ra, b] = values;
    let ms =
        |seconds: Option<String>| seconds.map(|s| (s.parse::<i64>().unwrap() * 1000).to_string());
    let code = f.as_ref().map(|f| band(f.parse().unwrap()).to_string());
    let extra = (!extra.is_empty()).then(|| Value::Object(extra).to_string());
    vec![
        ms(t),
        received.map(|ms| ms.to_string()),
        topic,
        event,
        detail,
        sq,
        f,
        code,
        b,
        md,
        rp,
        ms(t_tx),
        sc,
        sl,
        rc,
        rl,
        sa,
        ra,
        extra,
        failed.then(|| "failed".to_owned()),
        raw.map(|raw| raw.to_owned()),
    ]
}
