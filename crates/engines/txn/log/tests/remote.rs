//! The log in the memory of other processes, over a network with every fault.

use dyno_sim::{Delay, Event, Link, NodeId, Settings, Storm, World};
use dyno_txn_log::{
    Answer, LogError, Lsn, PersistError, PersistStore, Read, RemoteLog, RemoteOptions, Request,
    recovered_end,
};

const LOG: u64 = 5;

fn options(epoch: u64, needed: usize) -> RemoteOptions {
    RemoteOptions {
        log: LOG,
        epoch,
        stores: 3,
        needed,
        window_bytes: 4_096,
        message_bytes: 512,
    }
}

/// The records that a store has from position 0 on.
fn kept(store: &PersistStore) -> Vec<Vec<u8>> {
    let all = Read::Bytes {
        from: Lsn(0),
        most_bytes: 1 << 20,
    };
    let bytes = store.read(LOG, all).expect("all of it");
    let records = RemoteLog::records(LOG, Lsn(0), &bytes).expect("sound");
    records
        .into_iter()
        .map(|(_, record)| record.to_vec())
        .collect()
}

const CUTS: Storm = Storm {
    until_ns: 20_000_000,
    crash_every_ns: 0,
    down_ns: 0,
    cut_every_ns: 900_000,
    cut_ns: 900_000,
    spare_from: 0,
};

type Net = World<Result<Request, Result<Answer, PersistError>>, ()>;

/// A writer appends while the network loses, repeats, reorders and parts. Returns what was called
/// durable.
fn run(seed: u64, needed: usize) -> (Vec<Vec<u8>>, Vec<PersistStore>, u64) {
    let mut settings = Settings::calm(seed);
    settings.link = Link {
        delay: Delay::uniform(1_000, 40_000).with_tail(30, 400_000),
        loss_per_million: 50_000,
        duplicate_per_million: 100_000,
        ordered: false,
    };
    let mut world = Net::new(settings);
    let writer = world.add_node("writer");
    let nodes: Vec<NodeId> = (0..3)
        .map(|n| world.add_node(&format!("store {n}")))
        .collect();
    let mut stores: Vec<PersistStore> = (0..3).map(|_| PersistStore::new(1 << 20, 4)).collect();
    for store in &mut stores {
        store
            .handle(Request::Open { log: LOG, epoch: 1 })
            .expect("new");
    }
    world.set_storm(CUTS);
    let mut log = RemoteLog::new(options(1, needed), Lsn(0)).expect("sound");
    (0..3).for_each(|store| assert!(log.connected(store, Lsn(0))));
    let (mut appended, mut ends) = (Vec::new(), Vec::new());
    world.set_timer(writer, 10_000, ());
    while let Some(event) = world.next_until(40_000_000) {
        match event {
            Event::Timer { .. } => {
                let record = vec![appended.len() as u8; appended.len() % 90];
                match log.append(&record) {
                    Ok(end) => {
                        appended.push(record);
                        ends.push(end);
                    }
                    Err(error) => assert!(error.is_passing(), "{error}"),
                }
                for (store, &node) in nodes.iter().enumerate() {
                    reconnect(&mut world, &mut log, &mut stores[store], store);
                    send(&mut world, &mut log, writer, node, store);
                }
                world.set_timer(writer, 20_000, ());
            }
            Event::Message {
                to,
                message: Ok(request),
                ..
            } => {
                let answer = stores[to.index() - 1].handle(request);
                world.send(to, writer, Err(answer));
            }
            Event::Message {
                from,
                message: Err(answer),
                ..
            } => match answer {
                Ok(Answer::Kept { end }) => log.acknowledged(from.index() - 1, end),
                Ok(_) => {}
                Err(error) => log.refused(from.index() - 1, &error),
            },
            Event::Crash { .. } | Event::Start { .. } => {}
        }
    }
    let durable = ends.iter().filter(|&&end| end <= log.durable()).count();
    appended.truncate(durable);
    let hash = world.trace().hash();
    (appended, stores, hash)
}

