//! What stays in the directory, and who gets in.

mod scene;

use std::time::Duration;

use dyno_txn_api::{
    Code, Database, Key, Operation, Options, Request, Retry, TableDef, Target, Transact,
};
use dyno_txn_node::{Durability, Local, OpenOptions, ServeOptions, open, restore, serve};

fn options() -> OpenOptions {
    OpenOptions {
        segment_bytes: 4 << 20,
        ..scene::options()
    }
}

fn put(db: &dyn Database, name: &str, from: u64, to: u64) {
    let table = db.create_table(&TableDef::hash(name, 0)).expect("a table");
    for number in from..to {
        let put = |key: u64| Operation::put(Key::new(table, key.to_be_bytes()), number.to_string());
        // Two keys: with several partitions they lie apart now and then.
        db.one_shot(vec![put(number), put(number + 1_000_000)])
            .expect("it commits");
    }
}

fn count(db: &dyn Database, name: &str) -> u64 {
    scene::count(db, name).expect("the table is there")
}

#[test]
fn a_restart_keeps_everything_with_and_without_checkpoints() {
    for (partitions, checkpoint_bytes) in [(1, 1 << 30), (3, 64 << 10)] {
        let at = tempfile::tempdir().expect("a directory");
        let target = Target::Local(at.path().join("db"));
        let partitions = Some(partitions);
        let options = || OpenOptions {
            partitions,
            checkpoint_bytes,
            ..options()
        };
        for round in 0..3 {
            let db = open(&target, options()).expect("it opens");
            if round > 0 {
                assert_eq!(count(&*db, "t"), 400 * round, "round {round}");
            }
            put(&*db, "t", round * 200, round * 200 + 200);
        }
    }
}

#[test]
fn checkpoints_happen_and_the_log_is_used_again() {
    let at = tempfile::tempdir().expect("a directory");
    let path = at.path().join("db");
    // Without checkpoints 64 segments of 256 KiB would be full before the end.
    let options = || OpenOptions {
        segment_bytes: 256 << 10,
        checkpoint_bytes: 512 << 10,
        ..options()
    };
    let local = Local::open(&path, options()).expect("it opens");
    let db = local.database();
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    // A disk that others use may take its time.
    let patient = Options {
        deadline: Duration::from_secs(60),
        ..Options::default()
    };
    let mut pipeline = db.pipeline(64, &patient).expect("a pipeline");
    for number in 0..8000u64 {
        let key = Key::new(table, (number % 50).to_be_bytes());
        let value = [number.to_be_bytes().as_slice(), &[7; 3000]].concat();
        let request = Request::Operations(vec![Operation::put(key, value)]);
        pipeline.submit(number, request).expect("it is taken");
    }
    while pipeline.outstanding() > 0 {
        let (_, result) = pipeline
            .next(Duration::from_secs(70))
            .expect("it is answered");
        result.expect("it commits");
    }
    drop(pipeline);
    let stats = db.stats().expect("figures");
    let figure = |name: &str| stats.iter().find(|(n, _)| n == name).expect("a figure").1;
    assert!(figure("checkpoints") > 0, "{stats:?}");
    assert_eq!(figure("checkpoint_failures"), 0);
    drop(local);
    let db = open(&Target::Local(path), options()).expect("it opens");
    let newest = db
        .transact(|t| t.get(table, &49u64.to_be_bytes()))
        .expect("it reads");
    assert_eq!(newest.expect("a row")[..8], 7999u64.to_be_bytes());
}

#[test]
fn a_log_that_is_full_in_the_middle_of_a_record_is_read_again() {
    // Which piece of a record finds the log full depends on the length. With each of these a
    // segment ends within a record more often than between two.
    for length in [120 << 10, 160 << 10, 180 << 10] {
        let at = tempfile::tempdir().expect("a directory");
        let target = Target::Local(at.path().join("db"));
        // Only a full log is checkpointed: it has 64 segments, and the puts fill it once.
        let options = || OpenOptions {
            partitions: Some(1),
            segment_bytes: 256 << 10,
            checkpoint_bytes: 1 << 30,
            ..options()
        };
        let db = open(&target, options()).expect("it opens");
        let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
        for number in 0..140u8 {
            let key = Key::new(table, [number % 10]);
            let put = Operation::put(key, vec![number; length]);
            db.one_shot(vec![put]).expect("it commits");
        }
        drop(db);
        let db = open(&target, options()).expect("it opens again");
        for key in 0..10u8 {
            let found = db.transact(|t| t.get(table, &[key])).expect("it reads");
            assert!(found == Some(vec![130 + key; length]), "{length} bytes");
        }
    }
}

