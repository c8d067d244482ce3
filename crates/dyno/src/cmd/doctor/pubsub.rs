//! `dyno doctor --engine pubsub`: settings of PostgreSQL for a log on this machine, and where a
//! server differs.

use std::path::{Path, PathBuf};

use dyno_postgres::{Advice, Difference, Installation, MachineSize, advice};
use dyno_pubsub::{Connection, Dsn, Error};
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::terminal;

pub fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    match &args.dsn {
        Some(dsn) => compare(args, &Dsn::parse(dsn)?),
        None => advise(args),
    }
}

/// The settings that a private server is run with.
fn advise(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let size = MachineSize::with_disk_of(args.data_dir.as_deref().unwrap_or(Path::new(".")));
    let found = Installation::find(None);
    let lz4 = found.as_ref().is_ok_and(Installation::has_lz4);
    let settings = advice::settings(&size, lz4);
    let exit = match &found {
        Ok(_) => Exit::Done,
        Err(_) => Exit::No,
    };
    if args.json {
        let all = json!({
            "server": found.as_ref().ok().map(Installation::to_string),
            "missing": found.as_ref().err().map(ToString::to_string),
            "settings": settings.iter().map(as_json).collect::<Vec<_>>(),
        });
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(exit);
    }
    let found = match &found {
        Ok(installation) => installation.to_string(),
        Err(error) => error.to_string(),
    };
    let mut lines = vec![found, String::new(), "Settings for a log here".to_owned()];
    for advice in &settings {
        let restart = if advice.needs_restart {
            " (at a restart)"
        } else {
            ""
        };
        lines.push(format!("  {} = {}{restart}", advice.name, advice.value));
        lines.push(format!("      {}", advice.why));
    }
    terminal::print(&lines.join("\n"))?;
    Ok(exit)
}

fn as_json(advice: &Advice) -> Value {
    json!({
        "name": advice.name,
        "value": advice.value,
        "why": advice.why,
        "needs_restart": advice.needs_restart,
    })
}

/// Where a running server differs. The machine is taken for this one; that is said when it may be
/// another.
fn compare(args: &DoctorArgs, dsn: &Dsn) -> anyhow::Result<Exit> {
    let mut connection = Connection::open(dsn)?;
    let data = data_directory(&mut connection);
    let folder = args.data_dir.clone().or(data).unwrap_or(PathBuf::from("."));
    let size = MachineSize::with_disk_of(&folder);
    let differences = advice::compare(connection.client(), &size).map_err(Error::from)?;
    let endangered = differences
        .iter()
        .any(|difference| difference.endangers_data);
    let exit = if endangered { Exit::No } else { Exit::Done };
    if args.json {
        let all: Vec<Value> = differences.iter().map(difference_json).collect();
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(exit);
    }
    let mut lines = Vec::new();
    if !dsn.is_local() {
        lines.push(format!(
            "Sizes are for this machine; {dsn} may run on another."
        ));
    }
    if differences.is_empty() {
        lines.push(format!("{dsn} is set as advised"));
    }
    for one in &differences {
        let danger = if one.endangers_data {
            "DANGER, acknowledged records can be lost: "
        } else {
            ""
        };
        let restart = if one.needs_restart {
            " (at a restart)"
        } else {
            ""
        };
        let (name, has, suggested) = (one.name, &one.has, &one.suggested);
        lines.push(format!(
            "{danger}{name} = {has}, better {suggested}{restart}"
        ));
        lines.push(format!("    {}", one.why));
    }
    terminal::print(&lines.join("\n"))?;
    Ok(exit)
}

/// The server's data directory, if it is on this machine and the user may see it, which takes a
/// superuser. Otherwise sizes are those of the current directory's disk.
fn data_directory(connection: &mut Connection) -> Option<PathBuf> {
    let row = connection
        .client()
        .query_one("SHOW data_directory", &[])
        .ok()?;
    let folder: String = row.get(0);
    Some(PathBuf::from(folder)).filter(|folder| folder.exists())
}

fn difference_json(one: &Difference) -> Value {
    json!({
        "name": one.name,
        "has": one.has,
        "suggested": one.suggested,
        "why": one.why,
        "needs_restart": one.needs_restart,
        "endangers_data": one.endangers_data,
    })
}
