//! One thread of the engine: takes messages in, hands them to its partitions, and does what those want.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use dyno_net::Reactor;
use dyno_txn_api::Result;
use dyno_txn_core::Partition;
use dyno_txn_core::message::{Address, Message};

use super::checkpoint::Writing;
use super::door::Door;
use super::journal::Journal;
use super::work::Work;
use crate::error::from_net;
use crate::threads::{Command, Envelope};

/// Mail taken in one pass at most.
const MAIL_PER_PASS: usize = 256;
/// Passes between two looks at the figures.
const PUBLISH_EVERY: u64 = 1024;
/// The longest sleep.
const SLEEP: Duration = Duration::from_millis(100);
/// How long a thread that waits for a write spins, and how long it naps then.
const LOG_SPIN_NS: u64 = 100_000;
const LOG_NAP: Duration = Duration::from_micros(20);
/// What a thread that stops waits for its log at most.
const LAST_LOOK: Duration = Duration::from_micros(50);

/// A partition with its log.
pub(crate) struct Hosted {
    pub partition: Partition,
    pub journal: Journal,
    pub checkpoint: Option<Writing>,
}

/// A thread's whole state.
pub(crate) struct Core {
    pub reactor: Reactor,
    pub work: Work,
    pub mail: Receiver<Command>,
    pub passes: u64,
    pub was_busy: bool,
    /// When it last gave its core away for its log's sake.
    pub napped_at: u64,
}

impl Core {
    /// Runs until the engine stops, or a log fails.
    pub fn run(mut self) -> Result<()> {
        let result = self.serve();
        let ended = match result {
            Ok(()) => self.end(),
            Err(error) => Err(error),
        };
        if let Err(error) = &ended {
            self.work.shared.lifecycle.fail(error.to_string());
        }
        ended
    }

    fn serve(&mut self) -> Result<()> {
        while !self.work.shared.lifecycle.is_stopping() {
            let busy = self.pass()?;
            self.passes += 1;
            if self.passes.is_multiple_of(PUBLISH_EVERY) || (!busy && self.was_busy) {
                self.work.publish();
            }
            self.was_busy = busy;
            match self.work.waits_for_the_log() {
                true => self.idle_for_the_log(busy)?,
                false => {
                    let wait = self.work.until_timer().min(SLEEP);
                    self.reactor.idle(busy, wait).map_err(from_net)?;
                }
            }
        }
        Ok(())
    }

    /// The end of a write wakes nobody, and where this thread never gives its core away the kernel's own
    /// worker for the write may not get it either: with nothing else to do, and also now and then while
    /// there is, it naps.
    fn idle_for_the_log(&mut self, busy: bool) -> Result<()> {
        let now = self.work.now;
        let quiet_since = self.work.log_moved_at.max(self.napped_at);
        let spun_ns = now.saturating_sub(quiet_since);
        if spun_ns > LOG_SPIN_NS
            || (!busy && now.saturating_sub(self.work.log_moved_at) > LOG_SPIN_NS)
        {
            std::thread::sleep(LOG_NAP);
            self.napped_at = self.work.shared.time.now();
        }
        std::hint::spin_loop();
        Ok(())
    }

    /// Everything once. Whether there was something to do.
    fn pass(&mut self) -> Result<bool> {
        self.work.look_at_the_clock();
        let mut busy = false;
        if !self.work.is_still() {
            busy |= self.take_mail()?;
            busy |= self.work.retry_held()?;
            if self.work.takes_more() {
                let mut door = Door {
                    work: &mut self.work,
                };
                let frames = self.reactor.poll(&mut door).map_err(from_net)?;
                self.work.handle_together();
                busy |= frames > 0;
                if frames > 0 {
                    self.work.ask_for_bound();
                }
            }
            self.work.deliver_own()?;
            busy |= self.work.tick()?;
            busy |= self.work.step_elsewhere()?;
        }
        busy |= self.work.step_logs()?;
        self.work.deliver_own()?;
        busy |= self.work.step_checkpoints()?;
        self.send()?;
        self.move_ports()?;
        match self.work.failed.take() {
            Some(error) => Err(error),
            None => Ok(busy),
        }
    }

    fn take_mail(&mut self) -> Result<bool> {
        for count in 0..MAIL_PER_PASS {
            match self.mail.try_recv() {
                Ok(Command::Deliver(Envelope { from, to, message })) => {
                    self.work.deliver(from, to, message);
                }
                Ok(Command::Adopt { port, is_member }) => {
                    let id = self.reactor.attach(*port).map_err(from_net)?;
                    match is_member {
                        true => self.work.members.insert(id),
                        false => self.work.welcomed.insert(id),
                    };
                }
                Ok(Command::Connected(peer, port)) => {
                    let id = self.reactor.attach(*port).map_err(from_net)?;
                    self.work.linked(peer, id);
                }
                Ok(Command::StoreConnected { store, port }) => self.work.attach_store(store, *port),
                Ok(Command::Park(barrier)) => barrier.park(),
                Err(_) => return Ok(count > 0),
            }
        }
        Ok(true)
    }

    /// Sends answers that no connection's own turn could take.
    fn send(&mut self) -> Result<()> {
        let answers = &mut self.work.effects.answers;
        self.work.answers.send_bytes(answers, &mut self.reactor);
        self.work.answers.send(&mut self.reactor);
        for port in std::mem::take(&mut self.work.answers.ended) {
            self.work.link_ended(port)?;
        }
        for port in std::mem::take(&mut self.work.answers.unread) {
            self.reactor.close(port);
            self.work.unwelcome(port)?;
        }
        Ok(())
    }

    /// Connections that asked for another thread go there.
    fn move_ports(&mut self) -> Result<()> {
        for (id, core) in std::mem::take(&mut self.work.moving) {
            let is_member = self.work.members.remove(&id);
            self.work.unwelcome(id)?;
            let Some(port) = self.reactor.detach(id) else {
                continue;
            };
            // A thread with too much to do does not get it: the client sees its connection end.
            let port = Box::new(port);
            self.work.peer_threads[core].send(Command::Adopt { port, is_member });
        }
        Ok(())
    }

    /// What was promised is made durable and said; then the logs are closed.
    fn end(&mut self) -> Result<()> {
        while self.work.waits_for_the_log() {
            self.work.check_stores()?;
            self.work.look_at_the_clock();
            if !self.work.step_logs()? {
                std::thread::sleep(LAST_LOOK);
            }
            self.work.step_checkpoints()?;
            self.work.deliver_own()?;
            self.send()?;
        }
        // Whoever still sends is not heard, but what was answered goes out.
        let mut deaf = super::door::Deaf;
        self.reactor.poll(&mut deaf).map_err(from_net)?;
        self.work.publish();
        self.work.close()
    }
}

/// A bound for the oracle's stamps, as a message to partition 0.
pub(crate) fn keep_bound(bound: u64) -> (Address, Message) {
    (Address::Oracle(0), Message::KeepBound { epoch: 1, bound })
}