/// Who hears nothing sends again; a new connection begins where the store says that it is.
fn reconnect(world: &mut Net, log: &mut RemoteLog, kept: &mut PersistStore, store: usize) {
    if world.random().one_in(20) {
        log.disconnected(store);
    }
    if world.random().one_in(10) {
        let asked = kept.handle(Request::Append {
            log: LOG,
            epoch: 1,
            at: Lsn(0),
            bytes: Vec::new(),
        });
        if let Ok(Answer::Kept { end }) = asked {
            log.connected(store, end);
        }
    }
}

fn send(world: &mut Net, log: &mut RemoteLog, writer: NodeId, node: NodeId, store: usize) {
    while let Some(outgoing) = log.outgoing(store) {
        let request = Request::Append {
            log: LOG,
            epoch: 1,
            at: outgoing.at,
            bytes: outgoing.bytes.to_vec(),
        };
        world.send(writer, node, Ok(request));
    }
}

#[test]
fn what_is_durable_is_in_as_many_stores_as_are_needed() {
    let mut durable_in_all = 0;
    for seed in 0..40 {
        let needed = 1 + seed as usize % 3;
        let (durable, stores, _) = run(seed, needed);
        let has = |store: &&PersistStore| kept(store).starts_with(&durable);
        let holders = stores.iter().filter(has).count();
        assert!(holders >= needed, "seed {seed}: {holders} of {needed}");
        durable_in_all += durable.len();
    }
    assert!(durable_in_all > 1_000, "{durable_in_all}");
    assert_eq!(run(7, 2).2, run(7, 2).2);
}

#[test]
fn a_later_writer_fences_the_earlier_and_reads_all_that_is_durable() {
    let (durable, mut stores, _) = run(3, 2);
    let mut opened = Vec::new();
    for store in &mut stores {
        match store.handle(Request::Open { log: LOG, epoch: 2 }) {
            Ok(Answer::Opened {
                written_epoch, end, ..
            }) => opened.push(Some((written_epoch, end))),
            other => panic!("{other:?}"),
        }
    }
    for silent in 0..3 {
        let mut answers = opened.clone();
        answers[silent] = None;
        let best = recovered_end(&answers, 2).expect("two of three are enough");
        assert!(kept(&stores[best]).starts_with(&durable));
    }
    assert_eq!(recovered_end(&[opened[0], None, None], 2), None);
    let late = Request::Append {
        log: LOG,
        epoch: 1,
        at: Lsn(0),
        bytes: vec![1],
    };
    let fenced = stores[0].handle(late).expect_err("fenced");
    let mut log = RemoteLog::new(options(1, 2), Lsn(0)).expect("sound");
    log.refused(0, &fenced);
    assert!(matches!(
        log.append(b"more"),
        Err(LogError::Poisoned { .. })
    ));
}

#[test]
fn a_store_has_bounds_and_checkpoints_make_room() {
    let mut store = PersistStore::new(140, 1);
    let (log, epoch) = (LOG, 1);
    store.handle(Request::Open { log, epoch }).expect("room");
    let second = store.handle(Request::Open { log: 6, epoch });
    assert!(matches!(second, Err(PersistError::Unknown { log: 6 })));
    let append = |store: &mut PersistStore, at: u64, len: usize| {
        store.handle(Request::Append {
            log,
            epoch,
            at: Lsn(at),
            bytes: vec![1; len],
        })
    };
    append(&mut store, 0, 60).expect("room");
    append(&mut store, 0, 60).expect("known already");
    assert!(matches!(
        append(&mut store, 70, 1),
        Err(PersistError::Gap { .. })
    ));
    assert!(matches!(
        append(&mut store, 60, 90),
        Err(PersistError::Full { .. })
    ));
    let chunk = Request::Chunk {
        log,
        epoch,
        number: 1,
        bytes: vec![2; 10],
    };
    store.handle(chunk).expect("room");
    let install = |chunks| Request::Install {
        log,
        epoch,
        number: 1,
        chunks,
        first_needed: Lsn(60),
    };
    store.handle(install(2)).expect_err("a chunk is missing");
    store.handle(install(1)).expect("whole");
    assert_eq!(store.used_bytes(), 10 + 64, "bytes, and what a chunk costs");
    append(&mut store, 60, 60).expect("room again");
    let gone = store.read(
        log,
        Read::Bytes {
            from: Lsn(0),
            most_bytes: 10,
        },
    );
    assert!(matches!(gone, Err(PersistError::NotKept { .. })));
    store
        .handle(Request::Cut {
            log,
            epoch,
            end: Lsn(90),
        })
        .expect("there");
    assert_eq!(store.used_bytes(), 40 + 64);
    store
        .handle(Request::Reset {
            log,
            epoch,
            at: Lsn(200),
        })
        .expect("ours");
    assert_eq!(store.used_bytes(), 0);
}

