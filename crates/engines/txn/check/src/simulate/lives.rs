//! How nodes end and begin: crashes, failing disks, recovery, and the checkpoints for the next
//! recovery.

use dyno_sim::NodeId;
use dyno_txn_core::message::{Address, Message};

use super::cluster::{Cluster, LOOK_NS, MS, Timer, procedures, timestamps};
use super::core::Core;
use super::journal::{End, Weather};
use crate::verdict::Rule;

/// The longest time for which a server with a failed disk is away.
const AWAY_NS: u64 = 400 * MS;

impl Cluster {
    /// Handles the crash of a node. In one crash of three only the process ends, and the machine
    /// continues with what it has not written yet.
    pub(super) fn on_crash(&mut self, node: NodeId) {
        self.oracles.crash(node);
        let killed = self.random.one_in(3);
        for core in self.cores.iter_mut().filter(|core| core.node == node) {
            core.crash(killed, &mut self.random);
        }
    }

    /// Ends a server whose disk has failed, and starts it again later.
    pub(super) fn fails(&mut self, core: usize, end: &End) {
        if let End::Broken(sentence) = end {
            let sentence = format!("the log of partition {core}: {sentence}");
            self.broken.push((Rule::Durability, sentence));
        }
        let node = self.cores[core].node;
        self.world.crash(node);
        self.on_crash(node);
        let after = self.random.between(1, AWAY_NS);
        let control = self.clients[0].node;
        self.world.set_timer(control, after, Timer::Start { node });
    }

    /// Sets what disks do: their faults during the storm, and none outside of it.
    pub(super) fn expose(&mut self) {
        let weather = self.weather();
        for core in &mut self.cores {
            core.journal.expose(weather, &mut self.random);
        }
    }

    fn weather(&self) -> Weather {
        match (self.storming, self.lying_disks) {
            (true, true) => Weather::Lying,
            (true, false) if self.chosen.disks_fail => Weather::Storm,
            _ => Weather::Calm,
        }
    }

    pub(super) fn start_oracle(&mut self, number: usize) {
        self.oracles.start(number, self.random.bits() as u32);
        let node = self.oracles.nodes[number];
        self.world
            .set_timer(node, LOOK_NS, Timer::Oracle { number });
    }

    pub(super) fn start(&mut self, node: NodeId) {
        if let Some(number) = self.oracles.number(node) {
            self.start_oracle(number);
        }
        let mine: Vec<usize> = (0..self.cores.len())
            .filter(|&c| self.cores[c].node == node)
            .collect();
        for &core in &mine {
            let timestamps = timestamps(self.chosen, &self.local);
            let disk = (self.weather(), &mut self.random);
            // One partition that cannot read its log ends the whole node, as it would end the
            // process.
            if let Err(end) = self.cores[core].restart(procedures(), timestamps, disk) {
                return self.fails(core, &end);
            }
        }
        if self.chosen.in_process {
            // The oracle ended with the process. What it issued is below the newest timestamp that
            // one of the partitions has seen or stored as its bound.
            let newest = self.cores.iter().map(Core::newest).max().unwrap_or(0);
            self.local.begin(newest);
            mine.into_iter()
                .for_each(|core| self.recovered(core, newest));
        } else {
            mine.into_iter().for_each(|core| self.ask_for_floor(core));
        }
    }

    /// A partition that has read its log asks for a timestamp above all that were issued. It asks
    /// again until it has one.
    pub(super) fn ask_for_floor(&mut self, core: usize) {
        if self.cores[core].recovering.is_none() {
            return;
        }
        let ticket = self.next_id();
        // A new ticket, because the answer to an earlier request may be old by now.
        self.cores[core].recovering = Some(ticket);
        let node = self.cores[core].node;
        let oracle = self.random.below(self.oracles.nodes.len());
        let (from, oracle) = (
            Address::Partition(core as u32),
            Address::Oracle(oracle as u32),
        );
        let ask = Message::TakeTimestamps { ticket, count: 1 };
        self.post(node, from, oracle, ask);
        self.world.set_timer(node, LOOK_NS, Timer::Recover { core });
    }

    pub(super) fn recovered(&mut self, core: usize, timestamp: u64) {
        let now = self.mono(self.cores[core].node);
        match self.cores[core].recovered(now, timestamp) {
            Ok(wants) => self.apply(core, wants),
            Err(sentence) => self.complain(sentence),
        }
        self.plan_checkpoint(core);
    }

    pub(super) fn plan_checkpoint(&mut self, core: usize) {
        let every = self.chosen.checkpoint_every_ns;
        if every > 0 && self.storming {
            let after = every / 2 + self.random.between(0, every);
            let node = self.cores[core].node;
            self.world
                .set_timer(node, after, Timer::Checkpoint { core });
        }
    }
}
