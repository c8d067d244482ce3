//! Proof that the log keeps its promises: a run drives producers and consumers while a nemesis
//! kills, stops and cuts, and a checker judges what they saw.
//!
//! What it is: [`message`] says what a message carries, [`history`] keeps what was asked and
//! answered, [`checker`] judges it by rules that share no code with the engine, [`proxy`] cuts
//! connections where it hurts most. What it is not: a proof about power loss. kill -9 keeps the
//! page cache, so a missing fsync does not show here.

#[macro_use]
extern crate dyno_messages;

pub mod checker;
pub mod child;
mod clock;
pub mod history;
pub mod message;
pub mod nemesis;
pub mod proxy;
pub mod run;
