//! Chooses the work of clients, at random by shares.

use dyno_sim::Random;

use super::{ACCOUNTS, LISTS, PlannedTransaction, REGISTERS, Step};
use crate::bank::Bank;
use crate::history::Key;

/// How many rows of each kind there are. The numbers are small, so that clients collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Registers of the bank, whose sum does not change.
    pub accounts: u64,
    /// The first balance of each account.
    pub balance: i64,
    /// Registers that are written, deleted and looked up.
    pub registers: u64,
    /// Lists that are read as a whole and appended to.
    pub lists: u64,
    /// Whether rows are read by their keys alone, for a database without scans and indexes.
    pub keys_only: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            accounts: 6,
            balance: 100,
            registers: 16,
            lists: 5,
            keys_only: false,
        }
    }
}

/// How often clients choose each workload, as shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Share of transfers and audits.
    pub bank: usize,
    /// Share of reads of and appends to several lists.
    pub lists: usize,
    /// Share of reads, writes, deletes, scans and look-ups of registers.
    pub registers: usize,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            bank: 1,
            lists: 1,
            registers: 1,
        }
    }
}

impl Shape {
    /// The accounts, for [`crate::bank::judge`].
    pub fn bank(&self) -> Bank {
        Bank {
            table: ACCOUNTS,
            accounts: self.accounts,
            total: self.accounts as i64 * self.balance,
        }
    }

    /// Work that gives every account its first balance.
    pub fn open(&self, by: u64) -> PlannedTransaction {
        let open = |id| Step::Write(Key::new(ACCOUNTS, id), self.balance);
        let steps = (0..self.accounts).map(open).collect();
        PlannedTransaction { by, steps }
    }

    /// Work that reads all rows, and all registers through the index as well.
    pub fn read_all(&self, by: u64) -> PlannedTransaction {
        let scan = |table, to| Step::Scan {
            table,
            from: 0,
            to,
            reverse: false,
            limit: None,
        };
        let lookup = |table| Step::Lookup {
            table,
            from: i64::MIN,
            to: i64::MAX,
        };
        let keys = |table, to| Step::Read((0..to).map(|id| Key::new(table, id)).collect());
        let lists = keys(LISTS, self.lists);
        if self.keys_only {
            let accounts = keys(ACCOUNTS, self.accounts);
            let steps = vec![accounts, keys(REGISTERS, self.registers), lists];
            return PlannedTransaction { by, steps };
        }
        let steps = vec![
            scan(ACCOUNTS, self.accounts),
            lookup(ACCOUNTS),
            scan(REGISTERS, self.registers),
            lookup(REGISTERS),
            lists,
        ];
        PlannedTransaction { by, steps }
    }

    /// Work that a client chooses at random.
    pub fn plan(&self, mix: Mix, random: &mut Random, by: u64) -> PlannedTransaction {
        let chosen = random.below(mix.bank + mix.lists + mix.registers);
        let steps = if chosen < mix.bank {
            self.banking(random)
        } else if chosen < mix.bank + mix.lists {
            self.listing(random, by)
        } else {
            self.registering(random)
        };
        PlannedTransaction { by, steps }
    }

    fn banking(&self, random: &mut Random) -> Vec<Step> {
        let mut account = || random.below(self.accounts as usize) as u64;
        let (from, to) = (account(), account());
        let amount = 1 + random.below(self.balance as usize) as i64;
        match random.below(8) {
            0 if !self.keys_only => vec![Step::Scan {
                table: ACCOUNTS,
                from: 0,
                to: self.accounts,
                reverse: random.one_in(2),
                limit: None,
            }],
            0 | 1 => {
                let keys = (0..self.accounts).map(|id| Key::new(ACCOUNTS, id));
                vec![Step::Read(keys.collect())]
            }
            2 if !self.keys_only => vec![Step::Lookup {
                table: ACCOUNTS,
                from: 0,
                to: amount,
            }],
            3 => vec![
                Step::Add(Key::new(ACCOUNTS, from), -amount),
                Step::Add(Key::new(ACCOUNTS, to), amount),
            ],
            _ => vec![Step::Transfer { from, to, amount }],
        }
    }

    fn listing(&self, random: &mut Random, by: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        for n in 0..=random.below(4) as u64 {
            let key = Key::new(LISTS, random.below(self.lists as usize) as u64);
            steps.push(if random.one_in(2) {
                // Every element is unique in a history, so that a reader knows which transaction
                // appended it. Ids of transactions stay far below 2^56.
                Step::Append(key, by << 8 | n)
            } else {
                Step::Read(vec![key])
            });
        }
        steps
    }

    fn registering(&self, random: &mut Random) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..=random.below(4) {
            let id = random.below(self.registers as usize) as u64;
            let (key, n) = (Key::new(REGISTERS, id), random.below(50) as i64);
            let span = 1 + random.below(self.registers as usize) as u64;
            steps.push(match random.below(10) {
                0..=2 => Step::Read(vec![key]),
                7.. if self.keys_only => {
                    let ids = id..self.registers.min(id + span);
                    Step::Read(ids.map(|id| Key::new(REGISTERS, id)).collect())
                }
                3 | 4 => Step::Write(key, n),
                5 => Step::Delete(key),
                6 if random.one_in(2) => Step::Insert(key, n),
                6 => Step::Add(key, n),
                7 => Step::Lookup {
                    table: REGISTERS,
                    from: n,
                    to: n + 10,
                },
                _ => Step::Scan {
                    table: REGISTERS,
                    from: id,
                    to: id + span,
                    reverse: random.one_in(2),
                    limit: random.one_in(2).then_some(1 + random.below(5)),
                },
            });
        }
        steps
    }
}
