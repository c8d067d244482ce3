//! The whole workload on the database that is obviously correct, and the checks on databases that
//! are wrong.

use std::sync::atomic::AtomicBool;

use dyno_tpcc::checks::{atomicity, checksum, consistency};
use dyno_tpcc::drive::{self, Done, Ended, Form, Plan, Until};
use dyno_tpcc::input::{Draw, Kind, Mix};
use dyno_tpcc::load::{self, Progress};
use dyno_tpcc::random::Skew;
use dyno_tpcc::rows::OrderLine;
use dyno_tpcc::schema::{self, Tables, each_line, history_key, key, pack};
use dyno_tpcc::{Layout, Population, Scale, transactions};
use dyno_txn_api::{Assignment, Change, Code, Procedures, TableId, Transact, model::Model};

const SEED: u64 = 31;

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Rows];

fn loaded(warehouses: u32) -> (Model, Tables, Population) {
    loaded_as(Layout::Packed, warehouses)
}

fn loaded_as(layout: Layout, warehouses: u32) -> (Model, Tables, Population) {
    let mut procedures = Procedures::new();
    transactions::register(&mut procedures).expect("names are free");
    let db = Model::with(procedures);
    let population = Population {
        scale: Scale::small(warehouses),
        seed: SEED,
    };
    let loaded = load::load(&db, layout, population, 2, &Progress::default());
    let loaded = loaded.expect("it is empty");
    assert!(loaded.rows > 0);
    let (tables, found) = load::ready(&db).expect("it was loaded");
    assert_eq!((found, tables.layout), (population, layout));
    (db, tables, population)
}

