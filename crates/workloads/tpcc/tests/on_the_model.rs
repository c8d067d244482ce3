//! The whole workload on the database that is obviously correct, and the checks on databases that
//! are wrong.

use std::sync::atomic::AtomicBool;

use dyno_tpcc::checks::{atomicity, checksum, consistency};
use dyno_tpcc::drive::{self, Done, Ended, Form, Plan, Until};
use dyno_tpcc::input::{Draw, Kind, Mix};
use dyno_tpcc::load::{self, Progress};
use dyno_tpcc::random::Skew;
use dyno_tpcc::schema::{self, Tables, history_key, key};
use dyno_tpcc::{Population, Scale, transactions};
use dyno_txn_api::{Assignment, Code, Procedures, TableId, Transact, model::Model};

const SEED: u64 = 31;

fn loaded(warehouses: u32) -> (Model, Tables, Population) {
    let mut procedures = Procedures::new();
    transactions::register(&mut procedures).expect("names are free");
    let db = Model::with(procedures);
    let population = Population {
        scale: Scale::small(warehouses),
        seed: SEED,
    };
    let loaded = load::load(&db, population, 2, &Progress::default()).expect("it is empty");
    assert!(loaded.rows > 0);
    let (tables, found) = load::ready(&db).expect("it was loaded");
    assert_eq!(found, population);
    (db, tables, population)
}

fn plan(scale: Scale, form: Form, clients: u32, until: u64) -> Plan {
    Plan {
        draw: Draw {
            scale,
            mix: Mix::Full,
            by_last_name: 60,
            skew: Skew::of_run(SEED, Skew::of_load(SEED)),
        },
        form,
        clients,
        threads: 2,
        until: Until::Transactions(until),
        paced: false,
        seed: 5,
        run: 1,
        attempts: 10,
        entered_ms: Some(1_800_000_000_000),
    }
}

fn run(db: &Model, tables: &Tables, plan: &Plan) -> Vec<Done> {
    let mut done: Vec<Vec<Done>> = (0..plan.workers()).map(|_| Vec::new()).collect();
    let mut recorders: Vec<_> = done.iter_mut().map(|all| |one| all.push(one)).collect();
    drive::run(db, tables, plan, &AtomicBool::new(false), &mut recorders).expect("it runs");
    drop(recorders);
    done.concat()
}

#[test]
fn a_loaded_database_is_consistent_and_loading_again_changes_nothing() {
    let (db, tables, population) = loaded(2);
    assert_eq!(consistency(&db, &tables, &population.scale), Ok(vec![]));
    let before = checksum(&db).expect("it is readable");
    let again = load::load(&db, population, 1, &Progress::default()).expect("the same");
    assert_eq!((again.rows, again.bytes), (0, 0));
    assert_eq!(checksum(&db).expect("it is readable"), before);
    let other = Population {
        seed: 9,
        ..population
    };
    let refused = load::load(&db, other, 1, &Progress::default()).expect_err("another one");
    assert_eq!(refused.kind(), Code::BadArgument);
}

#[test]
fn all_forms_leave_a_consistent_database_and_the_same_one() {
    let mut sums = Vec::new();
    for form in [Form::OneShot, Form::Batched, Form::Interactive] {
        let (db, tables, population) = loaded(2);
        // One terminal, so that the order of transactions is the same in all forms.
        let done = run(&db, &tables, &plan(population.scale, form, 1, 600));
        assert_eq!(done.len(), 600);
        let count = |kind, outcome: Ended| {
            let matches = |one: &&Done| one.kind == kind && one.outcome == outcome;
            done.iter().filter(matches).count()
        };
        for kind in Kind::ALL {
            assert!(count(kind, Ended::Committed) > 5, "{kind:?}");
        }
        assert!(count(Kind::NewOrder, Ended::RolledBack) > 0);
        assert_eq!(count(Kind::Payment, Ended::RolledBack), 0);
        assert_eq!(consistency(&db, &tables, &population.scale), Ok(vec![]));
        sums.push(checksum(&db).expect("it is readable"));
    }
    assert_eq!(sums[0], sums[1]);
    assert_eq!(sums[0], sums[2]);
}

#[test]
fn many_terminals_on_few_threads() {
    let (db, tables, population) = loaded(2);
    let done = run(&db, &tables, &plan(population.scale, Form::OneShot, 7, 60));
    assert_eq!(done.len(), 7 * 60);
    assert_eq!(consistency(&db, &tables, &population.scale), Ok(vec![]));
}

#[test]
fn payment_is_atomic() {
    let (db, tables, population) = loaded(1);
    assert_eq!(atomicity(&db, &tables, [9, 1]), Ok(None));
    assert_eq!(consistency(&db, &tables, &population.scale), Ok(vec![]));
}

#[test]
fn a_database_that_was_not_loaded_says_what_to_do() {
    let error = load::ready(&Model::new()).expect_err("nothing is there");
    assert!(error.text().contains("dyno tpcc load"), "{error}");
}

/// A condition, and what breaks it: a row that is changed, or removed.
struct Damage {
    condition: u8,
    table: TableId,
    at: Vec<u8>,
    change: Option<Assignment>,
}

fn damages(tables: &Tables) -> Vec<Damage> {
    let add = |column| Some(Assignment::add(column, 1i64));
    let count = |column| Some(Assignment::add(column, 1u64));
    let carrier = Some(Assignment::set(schema::order::CARRIER, 3u64));
    let delivered = Some(Assignment::set(schema::order_line::DELIVERED, 5i64));
    let all: [(TableId, &[u32], Option<Assignment>); 12] = [
        (tables.district_ytd, &[1, 2], add(schema::ytd::YTD)),
        (
            tables.district_order,
            &[1, 2],
            count(schema::district_order::NEXT),
        ),
        (tables.waiting, &[1, 1, 50], None),
        (tables.order_line, &[1, 1, 7, 1], None),
        (tables.order, &[1, 1, 60], carrier),
        (tables.order, &[1, 1, 8], count(schema::order::LINES)),
        (tables.order_line, &[1, 1, 60, 1], delivered),
        (tables.warehouse_ytd, &[1], add(schema::ytd::YTD)),
        (tables.history, &[1, 1, 0, 3], add(schema::history::AMOUNT)),
        (
            tables.customer_sums,
            &[1, 1, 4],
            add(schema::customer_sums::BALANCE),
        ),
        (
            tables.customer_sums,
            &[1, 1, 5],
            count(schema::customer_sums::DELIVERIES),
        ),
        (
            tables.customer_sums,
            &[1, 1, 6],
            add(schema::customer_sums::YTD_PAYMENT),
        ),
    ];
    let numbered = all.into_iter().zip(1..);
    let damage = |((table, at, change), condition): ((TableId, &[u32], _), u8)| Damage {
        condition,
        table,
        at: match table == tables.history {
            true => history_key(at[0], at[1], [at[2], at[3]].map(u64::from)),
            false => key(at),
        },
        change,
    };
    numbered.map(damage).collect()
}

#[test]
fn every_condition_finds_its_damage() {
    let (_, tables, _) = loaded(1);
    for damage in damages(&tables) {
        let (db, tables, population) = loaded(1);
        db.transact(|t| match &damage.change {
            Some(change) => t.update(damage.table, &damage.at, vec![change.clone()]),
            None => t.delete(damage.table, &damage.at),
        })
        .expect("the row is there");
        let found = consistency(&db, &tables, &population.scale).expect("it is readable");
        let condition = damage.condition;
        assert!(
            found
                .iter()
                .any(|violation| violation.condition == condition),
            "{condition}: {found:?}"
        );
    }
}
