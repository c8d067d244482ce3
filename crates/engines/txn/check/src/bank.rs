//! Money is moved, never made or lost: every transaction that saw all accounts saw one total.

use std::collections::BTreeMap;

use crate::history::{History, Key, Op, Transaction, Value};
use crate::verdict::{Rule, Verdict};

/// The accounts of a bank: the rows `0..accounts` of a table, registers with the balance as number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bank {
    /// Their table.
    pub table: u32,
    /// How many there are.
    pub accounts: u64,
    /// What they hold together, always.
    pub total: i64,
}

/// Judges every transaction that read all accounts before it wrote any, whatever its outcome: what
/// it read was a snapshot in any case. Returns how many there were, because a run without any
/// proves nothing.
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

/// The first balance that it saw of each account, if it saw all; an absent account holds nothing.
fn snapshot(transaction: &Transaction, bank: Bank) -> Option<BTreeMap<u64, i64>> {
    let mut balances = BTreeMap::new();
    let account = |key: Key| key.table == bank.table && key.id < bank.accounts;
    for op in &transaction.ops {
        match op {
            Op::Read { key, value } if account(*key) => {
                balances.entry(key.id).or_insert(number(value.as_ref()));
            }
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
