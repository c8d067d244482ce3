//! `dyno pages status`, `list`, `compact`, `reset`, `idle` and `writeback`: requests to the process
//! that has a store.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;
use dyno_pages_hold::Client;
use dyno_suite::Stop;
use serde_json::{Value, json};

use super::memory::shown;
use super::store_dir::StoreDir;
use super::{control, device, pager, show};
use crate::args::{PagesAskArgs, PagesListArgs, PagesStatusArgs, PagesWritebackArgs};
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &PagesStatusArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let store_dir = StoreDir::from_name(&args.name)?;
    loop {
        let status = question(&store_dir, "status")?;
        if args.json {
            terminal::print(&serde_json::to_string_pretty(&status)?)?
        } else {
            terminal::print(&show::status(&status))?
        }
        let Some(every) = args.watch else {
            return Ok(Exit::Done);
        };
        pause(every, stop);
        if stop.asked() {
            return Ok(Exit::Done);
        }
    }
}

/// Time between two checks for a request to stop.
const TICK: Duration = Duration::from_millis(50);

/// Sleeps for `time`, or until a stop is requested.
fn pause(time: Duration, stop: &Stop) {
    let began = Instant::now();
    while began.elapsed() < time && !stop.asked() {
        thread::sleep(TICK.min(time.saturating_sub(began.elapsed())));
    }
}

/// How long `list` waits for each store, so that a process that hangs does not hide the others.
const LIST_WAIT: Duration = Duration::from_secs(5);

pub fn list(args: &PagesListArgs) -> anyhow::Result<Exit> {
    let mut all = Vec::new();
    for store_dir in StoreDir::all()? {
        let answer = control::ask_within(&store_dir.control(), "status", LIST_WAIT);
        all.push(match answer {
            Ok(status) => status,
            Err(_) => json!({ "name": store_dir.name(), "state": state(&store_dir) }),
        });
    }
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Done);
    }
    let mut table = terminal::table(&[
        "store",
        "reached at",
        "size",
        "limit",
        "in use",
        "pages",
        "state",
    ]);
    for store in &all {
        let text = |name: &str| store[name].as_str().unwrap_or_default().to_string();
        let size = |name: &str| store[name].as_u64().map_or(String::new(), shown);
        let at = store["address"].as_str().or(store["device"].as_str());
        let damage = store["corrupt"]["pages"].as_u64().unwrap_or(0);
        let state = match store["state"].as_str() {
            Some(state) => state.to_string(),
            None if damage > 0 => format!("{damage} damaged pages"),
            None => "serving".to_string(),
        };
        table.add_row([
            text("name"),
            at.unwrap_or_default().to_string(),
            size("size_bytes"),
            size("limit_bytes"),
            size("slot_bytes"),
            store["stored_pages"]
                .as_u64()
                .map_or(String::new(), |pages| pages.to_string()),
            state,
        ]);
    }
    if all.is_empty() {
        terminal::print("no store is served or attached here")?
    } else {
        terminal::print(&table.to_string())?
    }
    Ok(Exit::Done)
}

/// What is known of a store whose process does not answer.
fn state(store_dir: &StoreDir) -> String {
    if let Some(process) = store_dir.server() {
        return format!("process {process} does not answer");
    }
    match Client::connect(&store_dir.hold()) {
        Ok(_) => "its daemon is dead, its pages are held".to_string(),
        Err(_) => "its processes are dead".to_string(),
    }
}

/// Asks the process that has a store; where none answers, says what there is.
fn question(store_dir: &StoreDir, question: &str) -> anyhow::Result<Value> {
    let name = store_dir.name();
    let answer = control::ask(&store_dir.control(), question);
    let Err(error) = answer else {
        return answer;
    };
    if !store_dir.exists() {
        let others = StoreDir::all()?
            .iter()
            .map(StoreDir::name)
            .collect::<Vec<_>>();
        if others.is_empty() {
            bail!(
                "no store is served or attached here; `dyno pages serve` or `dyno pages attach` makes one"
            );
        }
        bail!(
            "no store is called {name}; there are: {}",
            others.join(", ")
        );
    }
    if store_dir.server().is_some() {
        return Err(error).context(format!("{name}: {}", state(store_dir)));
    }
    pager::refuse_held(store_dir)?;
    match Client::connect(&store_dir.hold()) {
        Ok(_) => bail!(
            "{name}: {}; `dyno pages attach --name {name}` starts it again, if the holder does not",
            state(store_dir)
        ),
        Err(_) => bail!(
            "{name}: {}; `dyno pages detach --name {name}` clears what is left",
            state(store_dir)
        ),
    }
}

pub fn compact(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    ask(&StoreDir::from_name(&args.name)?, "compact", args.json)
}

pub fn reset(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    let store_dir = StoreDir::from_name(&args.name)?;
    if let Some(device) = device::of_store(&store_dir) {
        device::refuse_used(&device)?;
    }
    ask(&store_dir, "reset", args.json)
}

pub fn idle(args: &PagesAskArgs) -> anyhow::Result<Exit> {
    ask(&StoreDir::from_name(&args.name)?, "idle", args.json)
}

pub fn write_back(args: &PagesWritebackArgs) -> anyhow::Result<Exit> {
    let kind = args.kind.to_possible_value();
    let kind = kind.as_ref().map_or("", |kind| kind.get_name());
    let most = args.most.unwrap_or(u64::MAX);
    let question = format!("writeback {kind} {most}");
    ask(
        &StoreDir::from_name(&args.ask.name)?,
        &question,
        args.ask.json,
    )
}

fn ask(store_dir: &StoreDir, question: &str, json: bool) -> anyhow::Result<Exit> {
    show(&self::question(store_dir, question)?, json)?;
    Ok(Exit::Done)
}

fn show(answer: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return terminal::print(&serde_json::to_string_pretty(answer)?);
    }
    let mut text = String::new();
    for (name, value) in answer.as_object().into_iter().flatten() {
        let name = name.replace('_', " ");
        text += &format!("{name}: {value}\n");
    }
    terminal::print(&text)
}
