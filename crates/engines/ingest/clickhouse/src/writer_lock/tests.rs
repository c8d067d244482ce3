#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::*;
use crate::fake_server::{Reply, patience, start};

#[test]
fn a_process_is_gone_only_when_that_is_certain() {
    let me = Process::this().expect("a process");
    assert_eq!(Process::parse(&me.text()), Some(me.clone()));
    assert!(!me.is_gone(&me));
    let later = Process {
        started: me.started + 1,
        ..me.clone()
    };
    assert!(later.is_gone(&me), "another process had the number");
    let elsewhere = Process {
        host: "elsewhere".to_owned(),
        pid: 0,
        ..me.clone()
    };
    assert!(!elsewhere.is_gone(&me));
}

/// A process of `machine` that lived in another boot than this one.
fn before(machine: &str) -> Process {
    Process {
        boot: "another".to_owned(),
        machine: machine.to_owned(),
        ..Process::this().unwrap()
    }
}

#[test]
fn a_process_of_another_boot_is_gone_only_when_the_machine_is_the_same() {
    let here = |machine: &str| Process {
        machine: machine.to_owned(),
        ..Process::this().unwrap()
    };
    assert!(before("a").is_gone(&here("a")), "it was started again");
    for (theirs, mine) in [("b", "a"), ("", "a"), ("a", ""), ("", "")] {
        let found = Process::parse(&before(theirs).text()).unwrap();
        assert_eq!(found.machine, theirs);
        assert!(!found.is_gone(&here(mine)), "{theirs:?} {mine:?}");
    }
}

#[test]
fn a_lock_of_an_earlier_version_is_of_an_unknown_machine() {
    let text = "7 on pi (b pid:[4026531836] 12 3)";
    let found = Process::parse(text).unwrap();
    assert_eq!((found.machine.as_str(), found.number), ("", 3));
    assert_eq!(found.text(), text);
}

#[test]
fn an_id_of_a_machine_is_of_hexadecimal_digits() {
    let id = "0123456789abcdef0123456789abcdef";
    assert_eq!(machine_of(&format!("{id}\n")), id);
    for text in ["", "\n", "uninitialized\n", &id[1..]] {
        assert_eq!(machine_of(text), "", "{text:?}");
    }
}

type Tables = Arc<Mutex<BTreeMap<String, String>>>;

/// A server that knows locks alone, as tables with their owners. Calls `looked` with the tables
/// after it has said who owns one.
fn server(
    tables: &Tables,
    looked: impl Fn(&mut BTreeMap<String, String>) + Send + 'static,
) -> (Address, Arc<Client>) {
    let tables = Arc::clone(tables);
    start(move |sql| {
        let mut tables = tables.lock();
        if let Some(rest) = sql.strip_prefix("CREATE TABLE db.") {
            let (name, rest) = rest.split_once(' ').unwrap();
            let owner = rest.split('\'').nth(1).unwrap();
            if tables.contains_key(name) {
                return Reply::Code(EXISTS);
            }
            tables.insert(name.to_owned(), owner.to_owned());
        } else if let Some(name) = sql.strip_prefix("DROP TABLE IF EXISTS db.") {
            tables.remove(name);
        } else {
            let name = sql.rsplit('\'').nth(1).unwrap();
            let owner = tables.get(name).map(|owner| format!("'{owner}'\n"));
            looked(&mut tables);
            return Reply::Text(owner.unwrap_or_default());
        }
        Reply::Text(String::new())
    })
}

const LOCK: &str = "t_dyno_writer";

/// A process that has ended: no process has this number.
fn dead(number: u64) -> String {
    let me = Process::this().unwrap();
    let pid = u32::MAX;
    Process { pid, number, ..me }.text()
}

/// Two machines may have one host name: the lock may be of a load that lives on the other one.
#[test]
fn the_lock_of_another_machine_of_the_same_name_stays() {
    let tables: Tables = Arc::default();
    let other = before("another").text();
    tables.lock().insert(LOCK.to_owned(), other.clone());
    let (address, client) = server(&tables, |_| {});
    let taken = WriterLock::acquire(&client, &address, &patience(Duration::ZERO));
    assert!(matches!(taken, Err(Error::Locked { .. })));
    assert_eq!(*tables.lock(), [(LOCK.to_owned(), other)].into());
}

#[test]
fn the_lock_of_a_dead_process_is_taken_over() {
    let tables: Tables = Arc::default();
    tables.lock().insert(LOCK.to_owned(), dead(1));
    let (address, client) = server(&tables, |_| {});
    let patience = patience(Duration::ZERO);
    let mut lock = WriterLock::acquire(&client, &address, &patience).unwrap();
    let names: Vec<String> = tables.lock().keys().cloned().collect();
    assert_eq!(names, [LOCK], "nothing else is left behind");
    assert_ne!(tables.lock()[LOCK], dead(1));
    lock.release().unwrap();
    assert!(tables.lock().is_empty());
}

/// Both find the lock of a dead process, and the other one is faster.
#[test]
fn of_two_that_take_over_the_lock_of_a_dead_process_one_gets_it() {
    let tables: Tables = Arc::default();
    tables.lock().insert(LOCK.to_owned(), dead(1));
    let other = Process::this().unwrap().text();
    let faster = other.clone();
    let (address, client) = server(&tables, move |tables| {
        tables.insert(LOCK.to_owned(), faster.clone());
    });
    let taken = WriterLock::acquire(&client, &address, &patience(Duration::ZERO));
    assert!(matches!(taken, Err(Error::Locked { .. })));
    assert_eq!(*tables.lock(), [(LOCK.to_owned(), other)].into());
}

/// A process that took over was killed after it had created the second lock.
#[test]
fn a_take_over_that_was_killed_does_not_prevent_the_next_one() {
    let tables: Tables = Arc::default();
    tables.lock().insert(LOCK.to_owned(), dead(1));
    let hash = twox_hash::XxHash3_128::oneshot(dead(1).as_bytes()) as u64;
    let guard = format!("t_dyno_stage_dead_{hash:016x}");
    tables.lock().insert(guard, dead(2));
    let (address, client) = server(&tables, |_| {});
    let _lock = WriterLock::acquire(&client, &address, &patience(Duration::ZERO)).unwrap();
    let names: Vec<String> = tables.lock().keys().cloned().collect();
    assert_eq!(names, [LOCK]);
}
