//! The common tests of engines on the model itself: they must pass where everything is right, and
//! find what is not.

use dyno_txn_api::conformance::{concurrent_sums, same_as_the_model};
use dyno_txn_api::model::Model;
use dyno_txn_api::{
    Committed, Database, Description, Options, Request, Result, Table, TableDef, TableId,
    Transaction,
};

#[test]
fn the_model_is_like_itself() {
    for seed in 0..20 {
        assert_eq!(same_as_the_model(&Model::new(), seed, 60), Ok(()));
    }
    assert_eq!(concurrent_sums(&Model::new(), 4, 50), Ok(()));
}

/// Forgets every tenth commit.
struct Forgetful(Model, std::sync::atomic::AtomicU32);

impl Database for Forgetful {
    fn create_table(&self, def: &TableDef) -> Result<TableId> {
        self.0.create_table(def)
    }
    fn tables(&self) -> Result<Vec<Table>> {
        self.0.tables()
    }
    fn begin(&self, options: &Options) -> Result<Box<dyn Transaction + '_>> {
        let begun = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if begun % 10 == 9 {
            // What a transaction does on a copy is lost.
            let copy: &'static Model = Box::leak(Box::default());
            for table in self.0.tables()? {
                copy.create_table(&table.def)?;
            }
            return copy.begin(options);
        }
        self.0.begin(options)
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
fn a_database_that_forgets_is_found() {
    let forgetful = || Forgetful(Model::new(), Default::default());
    assert!((0..3).all(|seed| same_as_the_model(&forgetful(), seed, 60).is_err()));
    assert!(concurrent_sums(&forgetful(), 2, 50).is_err());
}
