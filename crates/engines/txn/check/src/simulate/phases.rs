//! The parts of a run: setting up, storm, and rest.

use dyno_txn_api::{Table, TableId};
use dyno_txn_core::message::{Address, Message};

use super::cluster::{Cluster, MAKER, MS, Timer};
use super::session::Session;
use crate::drive::Way;
use crate::history::Outcome;
use crate::verdict::Rule;
use crate::workload::{PlannedTransaction, definitions};

/// Simulated time for setting up and for coming to rest. An oracle takes over when it has not heard
/// of another one for up to two and a half seconds, and then waits for more than a second. After a
/// restart writes wait until timestamps have passed the predecessor's bound, which takes at most
/// two seconds.
const PATIENCE_NS: u64 = 30_000 * MS;

impl Cluster {
    /// Plays the whole run. Returns the breaches that the history does not show.
    pub fn play(&mut self) -> Vec<(Rule, String)> {
        self.set_up();
        if self.broken.is_empty() {
            self.storm();
            self.calm();
        }
        let fell = [self.oracles.fell(), self.local.fell()];
        let fell = fell.into_iter().flatten();
        self.broken
            .extend(fell.map(|sentence| (Rule::TimestampOrder, sentence)));
        self.history
            .transactions
            .sort_by_key(|t| (t.begin_ns, t.id));
        std::mem::take(&mut self.broken)
    }

    fn set_up(&mut self) {
        for core in 0..self.cores.len() {
            let wants = self.cores[core].tick(0);
            self.apply(core, wants);
        }
        let control = self.clients[0].node;
        for number in 0..self.oracles.nodes.len() {
            self.start_oracle(number);
        }
        if self.chosen.in_process {
            self.local.begin(1);
            self.world.set_timer(control, 1, Timer::Keep);
        }
        let Ok(defs) = definitions(1 + self.chosen.shape.registers / 8) else {
            return self.complain("the tables cannot be defined".to_owned());
        };
        for (at, def) in defs.into_iter().enumerate() {
            let id = TableId(at as u32 + 1);
            self.tables.ids[at] = id;
            self.schema.add(Table {
                id,
                def: def.clone(),
            });
            let create = Message::CreateTable {
                ticket: at as u64,
                def,
            };
            self.post(
                control,
                Address::Client(MAKER),
                Address::Partition(0),
                create,
            );
            // One after the other, so that the tables get the expected ids.
            self.run(100 * MS, |_| false);
        }
        self.insist(
            |cluster, by| cluster.chosen.shape.open(by),
            "the accounts could not be opened",
        );
    }

    fn storm(&mut self) {
        let chosen = self.chosen;
        let until = self.world.now_ns() + chosen.storm_ns;
        let spare_from = self.clients[0].node.index();
        self.storming = true;
        self.expose();
        self.world.set_links(chosen.link);
        self.world.set_storm(chosen.storm(until, spare_from));
        let control = self.clients[0].node;
        if chosen.failover_every_ns > 0 {
            self.world
                .set_timer(control, chosen.failover_every_ns, Timer::Failover);
        }
        for core in 0..self.cores.len() {
            self.plan_checkpoint(core);
        }
        for session in 0..self.sessions.len() {
            self.begin_any(session);
        }
        self.run(chosen.storm_ns, |_| false);
        self.storming = false;
        self.expose();
        self.world.set_links(self.chosen.calm_link());
        self.world.heal_all();
    }

    fn calm(&mut self) {
        let idle = |cluster: &Self| cluster.sessions.iter().all(Session::is_idle);
        // Sessions end by themselves, because every transaction has a deadline and every client
        // stops asking. A session that does not is a bug of the coordinator or of recovery.
        self.run(PATIENCE_NS, idle);
        if !idle(self) {
            return self
                .complain("a transaction did not end after all faults had ended".to_owned());
        }
        self.insist(
            |cluster, by| cluster.chosen.shape.read_all(by),
            "not every row could be read",
        );
        // Recovery of abandoned transactions goes on in the background, after the last client has
        // its answer.
        let decided = |cluster: &Self| cluster.cores.iter().all(|core| core.undecided() == 0);
        self.run(PATIENCE_NS, decided);
        if !decided(self) {
            self.complain("a partition still holds an undecided transaction".to_owned());
        }
    }

    /// Runs work until it is committed, or complains when the time for it is over.
    fn insist(&mut self, planned: impl Fn(&Self, u64) -> PlannedTransaction, complaint: &str) {
        let until = self.world.now_ns() + PATIENCE_NS;
        while self.world.now_ns() < until {
            let by = self.next_id();
            let planned = planned(self, by);
            self.sessions[0].last = None;
            self.begin(0, planned, Way::Interactive);
            self.run(PATIENCE_NS, |cluster| cluster.sessions[0].last.is_some());
            if self.sessions[0].last == Some(Outcome::Ok) {
                return;
            }
            self.run(50 * MS, |_| false);
        }
        self.complain(complaint.to_owned());
    }

    /// Lets events happen for a time, or until a condition holds.
    fn run(&mut self, for_ns: u64, enough: impl Fn(&Self) -> bool) {
        let until = self.world.now_ns() + for_ns;
        let mut events = 0_u32;
        while let Some(event) = self.world.next_until(until) {
            self.event(event);
            events += 1;
            // The condition is not checked after each event, because some conditions take longer to
            // check than an event takes.
            if events.is_multiple_of(16) && enough(self) {
                return;
            }
        }
    }
}
