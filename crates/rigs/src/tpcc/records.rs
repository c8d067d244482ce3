//! Counts how many records a transaction reads and writes, which other reports call "record
//! operations".

use dyno_tpcc::drive::Plan;
use dyno_tpcc::input::Terminal;
use dyno_tpcc::schema::Tables;
use dyno_tpcc::transactions;
use dyno_txn_api::{
    Answer, Code, Database, Operation, Operations, Options, Result, TableId, Transact, Transaction,
};

/// Transactions in the sample.
const SAMPLE: u32 = 100;

/// Passes operations on and counts records: one for each get and each write, and one for each row
/// that a scan returns.
struct Counting<'a> {
    under: &'a mut dyn Transaction,
    records: u64,
}

impl Operations for Counting<'_> {
    fn run(&mut self, operations: &[Operation]) -> Result<Vec<Answer>> {
        let answers = self.under.run(operations)?;
        self.records += answers
            .iter()
            .map(|answer| match answer {
                Answer::Page(page) => page.rows.len() as u64,
                Answer::Value(_) | Answer::Done => 1,
            })
            .sum::<u64>();
        Ok(answers)
    }

    fn table(&mut self, name: &str) -> Result<TableId> {
        self.under.table(name)
    }
}

/// The mean over a sample of the plan's inputs, which it runs. Those that are rolled back count up
/// to that point.
pub(super) fn of_a_transaction(db: &dyn Database, tables: &Tables, plan: &Plan) -> Result<f64> {
    // A terminal number that no run uses, because the rows that it adds carry it.
    let mut terminal = Terminal::new(plan.draw, plan.seed, plan.run, plan.clients);
    let mut records = 0;
    for _ in 0..SAMPLE {
        let input = terminal.next(0);
        let mut counted = 0;
        let done = db.transact_with(&Options::default(), |under| {
            let mut counting = Counting { under, records: 0 };
            let done = transactions::run(&mut counting, tables, &input);
            counted = counting.records;
            done
        });
        match done {
            Err(error) if error.kind() != Code::UserAbort => return Err(error),
            _ => records += counted,
        }
    }
    Ok(records as f64 / f64::from(SAMPLE))
}
