//! One transaction after the other on several partitions gives what the model gives: rows with
//! indexes, filters, projections and pages both ways, through crashes and checkpoints.

use dyno_sim::Random;
use dyno_txn_api::model::Model;
use dyno_txn_api::{
    Answer, Assignment, Change, Compare, Continuation, Database, Filter, Key, Kind, Operation,
    Procedures, Request, Result, Scan, TableDef, TableId, Transact, Tuple, ValueRef, encode_row,
};
use dyno_txn_core::message::Message;

use crate::cluster::Cluster;
use crate::random_runs::ask;

const TABLE: TableId = TableId(1);

fn def() -> TableDef {
    let def = TableDef::hash("people", 8)
        .column("group", Kind::U64)
        .column("name", Kind::Text)
        .nullable("points", Kind::I64);
    def.index("by-name", &["name"], 0)
        .and_then(|def| def.index("by-points", &["group", "points"], 8))
        .expect("columns are there")
}

fn key(random: &mut Random) -> (u64, Key) {
    let (group, number) = (random.below(4) as u64, random.below(8) as u64);
    (group, Tuple::new().u64(group).u64(number).key(TABLE))
}

fn write(random: &mut Random) -> Operation {
    let (group, key) = key(random);
    let name = ["Ada", "Bob", "Eve"][random.below(3)];
    let points = match random.below(4) {
        0 => ValueRef::Null,
        n => ValueRef::I64(n as i64 * 10),
    };
    let row = encode_row(&[ValueRef::U64(group), ValueRef::Text(name), points]);
    let change = match random.below(6) {
        0 | 1 => Change::Put(row),
        2 => Change::Insert(row),
        3 => Change::Delete,
        4 => Change::Update(vec![Assignment::set(1, name)]),
        _ => Change::Update(vec![Assignment::set(1, name), Assignment::set(2, 7i64)]),
    };
    Operation::Write(key, change)
}

fn scan(random: &mut Random, after: &mut Option<Scan>) -> Operation {
    if let Some(scan) = after.take() {
        return Operation::Scan(scan);
    }
    let group = Tuple::new().u64(random.below(4) as u64).finish();
    let mut scan = match random.below(5) {
        0 => Scan::all(TABLE),
        1 => Scan::prefix(TABLE, group),
        2 => Scan::all(TABLE).index(0),
        3 => Scan::prefix(TABLE, Tuple::new().text("Bob").finish()).index(0),
        _ => Scan::prefix(TABLE, group).index(1),
    };
    if random.one_in(2) {
        scan = scan.backward();
    }
    if random.one_in(2) {
        scan = scan.limit(1 + random.below(5) as u32);
    }
    if random.one_in(3) {
        scan = scan.filter(Filter::compare(2, Compare::GreaterOrEqual, 10i64));
    }
    if random.one_in(3) {
        scan = scan.columns(&[2, 0]);
    }
    Operation::Scan(scan)
}

/// Whether the answers are the same. A page that the model calls the last may say that more follow,
/// because deleted rows, which are kept for readers of the past, may lie behind it.
fn same(found: &[Answer], wanted: &[Answer]) -> bool {
    found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(found, wanted)| match (found, wanted) {
                (Answer::Page(found), Answer::Page(wanted)) => {
                    let more = wanted.next.is_none() || wanted.next == found.next;
                    found.rows == wanted.rows && more
                }
                _ => found == wanted,
            })
}

fn both(seed: u64, partitions: u32) -> (Cluster, Model) {
    let mut cluster = Cluster::new(seed, partitions, true, Procedures::new());
    let model = Model::new();
    assert_eq!(model.create_table(&def()), Ok(TABLE));
    let made = ask(
        &mut cluster,
        0,
        Message::CreateTable {
            ticket: 0,
            def: def(),
        },
    );
    assert_eq!(
        made,
        Message::Created {
            ticket: 0,
            result: Ok(TABLE)
        }
    );
    (cluster, model)
}

fn run(seed: u64, partitions: u32) {
    let (mut cluster, model) = both(seed, partitions);
    let mut after = None;
    for ticket in 0..150 {
        let mut operations = Vec::new();
        for _ in 0..cluster.random.below(2) {
            operations.push(scan(&mut cluster.random, &mut after));
        }
        for _ in 0..cluster.random.below(4) {
            operations.push(write(&mut cluster.random));
            let (_, key) = key(&mut cluster.random);
            operations.push(Operation::Get(key));
        }
        let to = cluster.random.below(partitions as usize) as u32;
        let request = Request::Operations(operations.clone());
        let one_shot = Message::OneShot {
            ticket,
            timestamp: None,
            priority: 0,
            deadline_ns: u64::MAX,
            request,
        };
        let Message::Done { result, .. } = ask(&mut cluster, to, one_shot) else {
            panic!("seed {seed}: another answer");
        };
        let wanted: Result<Vec<Answer>> =
            model.one_shot(operations.clone()).map(|done| done.answers);
        match (result, wanted) {
            (Ok(done), Ok(wanted)) => {
                let found = &done.answers;
                assert!(
                    same(found, &wanted),
                    "seed {seed}: {operations:?}: {found:?}, not {wanted:?}"
                );
                if let (Some(Operation::Scan(scan)), Some(Answer::Page(page))) =
                    (operations.first(), done.answers.first())
                    && let Some(Continuation(next)) = &page.next
                {
                    after = Some(scan.clone().after(Continuation(next.clone())));
                }
            }
            (Err(error), Err(wanted)) => {
                assert_eq!(
                    error.kind(),
                    wanted.kind(),
                    "seed {seed}: {error}, {wanted}"
                );
            }
            (result, wanted) => panic!("seed {seed}: {operations:?}: {result:?}, not {wanted:?}"),
        }
        if cluster.random.one_in(20) {
            cluster.settle();
            let id = cluster.random.below(partitions as usize) as u32;
            cluster.crash(id);
            after = None;
        }
    }
}

#[test]
fn one_partition_does_what_the_model_does() {
    (1..20).for_each(|seed| run(seed, 1));
}

#[test]
fn three_partitions_do_what_the_model_does() {
    (100..120).for_each(|seed| run(seed, 3));
}