#[test]
fn a_backup_is_of_one_moment_and_can_be_opened_and_restored() {
    let at = tempfile::tempdir().expect("a directory");
    let (path, copy, again) = (
        at.path().join("db"),
        at.path().join("copy"),
        at.path().join("again"),
    );
    let options = || OpenOptions {
        partitions: Some(2),
        ..options()
    };
    let local = Local::open(&path, options()).expect("it opens");
    put(local.database(), "t", 0, 100);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| put(local.database(), "t", 100, 300));
        local.backup(&copy).expect("it is copied");
        busy.join().expect("no panic");
    });
    assert_eq!(
        local.backup(&copy).expect_err("taken").kind(),
        Code::BadArgument
    );
    assert_eq!(count(local.database(), "t"), 600);
    drop(local);
    restore(&copy, &again).expect("it is restored");
    let mut counts = Vec::new();
    for path in [copy, again] {
        let db = open(&Target::Local(path), options()).expect("it opens");
        counts.push(count(&*db, "t"));
    }
    // Each transaction wrote two rows: half of one would be an odd number.
    assert!(
        (200..=600).contains(&counts[0]) && counts[0].is_multiple_of(2),
        "{counts:?}"
    );
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn the_memory_bound_refuses_writes_and_lets_reads_and_deletes_go_on() {
    let at = tempfile::tempdir().expect("a directory");
    let options = OpenOptions {
        durability: Durability::Memory,
        memory_bytes: 2 << 20,
        retention: Duration::from_millis(1),
        ..options()
    };
    let db = open(&Target::Local(at.path().join("db")), options).expect("it opens");
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    let put = |number: u64| {
        let operation = Operation::put(Key::new(table, number.to_be_bytes()), [1; 4000]);
        let request = Request::Operations(vec![operation]);
        db.execute(request, &Options::default())
    };
    let refused = (0..10_000)
        .find_map(|number| put(number).err())
        .expect("the bound is met");
    assert_eq!(
        (refused.kind(), refused.retry()),
        (Code::MemoryFull, Retry::Safe)
    );
    assert!(
        db.transact(|t| t.get(table, &0u64.to_be_bytes()))
            .expect("reads")
            .is_some()
    );
    db.transact(|t| t.delete(table, &0u64.to_be_bytes()))
        .expect("deletes");
}

#[test]
fn the_directory_and_its_numbers_are_guarded() {
    let at = tempfile::tempdir().expect("a directory");
    let target = Target::Local(at.path().join("db"));
    let first = open(&target, options()).expect("it opens");
    let taken = open(&target, options()).map(drop).expect_err("two engines");
    assert_eq!(taken.kind(), Code::Unavailable);
    drop(first);
    let other = OpenOptions {
        partitions: Some(5),
        ..options()
    };
    assert_eq!(
        open(&target, other).map(drop).expect_err("5").kind(),
        Code::BadArgument
    );
    let memory = OpenOptions {
        durability: Durability::Memory,
        ..options()
    };
    assert_eq!(
        open(&target, memory).map(drop).expect_err("memory").kind(),
        Code::BadArgument
    );
}

#[test]
fn a_wrong_token_is_refused_and_so_is_an_unguarded_address() {
    let at = tempfile::tempdir().expect("a directory");
    let token = Some("a-secret-of-the-server".to_owned());
    let mut server = ServeOptions::new(at.path().join("db"), "0.0.0.0:0");
    server.engine = options();
    let unguarded = serve(server.clone()).map(drop).expect_err("no token");
    assert_eq!(unguarded.kind(), Code::Denied);
    server.listen = "127.0.0.1:0".to_owned();
    server.token = token.clone();
    server.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let server = serve(server).expect("it serves");
    let target = Target::Dyno(vec![server.address().to_owned()]);
    for wrong in [None, Some("a-secret-of-another-one".to_owned())] {
        let refused = open(
            &target,
            OpenOptions {
                token: wrong,
                ..options()
            },
        );
        assert_eq!(refused.map(drop).expect_err("refused").kind(), Code::Denied);
    }
    let db = open(&target, OpenOptions { token, ..options() }).expect("it opens");
    put(&*db, "t", 0, 3);
    let stats = db.stats().expect("figures");
    assert!(
        stats.iter().any(|(name, _)| name == "committed_inline"),
        "{stats:?}"
    );
    assert!(server.metrics().is_some());
}

#[test]
fn an_unknown_role_or_durability_is_refused_with_a_sentence() {
    let role: Result<dyno_txn_node::Role, _> = "everything".parse();
    assert_eq!(role.expect_err("no role").kind(), Code::BadArgument);
    let durability: Result<Durability, _> = "paper".parse();
    assert_eq!(
        durability.expect_err("no durability").kind(),
        Code::BadArgument
    );
    let at = tempfile::tempdir().expect("a directory");
    let refused = |options: OpenOptions| {
        let opened = open(&Target::Local(at.path().join("db")), options);
        opened.map(drop).expect_err("refused").kind()
    };
    let nowhere = OpenOptions {
        durability: Durability::RemoteMemory,
        ..options()
    };
    assert_eq!(refused(nowhere), Code::BadArgument);
}

#[test]
fn a_directory_is_opened_with_other_segments_than_it_was_made_with() {
    for (first, then) in [(1 << 20, 64 << 20), (64 << 20, 1 << 20)] {
        let at = tempfile::tempdir().expect("a directory");
        let target = Target::Local(at.path().join("db"));
        for (round, segment_bytes) in [first, then, first].into_iter().enumerate() {
            let options = OpenOptions {
                segment_bytes,
                ..options()
            };
            let db = open(&target, options).expect("it opens");
            let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
            // Longer than the shorter buffers.
            let long = vec![round as u8; 700 << 10];
            let key = (round as u64).to_be_bytes();
            db.one_shot(vec![Operation::put(Key::new(table, key), long)])
                .expect("it commits");
            for before in 0..=round as u64 {
                let found = db.transact(|t| t.get(table, &before.to_be_bytes()));
                let found = found.expect("it reads").expect("it is there");
                assert_eq!((found.len(), found[0]), (700 << 10, before as u8));
            }
        }
    }
}
