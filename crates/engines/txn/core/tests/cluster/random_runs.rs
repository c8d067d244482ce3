//! Random transactions of several clients on several partitions, with messages in any order, lost
//! and repeated, and partitions that crash: what clients saw must be serializable in the order of
//! timestamps.

use dyno_txn_api::{Key, Operation, Request, Scan, TableDef, TableId, Timestamp};
use dyno_txn_core::message::{Address, Message};

use crate::client::{Client, End, State, procedures};
use crate::cluster::{Cluster, Faults};
use crate::judge::judge;

const TABLES: [TableId; 2] = [TableId(1), TableId(2)];

pub struct Run {
    pub partitions: u32,
    pub clients: u64,
    pub transactions: usize,
    pub log: bool,
    pub faults: Faults,
    #[cfg(feature = "planted-bugs")]
    pub planted: dyno_txn_core::planted::Planted,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            partitions: 3,
            clients: 5,
            transactions: 150,
            log: true,
            faults: Faults::default(),
            #[cfg(feature = "planted-bugs")]
            planted: Default::default(),
        }
    }
}

/// One message, and what its receiver says to it.
pub fn ask(cluster: &mut Cluster, to: u32, message: Message) -> Message {
    const ASKER: u64 = 999_999;
    cluster.arrived.clear();
    cluster.send(Address::Client(ASKER), Address::Partition(to), message);
    for _ in 0..200_000 {
        cluster.step();
        while let Some((id, _, message)) = cluster.arrived.pop_front() {
            if id == ASKER {
                return message;
            }
        }
    }
    panic!("no answer came");
}

/// Runs it and judges it: how many transactions counted, how many were committed, or what is wrong.
pub fn run(seed: u64, run: &Run) -> Result<(usize, usize, u32), String> {
    let mut cluster = Cluster::new(seed, run.partitions, run.log, procedures(TABLES));
    #[cfg(feature = "planted-bugs")]
    cluster.plant(run.planted);
    let splits = vec![vec![4], vec![7]];
    for (ticket, def) in [TableDef::hash("kv", 0), TableDef::range("seq", splits)]
        .into_iter()
        .enumerate()
    {
        let made = ask(
            &mut cluster,
            0,
            Message::CreateTable {
                ticket: ticket as u64,
                def,
            },
        );
        assert!(
            matches!(made, Message::Created { result: Ok(_), .. }),
            "{made:?}"
        );
    }
    let schema = cluster.server(0).schema().clone();
    cluster.faults = run.faults;
    let mut clients: Vec<Client> = (1..=run.clients).map(Client::new).collect();
    let mut heard: Timestamp = 0;
    let mut begun = 0;
    for _ in 0..2_000_000 {
        for client in &mut clients {
            if client.idle() && begun < run.transactions && cluster.random.one_in(8) {
                begun += 1;
                client.begin(&mut cluster, &schema, TABLES, heard);
            }
            client.tick(&mut cluster);
            heard = heard.max(client.history.last().map_or(0, newest));
        }
        cluster.step();
        while let Some((id, from, message)) = cluster.arrived.pop_front() {
            if let Some(client) = clients.get_mut(id as usize - 1) {
                client.hear(&mut cluster, &schema, from, message);
            }
        }
        if begun == run.transactions && clients.iter().all(Client::idle) {
            break;
        }
    }
    assert!(
        clients.iter().all(Client::idle),
        "seed {seed}: somebody still waits"
    );
    cluster.settle();
    let state = end_of(&mut cluster);
    let crashes = cluster.crashes;
    let history: Vec<_> = clients
        .into_iter()
        .flat_map(|client| client.history)
        .collect();
    let committed = history.iter().filter(|t| t.end == End::Committed).count();
    let counted = judge(history, &state).map_err(|wrong| format!("seed {seed}: {wrong}"))?;
    Ok((counted, committed, crashes))
}

fn newest(transaction: &crate::client::Transaction) -> Timestamp {
    match transaction.end {
        End::Committed => transaction.timestamp.unwrap_or(0),
        _ => 0,
    }
}

fn end_of(cluster: &mut Cluster) -> State {
    let all = TABLES
        .map(|table| Operation::Scan(Scan::all(table)))
        .to_vec();
    let one_shot = Message::OneShot {
        ticket: 1,
        timestamp: None,
        priority: 128,
        deadline_ns: u64::MAX,
        request: Request::Operations(all),
    };
    let Message::Done {
        result: Ok(done), ..
    } = ask(cluster, 0, one_shot)
    else {
        panic!("the last scan failed");
    };
    let pages = done
        .answers
        .into_iter()
        .map(|answer| answer.page().expect("a scan's"));
    let rows = TABLES.into_iter().zip(pages).flat_map(|(table, page)| {
        page.rows
            .into_iter()
            .map(move |row| (Key::new(table, row.key), row.value))
    });
    rows.map(|(key, value)| ((key.table, key.bytes), value))
        .collect()
}

fn seeds(from: u64, count: u64, settings: &Run) {
    let (mut committed, mut crashes) = (0, 0);
    for seed in from..from + count {
        match run(seed, settings) {
            Ok((_, ended, crashed)) => {
                committed += ended;
                crashes += crashed;
            }
            Err(wrong) => panic!("{wrong}"),
        }
    }
    println!("{count} seeds: {committed} transactions committed, {crashes} crashes");
    assert!(
        committed as u64 > count * 20,
        "too little was committed to prove anything"
    );
    assert_eq!(settings.faults.crash > 0, crashes > 0);
}

#[test]
fn messages_in_any_order() {
    seeds(
        1,
        25,
        &Run {
            log: false,
            ..Run::default()
        },
    );
}

#[test]
fn one_partition_alone() {
    seeds(
        100,
        10,
        &Run {
            partitions: 1,
            ..Run::default()
        },
    );
}

#[test]
fn logged_and_released_late() {
    seeds(200, 15, &Run::default());
}

#[test]
fn messages_lost_and_repeated() {
    let faults = Faults {
        lose: 50,
        repeat: 10,
        crash: 0,
    };
    seeds(
        300,
        25,
        &Run {
            faults,
            ..Run::default()
        },
    );
}

#[test]
fn partitions_crash() {
    let faults = Faults {
        lose: 100,
        repeat: 20,
        crash: 400,
    };
    seeds(
        400,
        40,
        &Run {
            faults,
            ..Run::default()
        },
    );
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_caught() {
    use dyno_txn_core::planted::{Bug, Planted};
    let faults = Faults {
        lose: 100,
        repeat: 20,
        crash: 300,
    };
    for bug in [Bug::ReadCache, Bug::Push, Bug::Recovery, Bug::Finalize] {
        let settings = Run {
            faults,
            planted: Planted::one(bug),
            ..Run::default()
        };
        let caught = (1..200).find(|&seed| run(seed, &settings).is_err());
        // The same seed without the bug must be found right, or something else was caught.
        let sound = Run {
            faults,
            ..Run::default()
        };
        if let Some(seed) = caught {
            assert_eq!(run(seed, &sound).map(drop), Ok(()));
        }
        println!("{bug:?}: caught by seed {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}
