//! `dyno pages status` and `compact`: questions to the process that has a store.

use std::thread;

use dyno_suite::Stop;
use serde_json::Value;

use super::control;
use super::place::Place;
use crate::args::{PagesCompactArgs, PagesStatusArgs};
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PagesStatusArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    loop {
        show(&control::ask(&place.control(), "status")?, args.json)?;
        match args.watch {
            Some(every) if !stop.asked() => thread::sleep(every),
            _ => return Ok(Exit::Done),
        }
    }
}

pub fn compact(args: &PagesCompactArgs) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    show(&control::ask(&place.control(), "compact")?, args.json)?;
    Ok(Exit::Done)
}

fn show(answer: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return terminal::print(&serde_json::to_string_pretty(answer)?);
    }
    let mut text = String::new();
    for (name, value) in answer.as_object().into_iter().flatten() {
        let name = name.replace('_', " ");
        match value {
            Value::Object(kind) => {
                let of = |key: &str| kind.get(key).cloned().unwrap_or_default();
                text += &format!("{name}: {} pages in {} bytes\n", of("pages"), of("bytes"));
            }
            other => text += &format!("{name}: {other}\n"),
        }
    }
    terminal::print(&text)
}
