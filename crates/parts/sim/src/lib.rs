//! A simulated world for tests, in one thread, all decided by one seed: nodes with clocks, a
//! network and disks, every one of them with faults. The same seed and the same calls give the same
//! run.
//!
//! | to simulate | take |
//! |---|---|
//! | nodes that send messages and set timers | [`World`]; [`Settings`], [`Event`] |
//! | delays, loss, duplicates, reordering | [`Link`], [`Delay`], [`World::set_link`] |
//! | partitions, one-way ones too | [`World::cut`], [`World::part`], [`World::heal`], [`Cut`] |
//! | crashes and restarts | [`World::crash`], [`World::start`]; by themselves: [`Storm`] |
//! | clocks with steps and drift within a bound | [`ClockFaults`], [`World::wall_ns`], [`SimClock`] |
//! | rare paths switched on by seed | [`Rare`], [`World::rare`] |
//! | whether two runs were the same | [`World::trace`], [`Trace::hash`] |
//! | a node's disk (make one for each) | [`Disk`], [`Faults`], [`SimFile`], [`SimQueue`] |
//!
//! The user asks the world what happens next and lets the node it happens to act: nothing here
//! calls back. So a state machine that takes its time, its messages and its disk from outside runs
//! here as it runs in production.
//!
//! ```
//! use dyno_sim::{Event, Link, NodeId, Settings, World};
//!
//! /// One node asks another until it has answers to all its questions.
//! fn run(seed: u64) -> (u64, usize) {
//!     let mut settings = Settings::calm(seed);
//!     settings.link = Link { loss_per_million: 300_000, ..Link::default() };
//!     let mut world: World<u32, u32> = World::new(settings);
//!     let (asker, answerer) = (world.add_node("asker"), world.add_node("answerer"));
//!     let mut answers = std::collections::BTreeSet::new();
//!     let ask = |world: &mut World<u32, u32>, question| {
//!         world.send(asker, answerer, question);
//!         world.set_timer(asker, 1_000_000, question);
//!     };
//!     ask(&mut world, 0);
//!     while let Some(event) = world.next_until(1_000_000_000) {
//!         match event {
//!             Event::Message { to, message, .. } if to == answerer => {
//!                 world.send(answerer, asker, message);
//!             }
//!             Event::Message { message, .. } => {
//!                 if answers.insert(message) && message < 9 {
//!                     ask(&mut world, message + 1);
//!                 }
//!             }
//!             Event::Timer { timer, .. } if !answers.contains(&timer) => ask(&mut world, timer),
//!             _ => {}
//!         }
//!     }
//!     (world.trace().hash(), answers.len())
//! }
//!
//! assert_eq!(run(7).1, 10, "all questions are answered, however many messages are lost");
//! assert_eq!(run(7), run(7), "one seed, one run");
//! assert_ne!(run(7).0, run(8).0);
//! ```
//!
//! # The disk
//!
//! [`Disk`] stands for the file system below `dyno-io`'s sinks: it is a [`dyno_io::FileSystem`],
//! its files are [`dyno_io::Device`]s, and [`SimQueue`] stands for io_uring. Every call that can
//! fail is a step with a number, so that a test can put a fault or a crash at each in turn.
//!
//! ## The crash model
//!
//! A crash loses what was not synced, but not in order and not whole:
//!
//! - Of the writes since a file's last sync each, on its own, survives, is lost, or is torn: then
//!   each of its sectors of 512 bytes survives or not. The write that was going on counts among
//!   them.
//! - A change of length since then survives or not, on its own. A lost sector within the surviving
//!   length reads as zeros, or as stale bytes that were never written.
//! - New, changed and removed names since their directory's last sync survive or not, each on its
//!   own. A rename is one step: there is no moment without a file under the name it replaces.
//!   Syncing a file does not sync its name.
//! - A failed sync leaves each unsynced change as a crash would, and what it lost is lost for good:
//!   a later sync that succeeds does not bring it back (as on Linux, where a page that could not be
//!   written back is marked clean).
//!
//! That is weaker than what ext4 and XFS promise (they keep the order of names, for example), so
//! what holds here needs no promise of theirs.
//!
//! Files opened with [`dyno_io::Syncing::EachWrite`] know no sync: a write that ended well is
//! stable, and one that a crash finds in flight meets the same fate as an unsynced one.
//! [`Disk::damage`] rots a byte, [`Lie`] is a write that is confirmed and is not there or is
//! elsewhere, and [`Disk::after_kill`] is what the next process finds while the machine goes on.
//! Not modelled: two processes at once.

mod clock;
mod crash;
mod disk;
mod events;
mod file;
mod network;
mod queue;
mod rare;
mod storm;
mod trace;
mod world;

pub use clock::{ClockFaults, SimClock};
pub use disk::{Disk, Failure, Faults, Lie};
pub use dyno_random::Random;
pub use events::EventQueue;
pub use file::SimFile;
pub use network::{Cut, Delay, Link, NodeId};
pub use queue::SimQueue;
pub use rare::Rare;
pub use storm::Storm;
pub use trace::Trace;
pub use world::{Counts, Event, Settings, TimerId, World};
