//! `dyno pages status`, `compact`, `reset`, `idle` and `writeback`: questions to the process that has a store.

use std::thread;

use clap::ValueEnum;
use dyno_suite::Stop;
use serde_json::Value;

use super::place::Place;
use super::{control, device};
use crate::args::{PagesAskArgs, PagesStatusArgs, PagesWritebackArgs};
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

pub fn compact(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    ask(&Place::of(&args.name)?, "compact", args.json)
}

pub fn reset(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    let place = Place::of(&args.name)?;
    if let Some(device) = device::of_place(&place) {
        device::refuse_used(&device)?;
    }
    ask(&place, "reset", args.json)
}

pub fn idle(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    ask(&Place::of(&args.name)?, "idle", args.json)
}

pub fn write_back(args: &PagesWritebackArgs) -> anyhow::Result<Exit> {
    let kind = args.kind.to_possible_value();
    let kind = kind.as_ref().map_or("", |kind| kind.get_name());
    let most = args.most.unwrap_or(u64::MAX);
    let question = format!("writeback {kind} {most}");
    ask(&Place::of(&args.ask.name)?, &question, args.ask.json)
}

fn ask(place: &Place, question: &str, json: bool) -> anyhow::Result<Exit> {
    show(&control::ask(&place.control(), question)?, json)?;
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
