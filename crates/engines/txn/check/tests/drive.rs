//! Clients against a database that is obviously correct, and against one that has no transactions.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_txn_api::model::Model;
use dyno_txn_api::{
    Answer, Committed, Database, Description, Operation, Operations, Options, Request, Result,
    Table, TableDef, TableId, Timestamp, Transaction,
};
use dyno_txn_check::drive::{Drive, Plan, Way};
use dyno_txn_check::workload::{self, Tables};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_correct_database_is_judged_correct() {
    let model = Model::with(workload::procedures().expect("procedures"));
    let tables = Tables::create(&model, 2).expect("tables");
    let plan = Plan {
        transactions: 250,
        ..Plan::default()
    };
    let mut drive = Drive::new(plan);
    drive.open(&model, tables, PATIENCE).expect("accounts");
    for _ in 0..2 {
        drive.round(|| Ok(&model), tables, &AtomicBool::new(false));
        drive.read_all(&model, tables, PATIENCE).expect("all rows");
    }
    let judgement = drive.judge();
    assert!(judgement.verdict.holds(), "{}", judgement.verdict);
    assert!(
        judgement.replayed && judgement.audits > 20 && judgement.committed > 1_500,
        "{judgement:?}"
    );
}

#[test]
fn the_seed_and_the_round_decide_what_a_client_chooses_and_ids_do_not() {
    let chosen = |reads: usize| {
        let model = Model::with(workload::procedures().expect("procedures"));
        let tables = Tables::create(&model, 2).expect("tables");
        let mut drive = Drive::new(Plan {
            clients: 1,
            transactions: 30,
            ..Plan::default()
        });
        drive.open(&model, tables, PATIENCE).expect("accounts");
        for _ in 0..reads {
            drive.read_all(&model, tables, PATIENCE).expect("all rows");
        }
        let before = drive.history().transactions.len();
        drive.round(|| Ok(&model), tables, &AtomicBool::new(false));
        let of_round = drive.history().transactions[before..].iter();
        of_round
            .map(|transaction| transaction.written().collect())
            .collect::<Vec<Vec<_>>>()
    };
    assert_eq!(chosen(0), chosen(3));
}

/// Does every operation at once, for good: what a transaction is without one.
struct Autocommit(Model);

struct Loose<'a>(&'a Model);

impl Operations for Loose<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let one = |operation: &Operation| {
            std::thread::yield_now();
            let request = Request::Operations(vec![operation.clone()]);
            let done = self.0.execute(request, &Options::default())?;
            Ok(done.answers.into_iter().next().expect("one answer"))
        };
        operations.iter().map(one).collect()
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        Ok(self.0.table(name)?.id)
    }
}

impl Transaction for Loose<'_> {
    fn commit(self: Box<Self>) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    fn rollback(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Database for Autocommit {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        self.0.create_table(def)
    }

    fn tables(&self) -> Result<Vec<Table>> {
        self.0.tables()
    }

    fn begin(&self, _: &Options) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Loose(&self.0)))
    }

    fn execute(&self, request: Request, options: &Options) -> Result<Committed> {
        self.0.execute(request, options)
    }

    fn describe(&self) -> Result<Description> {
        self.0.describe()
    }

    fn stats(&self) -> Result<Vec<(String, u64)>> {
        self.0.stats()
    }

    fn as_database(&self) -> &dyn Database {
        self
    }
}

#[test]
fn a_database_without_transactions_is_caught_without_any_timestamp() {
    let db = Autocommit(Model::new());
    let tables = Tables::create(&db, 2).expect("tables");
    let mut drive = Drive::new(Plan {
        transactions: 400,
        ways: vec![Way::Interactive],
        ..Plan::default()
    });
    drive.open(&db, tables, PATIENCE).expect("accounts");
    drive.round(|| Ok(&db), tables, &AtomicBool::new(false));
    drive.read_all(&db, tables, PATIENCE).expect("all rows");
    let judgement = drive.judge();
    assert!(
        !judgement.verdict.holds() && !judgement.replayed,
        "{judgement:?}"
    );
}
