//! Backups that clients ask a server for.

mod scene;

use dyno_txn_api::{Code, Database, TableDef, Target, Transact};
use dyno_txn_node::{OpenOptions, ServeOptions, backup, open, restore, serve};

fn options() -> OpenOptions {
    OpenOptions {
        segment_bytes: 4 << 20,
        ..scene::options()
    }
}

fn sum(db: &dyn Database) -> u64 {
    let table = db.table("t").expect("it is there").id;
    let read = db.transact(|t| t.get_many(&[(table, b"a"), (table, b"b")]));
    let rows = read.expect("it reads");
    rows.iter().flatten().map(|value| u64::from(value[0])).sum()
}

#[test]
fn a_server_copies_itself_by_name_while_it_runs_and_the_copy_is_whole() {
    let at = tempfile::tempdir().expect("a folder");
    let copies = at.path().join("copies");
    let server = serve(ServeOptions {
        engine: OpenOptions {
            cores: vec![0, 0],
            partitions: Some(3),
            ..options()
        },
        backups: Some(copies.clone()),
        ..ServeOptions::new(at.path().join("db"), "127.0.0.1:0")
    });
    let server = server.expect("it serves");
    let target = Target::Dyno(vec![server.address().to_owned()]);
    let db = open(&target, options()).expect("it connects");
    let table = db.create_table(&TableDef::hash("t", 0)).expect("a table");
    let write = |a: u8| {
        db.transact(|t| {
            t.put(table, b"a", &[a])?;
            t.put(table, b"b", &[100 - a])
        })
    };
    write(1).expect("it commits");
    let made = std::thread::scope(|scope| {
        let copying = scope.spawn(|| backup(&target, options(), "monday"));
        let mut a = 1;
        // Whatever moment the copy is of, the two keys belong together.
        while !copying.is_finished() {
            a = a % 99 + 1;
            write(a).expect("it commits");
        }
        copying.join().expect("no panic")
    });
    assert_eq!(made, Ok(()));
    let taken = backup(&target, options(), "monday").expect_err("taken");
    assert_eq!(taken.kind(), Code::BadArgument);
    for path in ["/etc/monday", "../monday", ".monday", ""] {
        let refused = backup(&target, options(), path).expect_err(path);
        assert_eq!(refused.kind(), Code::BadArgument, "{path}");
    }
    drop(db);
    server.stop().expect("it stops");
    let restored = at.path().join("restored");
    restore(&copies.join("monday"), &restored).expect("it is whole");
    let db = open(&Target::Local(restored), options()).expect("it opens");
    assert_eq!(sum(&*db), 100);
}

#[test]
fn who_was_given_no_folder_makes_none() {
    let at = tempfile::tempdir().expect("a folder");
    let server = serve(ServeOptions {
        engine: options(),
        ..ServeOptions::new(at.path().join("db"), "127.0.0.1:0")
    });
    let server = server.expect("it serves");
    let target = Target::Dyno(vec![server.address().to_owned()]);
    let refused = backup(&target, options(), "monday").expect_err("no folder");
    assert_eq!(refused.kind(), Code::NotSupported);
    let elsewhere = Target::Etcd(vec!["127.0.0.1:1".to_owned()]);
    let refused = backup(&elsewhere, options(), "monday").expect_err("another engine");
    assert_eq!(refused.kind(), Code::NotSupported);
}