fn plan(scale: Scale, form: Form, clients: u32, until: u64) -> Plan {
    Plan {
        draw: Draw {
            scale,
            mix: Mix::Full,
            by_last_name: 60,
            skew: Skew::for_run(SEED, Skew::for_load(SEED)),
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
    let mut sums = Vec::new();
    for layout in LAYOUTS {
        let (db, tables, population) = loaded_as(layout, 2);
        assert_eq!(consistency(&db, &tables, &population.scale), Ok(vec![]));
        let before = checksum(&db).expect("it is readable");
        // Whatever layout a new database would get, this one keeps its own.
        for wanted in LAYOUTS {
            let again = load::load(&db, wanted, population, 1, &Progress::default());
            let again = again.expect("the same");
            assert_eq!((again.rows, again.bytes), (0, 0));
        }
        assert_eq!(Tables::find(&db), Ok(tables));
        assert_eq!(checksum(&db).expect("it is readable"), before);
        let other = Population {
            seed: 9,
            ..population
        };
        let refused = load::load(&db, layout, other, 1, &Progress::default());
        assert_eq!(refused.expect_err("another one").kind(), Code::BadArgument);
        sums.push(before);
    }
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn all_forms_and_layouts_leave_a_consistent_database_and_the_same_one() {
    let mut sums = Vec::new();
    for (form, layout) in [
        (Form::OneShot, Layout::Packed),
        (Form::Batched, Layout::Packed),
        (Form::Interactive, Layout::Packed),
        (Form::OneShot, Layout::Rows),
    ] {
        let (db, tables, population) = loaded_as(layout, 2);
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
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
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
    change: Change,
}

fn damages(db: &Model, tables: &Tables) -> Vec<Damage> {
    let add = |column| Change::Update(vec![Assignment::add(column, 1i64)]);
    let count = |column| Change::Update(vec![Assignment::add(column, 1u64)]);
    let set = |column, value: u64| Change::Update(vec![Assignment::set(column, value)]);
    let (lost_at, lost) = line(db, tables, [1, 1, 7, 1], None);
    let (delivered_at, delivered) = line(db, tables, [1, 1, 60, 1], Some(5));
    let history = history_key(1, 1, [0, 3]);
    let all = [
        (tables.district_ytd, key(&[1, 2]), add(schema::ytd::YTD)),
        (
            tables.district_order,
            key(&[1, 2]),
            count(schema::district_order::NEXT),
        ),
        (tables.waiting, key(&[1, 1, 50]), Change::Delete),
        (tables.order_line, lost_at, lost),
        (
            tables.order,
            key(&[1, 1, 60]),
            set(schema::order::CARRIER, 3),
        ),
        (tables.order, key(&[1, 1, 8]), count(schema::order::LINES)),
        (tables.order_line, delivered_at, delivered),
        (tables.warehouse_ytd, key(&[1]), add(schema::ytd::YTD)),
        (tables.history, history, add(schema::history::AMOUNT)),
        (
            tables.customer_sums,
            key(&[1, 1, 4]),
            add(schema::customer_sums::BALANCE),
        ),
        (
            tables.customer_sums,
            key(&[1, 1, 5]),
            count(schema::customer_sums::DELIVERIES),
        ),
        (
            tables.customer_sums,
            key(&[1, 1, 6]),
            add(schema::customer_sums::YTD_PAYMENT),
        ),
    ];
    let numbered = all.into_iter().zip(1..);
    let damage = |((table, at, change), condition)| Damage {
        condition,
        table,
        at,
        change,
    };
    numbered.map(damage).collect()
}

/// Where a line is stored, and the change that sets when it was delivered, or removes it.
fn line(db: &Model, tables: &Tables, at: [u32; 4], delivered: Option<i64>) -> (Vec<u8>, Change) {
    if tables.layout == Layout::Rows {
        let change = match delivered {
            Some(when) => {
                Change::Update(vec![Assignment::set(schema::order_line::DELIVERED, when)])
            }
            None => Change::Delete,
        };
        return (key(&at), change);
    }
    let order = key(&at[..3]);
    let value = db.transact(|t| t.get(tables.order_line, &order));
    let value = value.expect("it answers").expect("the order has lines");
    let mut lines: Vec<OrderLine<'_>> = Vec::new();
    each_line(tables.layout, &order, &value, |line| {
        lines.push(line);
        Ok(())
    })
    .expect("they are whole");
    let before = lines.len();
    match delivered {
        Some(_) => lines[at[3] as usize - 1].delivered = delivered,
        None => lines.retain(|line| line.number != at[3]),
    }
    assert_eq!(lines.len(), before - usize::from(delivered.is_none()));
    (order, Change::Put(pack(&lines)))
}

#[test]
fn every_condition_finds_its_damage() {
    for layout in LAYOUTS {
        let (pristine, tables, _) = loaded_as(layout, 1);
        for damage in damages(&pristine, &tables) {
            let (db, tables, population) = loaded_as(layout, 1);
            db.transact(|t| t.write(damage.table, &damage.at, damage.change.clone()))
                .expect("the row is there");
            let found = consistency(&db, &tables, &population.scale).expect("it is readable");
            let condition = damage.condition;
            assert!(
                found
                    .iter()
                    .any(|violation| violation.condition == condition),
                "{layout:?} {condition}: {found:?}"
            );
        }
    }
}

#[test]
fn all_places_where_a_condition_does_not_hold_are_counted() {
    let (db, tables, population) = loaded(1);
    let paid = || {
        let column = schema::customer_sums::YTD_PAYMENT;
        Change::Update(vec![Assignment::add(column, 1i64)])
    };
    let damage = |customers: std::ops::RangeInclusive<u32>| {
        db.transact(|t| {
            customers
                .clone()
                .try_for_each(|id| t.write(tables.customer_sums, &key(&[1, 1, id]), paid()))
        })
        .expect("the rows are there");
        let found = consistency(&db, &tables, &population.scale).expect("it is readable");
        assert!(found.iter().all(|violation| violation.condition == 12));
        let last = found.last().expect("they are found").to_string();
        (found.len(), last)
    };
    let (lines, last) = damage(1..=20);
    assert_eq!(lines, 20);
    assert!(!last.contains("more"), "{last}");
    let (lines, last) = damage(21..=25);
    assert_eq!(lines, 21);
    assert_eq!(last, "condition 12: 5 more places where it does not hold");
}
