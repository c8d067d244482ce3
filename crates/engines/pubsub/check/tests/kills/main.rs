//! Whole runs: real servers, real kills. A few faults here; the slow ones have 50 each.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dyno_pubsub_check::checker::Rule;
use dyno_pubsub_check::nemesis::Fault;
use dyno_pubsub_check::run::{Mode, Options, Outcome, run};

/// A folder that the server's user can enter, with a path short enough for sockets.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dyck-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(&path, open).expect("an open folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failed run's folder stays, for whoever looks for the cause.
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.0).expect("a folder to remove");
        }
    }
}

/// Whether this machine has a server; says so if not.
fn has_server() -> bool {
    match dyno_postgres::Installation::find(None) {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: PostgreSQL: {error}");
            false
        }
    }
}

fn judged(
    name: &str,
    kills: usize,
    change: impl FnOnce(&mut Options),
) -> Option<(Outcome, Folder)> {
    if !has_server() {
        return None;
    }
    let folder = Folder::new(name);
    let program = vec![
        env!("CARGO_BIN_EXE_dyno-pubsub-check").to_owned(),
        "job".to_owned(),
    ];
    let seed = std::env::var("DYNO_CHECK_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut options = Options::new(program, folder.0.clone(), kills, seed);
    options.narrate = true;
    change(&mut options);
    let outcome = run(&options).expect("a judgement");
    println!("{}", serde_json::to_string(&outcome).expect("JSON"));
    for reason in &outcome.left_out {
        println!("skipped: {reason}");
    }
    // Nothing of ours goes on.
    let alive = Command::new("pgrep").arg("-f").arg(&folder.0).output();
    let alive = alive.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into());
    assert_eq!(alive, "", "processes are left");
    Some((outcome, folder))
}

/// What may befall brokers, and those before and behind them.
const AROUND_BROKERS: [Fault; 5] = [
    Fault::CutInCommit,
    Fault::Broker,
    Fault::Server,
    Fault::Producer,
    Fault::Consumer,
];

/// A run that must hold.
fn check(name: &str, kills: usize, change: impl FnOnce(&mut Options)) {
    if let Some((outcome, _folder)) = judged(name, kills, change) {
        assert!(outcome.holds, "seed {}: {outcome:#?}", outcome.seed);
        assert!(outcome.verdict.acknowledged > 0);
    }
}

/// Which commit an armed cut meets is the machine's to say: a run may cut senders alone, and then
/// no cursor is wrong. So seeds are tried until both rules were seen broken.
#[test]
fn clients_that_repeat_without_saying_so_are_found_out() {
    const SEEDS: u64 = 8;
    let wanted = [Rule::NothingTwice, Rule::CursorBehindDelivery];
    let mut broken = BTreeSet::new();
    for further in 0..SEEDS {
        let outcome = judged("careless", 6, |options| {
            options.mode = Mode::Sql;
            options.careless = true;
            options.only = vec![Fault::CutInCommit];
            options.seed += further;
        });
        let Some((outcome, _folder)) = outcome else {
            return;
        };
        assert!(outcome.history.is_some_and(|history| history.exists()));
        broken.extend(outcome.verdict.broken.into_keys());
        if wanted.iter().all(|rule| broken.contains(rule)) {
            return;
        }
    }
    panic!("{SEEDS} seeds broke {broken:?} alone");
}

#[test]
fn clients_that_end_by_themselves_are_judged_and_leave_a_history() {
    let outcome = judged("ended", 1, |options| {
        options.program = ["sh", "-c", "exit 3"].map(str::to_owned).into();
        options.only = vec![Fault::Producer];
    });
    if let Some((outcome, _folder)) = outcome {
        assert!(!outcome.holds && outcome.kills() == 0, "{outcome:#?}");
        let told = |trouble: &String| trouble.contains("ended by itself (exit status: 3)");
        assert!(outcome.troubles.iter().any(told), "{outcome:#?}");
        assert!(outcome.history.is_some_and(|history| history.exists()));
    }
}

#[test]
#[ignore = "about two minutes of kills"]
fn sql_clients_survive_fifty_faults() {
    check("sql50", 50, |options| options.mode = Mode::Sql);
}

