//! One thread of the engine: it takes messages in, hands them to its partitions, and does what
//! those want.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use dyno_net::Reactor;
use dyno_txn_api::{Result, Step, Timestamp};

use super::clients::{Clients, Move};
use super::pass::Pass;
use super::peers::Peers;
use super::requests::{NullHandler, RequestHandler};
use super::shard::ShardState;
use super::shared::Shared;
use crate::error::from_net;
use crate::threads::{Command, HostedFrontEnd, PeerThread};

/// Commands taken in one pass at most, so that clients are not kept waiting by other threads.
const COMMANDS_PER_PASS: usize = 256;
/// Passes between two publications of the figures.
const PUBLISH_EVERY: u64 = 1024;
/// The longest sleep.
const SLEEP: Duration = Duration::from_millis(100);
/// How long a thread that waits for a write spins, and how long it then sleeps at a time.
const LOG_SPIN_NS: u64 = 100_000;
const LOG_SLEEP: Duration = Duration::from_micros(20);
/// How long a thread that ends sleeps between two looks at its logs.
const CLOSING_SLEEP: Duration = Duration::from_micros(50);

pub(crate) struct Worker {
    pub reactor: Reactor,
    pub commands: Receiver<Command>,
    pub shared: Arc<Shared>,
    pub peer_threads: Vec<PeerThread>,
    pub shard: ShardState,
    pub clients: Clients,
    pub peers: Peers,
    pub passes: u64,
    pub was_busy: bool,
    /// When it last slept because of its log.
    pub slept_at: u64,
}

impl Worker {
    /// Runs until the engine stops, or a log fails.
    pub fn run(mut self) -> Result<()> {
        let result = self.serve();
        let ended = match result {
            Ok(()) => self.end(),
            Err(error) => Err(error),
        };
        if let Err(error) = &ended {
            self.shared.lifecycle.fail(error.to_string());
        }
        ended
    }

    /// Ends recovery above `floor`.
    pub fn finish_recovery(&mut self, floor: Timestamp) -> Result<()> {
        let (_, _, mut pass) = self.split();
        pass.finish_recovery(floor)
    }

    /// The thread's sources of messages, and all its state as one pass borrows it.
    fn split(&mut self) -> (&mut Reactor, &Receiver<Command>, Pass<'_>) {
        let pass = Pass {
            shared: &self.shared,
            peer_threads: &self.peer_threads,
            shard: &mut self.shard,
            clients: &mut self.clients,
            peers: &mut self.peers,
        };
        (&mut self.reactor, &self.commands, pass)
    }

    fn serve(&mut self) -> Result<()> {
        if let Some(cluster) = &mut self.peers.cluster {
            cluster.start(self.shard.now)?;
        }
        while !self.shared.lifecycle.is_stopping() {
            let mut busy = self.pass()?;
            busy |= self.step_front_end();
            self.passes += 1;
            if self.passes.is_multiple_of(PUBLISH_EVERY) || (!busy && self.was_busy) {
                self.shard.publish(&self.shared);
            }
            self.was_busy = busy;
            if self.shard.waits_for_log() {
                self.idle_for_log(busy)
            } else {
                let (_, _, pass) = self.split();
                let wait = pass.until_timer().min(SLEEP);
                self.reactor.idle(busy, wait).map_err(from_net)?;
            }
        }
        Ok(())
    }

    /// Has the server on this thread, if there is one, read what its clients have sent and write
    /// what the pass has answered. What it submits is in its connection's ring when this returns,
    /// and so part of the next pass. Returns whether there was something to do.
    fn step_front_end(&mut self) -> bool {
        let Some(HostedFrontEnd {
            pipeline,
            front_end,
        }) = &mut self.clients.front_end
        else {
            return false;
        };
        let step = front_end.step(&mut **pipeline);
        let mut busy = step == Step::Busy;
        // Until none is left, because only then everything that was submitted is in the ring.
        while let Some((ticket, answer)) = pipeline.next(Duration::ZERO) {
            front_end.answered(&mut **pipeline, ticket, answer);
            busy = true;
        }
        if step == Step::Over {
            self.clients.front_end = None;
        }
        busy
    }

    /// Waits between two passes while a write is under way. Its end wakes no reactor, so the thread
    /// has to look for it. It cannot spin for ever: where it never gives its core away, the
    /// kernel's own worker for that write may not get the core either, and both would wait. So it
    /// sleeps for a moment when nothing has become durable for a while, and now and then even while
    /// it is busy.
    fn idle_for_log(&mut self, busy: bool) {
        let since = |at: u64| self.shard.now.saturating_sub(at);
        let log_moved_at = self.shard.log_moved_at;
        let is_long = since(log_moved_at.max(self.slept_at)) > LOG_SPIN_NS;
        if is_long || (!busy && since(log_moved_at) > LOG_SPIN_NS) {
            std::thread::sleep(LOG_SLEEP);
            self.slept_at = self.shared.time.now();
        }
        std::hint::spin_loop();
    }

