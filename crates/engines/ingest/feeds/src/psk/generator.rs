//! Generates hours of captures from a seed.

use dyno_ingest::generate::Random;
use serde_json::json;

use super::capture::{Capture, stamp};
use crate::batch::{Batch, MadeLine};
use crate::calendar::Day;
use crate::generate::callsign;

const HOUR_MS: i64 = 3_600_000;

fn hour_ms(batch: &Batch) -> i64 {
    batch.start.start_ms() + i64::from(batch.number) * HOUR_MS
}

pub(super) fn file_name(batch: &Batch) -> String {
    let hour_ms = hour_ms(batch);
    let day = Day::from_ms(hour_ms);
    format!(
        "pskr-{day}T{:02}.jsonl.gz",
        (hour_ms - day.start_ms()) / HOUR_MS
    )
}

pub(super) fn lines(batch: &Batch) -> impl Iterator<Item = MadeLine> + use<> {
    let start_ms = hour_ms(batch);
    let mut random = batch.random(1);
    let stations: Vec<String> = (0..2000).map(|_| callsign(&mut random)).collect();
    let (rows, quirks) = (batch.rows, batch.quirks);
    let mut sequence = 30_000_000_000 + i64::from(batch.number) * 1_000_000_000;
    (0..rows).map(move |row| {
        sequence += 1;
        let received_ms = start_ms + (row as i64) * HOUR_MS / (rows as i64);
        let sender = &stations[random.below(2000) as usize];
        let receiver = &stations[random.below(2000) as usize];
        let message = message(&mut random, sequence, received_ms, sender, receiver);
        if random.chance(quirks) {
            return quirk(&mut random, received_ms, message);
        }
        MadeLine::new(captured(received_ms, &message), 1)
    })
}

fn captured(received_ms: i64, message: &serde_json::Value) -> String {
    let text = |key: &str| message[key].as_str().unwrap_or("-").replace('/', ".");
    let topic = ["b", "md", "sc", "rc", "sl", "rl"].map(text).join("/");
    line(&Capture {
        rx: stamp(received_ms),
        topic: Some(format!("pskr/filter/v2/{topic}")),
        raw: Some(message.to_string()),
        ..Capture::default()
    })
}

fn line(capture: &Capture) -> String {
    json!(capture).to_string()
}

fn message(
    random: &mut Random,
    sequence: i64,
    received_ms: i64,
    sender: &str,
    receiver: &str,
) -> serde_json::Value {
    const BANDS: [(&str, u32); 4] = [
        ("40m", 7_074_000),
        ("20m", 14_074_000),
        ("15m", 21_074_000),
        ("10m", 28_074_000),
    ];
    let (band, dial_hz) = BANDS[random.below(4) as usize];
    let mode = ["FT8", "FT8", "FT4", "CW"][random.below(4) as usize];
    let seconds = received_ms / 1000;
    json!({
        "sq": sequence,
        "f": dial_hz + 200 + random.below(2600),
        "md": mode,
        "rp": i64::from(random.below(50)) - 24,
        "t": seconds - 30,
        "t_tx": seconds - 45,
        "sc": sender,
        "sl": "FN31pr",
        "rc": receiver,
        "rl": format!("JO{:02}", random.below(100)),
        "sa": 291,
        "ra": 230,
        "b": band,
    })
}

fn quirk(random: &mut Random, received_ms: i64, mut message: serde_json::Value) -> MadeLine {
    let odd = |text: String, name| MadeLine::new(text, 1).odd(name);
    match random.below(8) {
        0 => {
            message["sd"] = json!({ "software": "x" });
            odd(captured(received_ms, &message), "unknown-key")
        }
        1 => {
            message["rp"] = json!("-12");
            odd(captured(received_ms, &message), "wrong-type")
        }
        2 => {
            message["f"] = json!(-1);
            odd(captured(received_ms, &message), "out-of-range")
        }
        3 => odd(
            line(&Capture {
                rx: stamp(received_ms),
                event: Some("disconnected".to_owned()),
                detail: Some("the broker closed the connection".to_owned()),
                ..Capture::default()
            }),
            "event",
        ),
        4 => odd(message.to_string(), "alone"),
        5 => odd(
            line(&Capture {
                rx: stamp(received_ms),
                topic: Some("pskr/filter/v2".to_owned()),
                raw: Some(message.to_string()[..40].to_owned()),
                ..Capture::default()
            }),
            "cut-message",
        ),
        6 => {
            let text = captured(received_ms, &message);
            MadeLine::bad(text[..text.len() / 2].to_owned(), "cut-line")
        }
        _ => MadeLine::new("", 0).odd("blank"),
    }
}