#[test]
fn a_queue_survives_a_few_faults() {
    check("queue", 5, |options| {
        options.mode = Mode::Queue;
        options.only = vec![
            Fault::CutInCommit,
            Fault::Server,
            Fault::Consumer,
            Fault::Stall,
        ];
    });
}

#[test]
#[ignore = "about two minutes of kills"]
fn a_queue_survives_fifty_faults() {
    check("queue50", 50, |options| options.mode = Mode::Queue);
}

#[test]
fn the_library_survives_a_few_faults() {
    check("lib", 6, |options| {
        options.only = vec![
            Fault::CutInCommit,
            Fault::Cut,
            Fault::Server,
            Fault::Producer,
            Fault::Consumer,
            Fault::Stall,
        ];
    });
}

#[test]
#[ignore = "about two minutes of kills"]
fn the_library_survives_fifty_faults() {
    check("lib50", 50, |_| {});
}

#[test]
fn brokers_survive_a_few_faults() {
    check("broker", 5, |options| {
        options.mode = Mode::Broker;
        options.only = AROUND_BROKERS.to_vec();
    });
}

#[test]
fn a_dead_broker_is_taken_over_and_lost_answers_of_brokers_do_no_harm() {
    let outcome = judged("over", 8, |options| {
        options.mode = Mode::Broker;
        options.only = vec![Fault::Broker, Fault::Cut, Fault::CutInCommit];
    });
    if let Some((outcome, _folder)) = outcome {
        assert!(outcome.holds, "seed {}: {outcome:#?}", outcome.seed);
        // Four partitions had a first broker each; what is more changed hands.
        assert!(outcome.lease_changes > 4, "{outcome:#?}");
        assert!(outcome.cut_at_brokers > 0, "{outcome:#?}");
    }
}

#[test]
#[ignore = "about a minute of takeovers"]
fn brokers_over_two_nodes_lose_nothing_when_the_primary_is_killed() {
    check("brokers2", 10, |options| {
        options.mode = Mode::Broker;
        options.nodes = 2;
        options.only = vec![
            Fault::Primary,
            Fault::Broker,
            Fault::CutInCommit,
            Fault::Cut,
        ];
    });
}

#[test]
#[ignore = "about two minutes of kills"]
fn brokers_survive_fifty_faults() {
    check("broker50", 50, |options| options.mode = Mode::Broker);
}

/// The interpreter that `scripts/test` makes for clients of Kafka.
fn kafka_python() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let python = data
        .or_else(home)?
        .join("dynolab/peers/kafka-clients/venv/bin/python");
    if !python.exists() {
        println!(
            "skipped: clients of Kafka: {} is not there",
            python.display()
        );
        return None;
    }
    Some(python)
}

/// A run of clients of Kafka that must hold, where they can be had.
fn check_kafka(name: &str, kills: usize, only: &[Fault]) {
    if let Some(python) = kafka_python() {
        check(name, kills, |options| {
            options.mode = Mode::Kafka;
            options.python = python;
            options.only = only.to_vec();
        });
    }
}

#[test]
fn clients_of_kafka_survive_a_few_faults() {
    check_kafka("kafka", 6, &AROUND_BROKERS);
}

#[test]
#[ignore = "about four minutes of kills"]
fn clients_of_kafka_survive_two_hundred_faults() {
    check_kafka("kafka200", 200, &[]);
}

#[test]
#[ignore = "about a minute of takeovers"]
fn two_nodes_lose_nothing_when_the_primary_is_killed() {
    check("two", 6, |options| {
        options.nodes = 2;
        options.only = vec![Fault::Primary, Fault::CutInCommit];
    });
}

#[test]
#[ignore = "about two minutes of takeovers"]
fn three_nodes_survive_twenty_faults() {
    check("three", 20, |options| options.nodes = 3);
}

#[test]
fn sql_clients_survive_a_few_faults() {
    check("sql", 5, |options| {
        options.mode = Mode::Sql;
        options.only = vec![
            Fault::CutInCommit,
            Fault::Backend,
            Fault::Server,
            Fault::Producer,
            Fault::Consumer,
        ];
    });
}

#[test]
#[ignore = "a soak of two minutes"]
fn a_short_soak_breaks_no_rule() {
    check("soak", 0, |options| {
        options.soak = Some(Duration::from_secs(120));
        options.snapshot = false;
    });
}