    /// Does everything once. Returns whether there was something to do.
    ///
    /// Partitions run first and logs after them, so that the records of all messages of a pass are
    /// written as one group. What has become durable is then dispatched in the same pass, and its
    /// answers leave with it.
    fn pass(&mut self) -> Result<bool> {
        let (reactor, commands, mut pass) = self.split();
        pass.shard.update_clock(pass.shared);
        let mut busy = false;
        // While a log is full, everything that could append to it waits: commands and frames stay
        // in their queues, which are bounded, instead of records that pile up in memory. Only logs
        // and checkpoints go on, and a checkpoint is what makes room.
        if !pass.shard.is_stalled() {
            busy |= drain_commands(commands, reactor, &mut pass)?;
            busy |= pass.retry_awaiting()?;
            if pass.takes_requests() {
                let lent = pass.reborrow();
                let frames = reactor
                    .poll(&mut RequestHandler { pass: lent })
                    .map_err(from_net)?;
                pass.handle_batch();
                busy |= frames > 0;
                if frames > 0 {
                    pass.ask_for_bound();
                }
            }
            pass.deliver_local();
            busy |= pass.tick();
            busy |= pass.step_peers();
        }
        busy |= pass.step_logs()?;
        // What the other partitions of the thread have just been released to say waits as well. It
        // is delivered in the pass in which the stall ends.
        if !pass.shard.is_stalled() {
            pass.deliver_local();
        }
        busy |= pass.shard.step_checkpoints(pass.shared)?;
        // Even if the pass has failed: what was answered before that is true and may go out.
        // Answers that depend on the log that failed are still held in their partitions.
        send_answers(reactor, &mut pass)?;
        move_connections(reactor, &mut pass)?;
        pass.shard.take_failure()?;
        Ok(busy)
    }

    /// Makes durable and answers what was begun, then closes the logs. No further request is taken.
    fn end(&mut self) -> Result<()> {
        let (reactor, _, mut pass) = self.split();
        while pass.shard.waits_for_log() {
            pass.check_stores()?;
            pass.shard.update_clock(pass.shared);
            if !pass.step_logs()? {
                std::thread::sleep(CLOSING_SLEEP);
            }
            pass.shard.step_checkpoints(pass.shared)?;
            // As in a pass: a checkpoint of a full log may be under way here too.
            if !pass.shard.is_stalled() {
                pass.deliver_local();
            }
            send_answers(reactor, &mut pass)?;
        }
        reactor.poll(&mut NullHandler).map_err(from_net)?;
        pass.shard.publish(pass.shared);
        pass.shard.close()
    }
}

fn drain_commands(
    commands: &Receiver<Command>,
    reactor: &mut Reactor,
    pass: &mut Pass<'_>,
) -> Result<bool> {
    for count in 0..COMMANDS_PER_PASS {
        match commands.try_recv() {
            Ok(Command::Deliver(envelope)) => pass.deliver(envelope),
            Ok(Command::Adopt { port, is_member }) => {
                let id = reactor.attach(*port).map_err(from_net)?;
                if is_member {
                    pass.peers.members.insert(id);
                } else {
                    pass.clients.authenticate(id)
                }
            }
            Ok(Command::Connected(peer, port)) => {
                let id = reactor.attach(*port).map_err(from_net)?;
                if let Some(cluster) = &mut pass.peers.cluster {
                    cluster.connected(peer, id, &mut pass.clients.answers);
                }
            }
            Ok(Command::StoreConnected { store, port }) => pass.shard.attach_store(store, *port),
            Ok(Command::Park(barrier)) => barrier.park(),
            Ok(Command::Host(hosted)) if pass.clients.front_end.is_none() => {
                // Its end closes the descriptor, which is then not watched any more.
                reactor
                    .watch(hosted.front_end.descriptor())
                    .map_err(from_net)?;
                pass.clients.front_end = Some(hosted);
            }
            Ok(Command::Host(_)) => {}
            // The queue is empty. It cannot be closed while this thread runs, because the thread
            // holds a sender to itself among its peers.
            Err(_) => return Ok(count > 0),
        }
    }
    Ok(true)
}

/// Sends the answers that did not go straight into the outbox of the connection being handled.
fn send_answers(reactor: &mut Reactor, pass: &mut Pass<'_>) -> Result<()> {
    let encoded = &mut pass.shard.effects.answers;
    pass.clients.answers.send_encoded(encoded, reactor);
    pass.clients.answers.send(reactor);
    for port in std::mem::take(&mut pass.clients.answers.ended) {
        pass.link_ended(port)?;
    }
    for port in std::mem::take(&mut pass.clients.answers.unread) {
        reactor.close(port);
        pass.disconnect(port)?;
    }
    Ok(())
}

/// Hands connections to the threads that they asked for.
fn move_connections(reactor: &mut Reactor, pass: &mut Pass<'_>) -> Result<()> {
    for Move { port: id, thread } in std::mem::take(&mut pass.clients.moving) {
        let is_member = pass.peers.members.contains(&id);
        pass.disconnect(id)?;
        let Some(port) = reactor.detach(id) else {
            continue;
        };
        let port = Box::new(port);
        // A thread whose queue is full does not get it. The client sees its connection end and
        // connects again.
        pass.peer_threads[thread].send(Command::Adopt { port, is_member });
    }
    Ok(())
}