#[test]
fn a_store_that_lags_does_not_hold_up_the_others() {
    let mut log = RemoteLog::new(options(1, 2), Lsn(0)).expect("sound");
    (0..3).for_each(|store| assert!(log.connected(store, Lsn(0))));
    for _ in 0..100 {
        let end = log.append(&[1; 400]).expect("two stores keep up");
        for store in 0..2 {
            while log.outgoing(store).is_some() {}
            log.acknowledged(store, end);
        }
        assert_eq!(log.durable(), end);
    }
    assert_eq!(log.behind().collect::<Vec<_>>(), [2]);
    assert!(!log.connected(2, Lsn(0)), "what it lacks is gone");
    assert!(log.connected(2, log.end()));
    // Now nobody confirms.
    let busy = loop {
        if let Err(error) = log.append(&[1; 400]) {
            break error;
        }
    };
    assert!(matches!(busy, LogError::Busy { .. }), "{busy}");
}

/// What a store says to a new writer.
fn written_epoch(store: &mut PersistStore, epoch: u64) -> u64 {
    match store.handle(Request::Open { log: LOG, epoch }) {
        Ok(Answer::Opened { written_epoch, .. }) => written_epoch,
        unexpected => panic!("{unexpected:?}"),
    }
}

#[test]
fn a_store_that_was_reset_counts_only_with_its_checkpoint() {
    let (log, epoch) = (LOG, 1);
    let mut store = PersistStore::new(1 << 20, 1);
    let mut sender = RemoteLog::new(
        RemoteOptions {
            stores: 1,
            ..options(1, 1)
        },
        Lsn(0),
    )
    .expect("sound");
    sender.append(b"before").expect("room");
    store.handle(Request::Open { log, epoch }).expect("room");
    let at = sender.join(0);
    store
        .handle(Request::Reset { log, epoch, at })
        .expect("ours");
    let end = sender.append(b"behind").expect("room");
    let bytes = sender
        .outgoing(0)
        .expect("what follows the checkpoint")
        .bytes
        .to_vec();
    let append = Request::Append {
        log,
        epoch,
        at,
        bytes,
    };
    assert_eq!(store.handle(append), Ok(Answer::Kept { end }));
    sender.acknowledged(0, end);
    assert!(sender.durable() < at, "there is no checkpoint yet");

    let epoch = 2;
    assert_eq!(written_epoch(&mut store, epoch), 0);
    let number = 1;
    let chunk = Request::Chunk {
        log,
        epoch,
        number,
        bytes: b"rows".to_vec(),
    };
    store.handle(chunk).expect("room");
    let install = Request::Install {
        log,
        epoch,
        number,
        chunks: 1,
        first_needed: at,
    };
    store.handle(install).expect("whole");
    sender.joined(0, end);
    assert_eq!(sender.durable(), end);
    assert_eq!(written_epoch(&mut store, 3), epoch);
    let far = Request::Reset {
        log,
        epoch: 3,
        at: Lsn(u64::MAX),
    };
    assert!(matches!(
        store.handle(far),
        Err(PersistError::NotKept { .. })
    ));
}
