//! What `bench` of any engine does: a suite of one case, through the same record and report as
//! everything else.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use dyno_record::Size;
use dyno_suite::{Definition, Stop};
use serde_json::{Value, json};

use crate::args::{BenchArgs, CapacityArgs};
use crate::exit::Exit;
use crate::session::{Print, Session};

/// The command line that was given, as a shell would take it again.
fn given(arguments: impl Iterator<Item = String>) -> String {
    let words = arguments.map(|word| dyno_report::shell_word(&word));
    let words: Vec<String> = std::iter::once("dyno".to_owned()).chain(words).collect();
    words.join(" ")
}

/// The parameters of a search for the highest rate. Without a bound they are those of no search.
pub fn search_params(args: &CapacityArgs, first_rate: u64) -> Value {
    match &args.capacity {
        None => json!({}),
        Some(bound) => json!({
            "quantile": bound.quantile,
            "bound-ms": bound.at_most.as_secs_f64() * 1e3,
            "probe-s": args.probe.as_secs_f64(),
            "first-rate": first_rate,
        }),
    }
}

/// Adds the keys of one object to another one.
pub fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// Runs the same command again with the password in the environment instead of among its arguments,
/// where the record of the run and every user of the machine would see it.
///
/// # Errors
/// When this program cannot be started again.
pub fn with_password(password: &str) -> anyhow::Result<Exit> {
    let program = std::env::current_exe().context("cannot find this program")?;
    // `exec` replaces this process, so it returns only on failure. A child would leave this
    // process, with the password among its arguments, in the list of processes for the whole run.
    let failed = Command::new(program)
        .args(without_password(std::env::args().skip(1)))
        .env("PGPASSWORD", password)
        .exec();
    Err(failed).context("cannot start this program again")
}

fn without_password(arguments: impl Iterator<Item = String>) -> Vec<String> {
    // `--password` is followed by its value in the next word, or holds it behind an equals sign.
    // Both forms must go, or the value would stay among the arguments.
    let mut is_value = false;
    let kept = arguments.filter(|word| {
        let dropped = is_value || word.starts_with("--password=");
        is_value = !is_value && word == "--password";
        !dropped && !is_value
    });
    kept.collect()
}

/// Runs a suite of one benchmark of `engine`, after which the suite is named. The record keeps the
/// suite, so the run can be repeated.
///
/// # Errors
/// If the suite is not one that the lab accepts, and what keeps a run from starting.
pub fn run(engine: &str, suite: Value, args: &BenchArgs, stop: &Stop) -> anyhow::Result<Exit> {
    let name = format!("{engine}-bench");
    // The command runs through the same suite machinery as `dyno run`, so its record can be linted,
    // compared and reported like any other.
    let text = toml::to_string(&suite).context("the suite of this benchmark")?;
    let suite = Definition::parse(&name, &name, &text)?;
    let session = Session {
        size: Size::Quick,
        peers: args.peers.then_some(&args.peers_from),
        data_dir: args.data_dir.as_deref(),
        max_disk: None,
        beside: None,
        why: false,
        flamegraph: false,
        report_every: (!args.quiet).then_some(args.report_every),
        budget: None,
        measure_limits: false,
        out: &args.out,
        resume: None,
        print: Print::new(args.json),
        command: Some(given(std::env::args().skip(1))),
    };
    Ok(session.run(&[suite], stop)?.exit)
}

/// The sizes of a suite whose flags say how much is done: all three have these parameters.
pub fn sizes(params: Value) -> Value {
    json!({ "tiny": params, "quick": params, "full": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_among_the_arguments_of_the_second_start() {
        let line = "bench --host db --password --x --port 1 --password=y";
        let kept = without_password(line.split(' ').map(str::to_owned));
        assert_eq!(kept, ["bench", "--host", "db", "--port", "1"]);
    }

    #[test]
    fn a_command_is_printed_as_a_shell_takes_it() {
        let words = ["bench", "--dsn", "host=/run user=me"];
        let line = given(words.into_iter().map(str::to_owned));
        assert_eq!(line, "dyno bench --dsn 'host=/run user=me'");
    }
}
