//! Reads what is stored at the end, and judges it.

use std::collections::BTreeMap;

use dyno_postgres::postgres::Client;
use dyno_pubsub::Connection;

use super::servers::{NAME, Servers};
use super::soak::Soaked;
use super::{Mode, Options, Outcome, Recorder, RunError, readings};
use crate::checker::{self, Evidence, QueueEvidence, Verdict};
use crate::history::{Event, What};
use crate::nemesis::Fault;
use crate::proxy::Proxy;

/// Judges a run that has ended.
pub fn outcome(
    options: &Options,
    servers: &Servers,
    recorder: &Recorder,
    faults: BTreeMap<Fault, u64>,
    soak: Option<Soaked>,
    mut left_out: Vec<String>,
) -> Result<Outcome, RunError> {
    let crashes: u64 = [
        Fault::Server,
        Fault::Backend,
        Fault::Primary,
        Fault::DiskFull,
    ]
    .iter()
    .filter_map(|fault| faults.get(fault))
    .sum();
    let troubles = recorder.troubles();
    // After a trouble consumers were not given the time to reach the end, so what was not delivered
    // is not held against them.
    let drained = troubles.is_empty();
    let verdict = match options.mode {
        Mode::Queue => queue(options, servers, recorder, crashes == 0, drained)?,
        _ => log(options, servers, recorder, crashes, drained)?,
    };
    if options.mode == Mode::Kafka {
        left_out.push(
            "how often Kafka's groups are given a message again, which they do not count, and \
             commits of outdated generations, which librdkafka does not tell"
                .to_owned(),
        );
    }
    if soak.as_ref().is_some_and(|soak| !soak.is_long()) {
        left_out.push("flatness: a soak is judged from ten minutes on".to_owned());
    }
    let holds = verdict.holds()
        && troubles.is_empty()
        && soak
            .as_ref()
            .is_none_or(|soak| !soak.is_long() || soak.flat());
    let history = if holds {
        None
    } else {
        let path = options.dir.join("history.ndjson");
        recorder.with(|history| history.save(&path))?;
        Some(path)
    };
    let (seconds, stall_longest_ms) = recorder.with(|history| pace(history.events()));
    Ok(Outcome {
        holds,
        mode: options.mode,
        nodes: options.nodes,
        seed: options.seed,
        faults,
        cut_in_commit: cuts(&mut servers.proxies()),
        cut_at_brokers: cuts(&mut servers.fronts.iter()),
        lease_changes: if options.mode.has_brokers() {
            servers.lease_changes()?
        } else {
            0
        },
        verdict,
        seconds,
        stall_longest_ms,
        troubles,
        left_out,
        history,
        soak,
    })
}

fn log(
    options: &Options,
    servers: &Servers,
    recorder: &Recorder,
    crashes: u64,
    drained: bool,
) -> Result<Verdict, RunError> {
    let mut client = servers.connect()?;
    let mut library =
        Connection::open(&servers.nodes.dsn()?).map_err(RunError::log("connect to the server"))?;
    let readings = [
        readings::through_view(&mut client, NAME)?,
        readings::through_library(&mut library, NAME).map_err(RunError::log("read the log"))?,
    ];
    let cursors = readings::cursors(&mut client, options.mode, NAME)?;
    // The SQL functions commit as the session says, which is synchronously, so a killed server
    // forgets nothing there.
    let forgetful = if options.mode == Mode::Sql {
        0
    } else {
        crashes
    };
    Ok(recorder.with(|history| {
        checker::check(&Evidence {
            partitions: options.partitions,
            groups: options.groups,
            events: history.events(),
            readings: &readings,
            cursors: &cursors,
            server_stayed: forgetful == 0,
            drained,
        })
    }))
}

fn queue(
    options: &Options,
    servers: &Servers,
    recorder: &Recorder,
    server_stayed: bool,
    drained: bool,
) -> Result<Verdict, RunError> {
    let left = readings::queue_left(&mut servers.connect()?, NAME)?;
    Ok(recorder.with(|history| {
        checker::check_queue(&QueueEvidence {
            events: history.events(),
            left: &left,
            visibility_us: options.lease_ms as i64 * 1000,
            server_stayed,
            drained,
        })
    }))
}

fn cuts(proxies: &mut dyn Iterator<Item = &Proxy>) -> u64 {
    proxies
        .map(|proxy| proxy.control().counts().cut_in_commit)
        .sum()
}

/// How many messages are left to be processed, over all groups.
pub fn undone(client: &mut Client, options: &Options, name: &str) -> Result<i64, RunError> {
    Ok(match options.mode {
        Mode::Queue => readings::queue_waiting(client, name)?,
        mode => readings::lag(client, mode, name, options.groups)?,
    })
}

/// The length of the run in seconds, and the longest time without an acknowledgement in
/// milliseconds.
fn pace(events: &[Event]) -> (f64, f64) {
    let mut times: Vec<i64> = events
        .iter()
        .filter(|event| matches!(event.what, What::Acknowledged { .. }))
        .map(|event| event.at_us)
        .collect();
    times.sort_unstable();
    let longest_us = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    let all = events.iter().map(|event| event.at_us);
    let length_us = all.clone().max().unwrap_or(0) - all.min().unwrap_or(0);
    (length_us as f64 / 1e6, longest_us.unwrap_or(0) as f64 / 1e3)
}
