//! One run of a chain.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, TopicOptions};
use dyno_random::Random;

use super::ChainParams;
use super::children::{Producer, TOPIC, Watch, failed};
use super::delays::CommitTimes;
use crate::RigError;
use crate::pubsub::{FlowError, Server};

/// Time between two reads of the ledger, which is the resolution of the delays.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Connections of the producer, the watch and the rig.
const CONNECTIONS: usize = 16;
/// A chain that commits nothing for so long counts as broken.
const STILL_MAX: Duration = Duration::from_secs(60);

/// The result of a run.
pub(super) struct Ran {
    pub(super) seconds: f64,
    pub(super) commits: u64,
    pub(super) delays: BTreeMap<String, f64>,
    pub(super) killed: String,
}

/// Runs the chain until the table has all rows.
pub(super) fn run(
    params: &ChainParams,
    rows: u64,
    table: &Path,
    scratch: &Path,
) -> Result<Ran, RigError> {
    let log = |error: dyno_pubsub::Error| RigError::from(FlowError::from(error));
    let mut server = Server::start(scratch, CONNECTIONS, 1)?;
    let dsn = server.dsn();
    let mut connection = Connection::open(&dsn).map_err(log)?;
    connection.install().map_err(log)?;
    let topic = TopicOptions {
        partitions: params.partitions,
        ..TopicOptions::default()
    };
    connection.create_topic(TOPIC, &topic).map_err(log)?;
    drop(connection);

    let mut watch = Watch::start(params, &dsn.text(), table, scratch)?;
    let mut producer = Producer::start(params, &dsn.text(), scratch)?;
    let mut kills = Kills::new(params, rows);
    let mut commit_times = CommitTimes::default();
    let began = Instant::now();
    let (mut there, mut moved_at) = (0, began);
    loop {
        let now_there = commit_times.look(table, params.partitions)?;
        if now_there > there {
            (there, moved_at) = (now_there, Instant::now());
        }
        // Both conditions are needed. The table may have all rows while the producer, started again
        // after a kill, is still sending lines that the log drops as repetitions.
        let sent = producer.look_after()?;
        if there >= rows && sent {
            break;
        }
        watch.look_after()?;
        if moved_at.elapsed() > STILL_MAX {
            let reason = format!("nothing is committed any more at {there} of {rows} rows");
            return Err(failed("the chain", reason));
        }
        if kills.is_next(there) {
            kills.kill_next(&mut watch, &mut producer, &mut server)?;
            // A chain commits nothing while it recovers, so its time without progress starts anew.
            moved_at = Instant::now();
        }
        thread::sleep(LOOK_EVERY);
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(Ran {
        seconds,
        commits: commit_times.commits,
        delays: commit_times.percentiles(&dsn)?,
        killed: kills.as_text(),
    })
}

/// The processes in the order of their turns.
const WATCH: usize = 0;
const PRODUCER: usize = 1;

/// The schedule of kills: at random row counts, each of another process than the last.
struct Kills {
    /// Row counts of the table at which a process is killed, in descending order.
    at_rows: Vec<u64>,
    /// How often each process was killed: the watch, the producer and the server.
    done: [u64; 3],
    turn: usize,
}

impl Kills {
    fn new(params: &ChainParams, rows: u64) -> Kills {
        let mut random = Random::new(params.seed);
        // Never in the last tenth, because nothing would be left to cut off.
        let most = (rows * 9 / 10).max(1);
        let mut at_rows: Vec<u64> = (0..params.kills).map(|_| random.bits() % most).collect();
        at_rows.sort_unstable_by(|a, b| b.cmp(a));
        Kills {
            at_rows,
            done: [0; 3],
            turn: 0,
        }
    }

    fn is_next(&self, there: u64) -> bool {
        self.at_rows.last().is_some_and(|rows| there >= *rows)
    }

    fn kill_next(
        &mut self,
        watch: &mut Watch,
        producer: &mut Producer,
        server: &mut Server,
    ) -> Result<(), RigError> {
        self.take_turn(|process| match process {
            WATCH => watch.kill().map(|()| true),
            PRODUCER => producer.kill(),
            _ => {
                server.crash()?;
                Ok(true)
            }
        })
    }

    /// Lets `kill` end the process whose turn it is, or the watch if it returns false. Only what
    /// was killed is counted.
    fn take_turn(
        &mut self,
        mut kill: impl FnMut(usize) -> Result<bool, RigError>,
    ) -> Result<(), RigError> {
        self.at_rows.pop();
        let mut process = self.turn % self.done.len();
        // A producer that has finished cannot be killed.
        if !kill(process)? {
            process = WATCH;
            kill(process)?;
        }
        self.done[process] += 1;
        self.turn += 1;
        Ok(())
    }

    fn as_text(&self) -> String {
        let [watch, producer, server] = self.done;
        let done = format!("watch {watch}, producer {producer}, server {server} times");
        // The chain may end between two looks at the table, before all kills were due.
        match self.at_rows.len() {
            0 => done,
            late => format!("{done}; {late} kills came too late"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_killed_is_counted_and_what_came_too_late_is_told() {
        let mut kills = Kills {
            at_rows: vec![30, 20, 10],
            done: [0; 3],
            turn: 0,
        };
        let mut asked = Vec::new();
        let mut take_turn = |kills: &mut Kills| {
            let turn = kills.take_turn(|process| {
                asked.push(process);
                Ok(process != PRODUCER)
            });
            turn.expect("a kill");
        };
        take_turn(&mut kills);
        take_turn(&mut kills);
        assert_eq!(
            kills.as_text(),
            "watch 2, producer 0, server 0 times; 1 kills came too late"
        );
        take_turn(&mut kills);
        assert_eq!(kills.as_text(), "watch 2, producer 0, server 1 times");
        assert_eq!(asked, [WATCH, PRODUCER, WATCH, 2]);
    }
}
