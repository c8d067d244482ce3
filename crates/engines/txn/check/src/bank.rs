//! Judges that money is moved and never created or lost: every transaction that saw all accounts
//! must have seen the same total.

use std::collections::BTreeMap;

use crate::history::{History, Key, Op, Transaction, Value};
use crate::verdict::{Rule, Verdict};

/// The accounts of a bank: the rows `0..accounts` of a table, whose registers hold the balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bank {
    /// The number of the table in the history.
    pub table: u32,
    /// How many accounts there are.
    pub accounts: u64,
    /// The sum of all accounts, which no transaction changes.
    pub total: i64,
}

/// Judges every transaction that read all accounts before it wrote to any of them. Its outcome does
/// not matter, because what it read was a snapshot in any case. Returns how many there were,
/// because a run without any proves nothing.
pub fn judge(history: &History, bank: Bank) -> (Verdict, usize) {
    let mut verdict = Verdict::default();
    let mut judged = 0;
    for transaction in &history.transactions {
        let Some(balances) = snapshot(transaction, bank) else {
            continue;
        };
        judged += 1;
        let total: i64 = balances.values().sum();
        if total != bank.total {
            verdict.add(Rule::BankTotal, || {
                format!(
                    "T{} saw {total} in all accounts together, which hold {}: {balances:?}",
                    transaction.id, bank.total
                )
            });
        }
    }
    (verdict, judged)
}

/// The first balance of each account that a transaction saw, if it saw all of them. An absent
/// account holds nothing.
fn snapshot(transaction: &Transaction, bank: Bank) -> Option<BTreeMap<u64, i64>> {
    let mut balances = BTreeMap::new();
    let account = |key: Key| key.table == bank.table && key.id < bank.accounts;
    for op in &transaction.ops {
        match op {
            Op::Read { key, value } if account(*key) => {
                balances.entry(key.id).or_insert(number(value.as_ref()));
            }
            // A scan that stopped at its limit may not have reached the last accounts.
            Op::Scan(scan)
                if (scan.table, scan.from) == (bank.table, 0)
                    && scan.to >= bank.accounts
                    && scan.limit.is_none_or(|limit| scan.rows.len() < limit) =>
            {
                for id in 0..bank.accounts {
                    let row = scan.rows.iter().find(|row| row.0 == id);
                    let balance = number(row.map(|row| &row.1));
                    balances.entry(id).or_insert(balance);
                }
            }
            // What the transaction reads after its own write is not the snapshot any more.
            Op::Write { key, .. } | Op::Change { key } if account(*key) => break,
            _ => {}
        }
    }
    (balances.len() as u64 == bank.accounts).then_some(balances)
}

fn number(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Register { n, .. }) => *n,
        _ => 0,
    }
}
