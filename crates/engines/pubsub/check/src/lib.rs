//! Checks that the log keeps its promises: a run drives producers and consumers while a nemesis
//! kills, stops and cuts, and a checker judges what they saw.
//!
//! [`message`] defines what a message carries, [`history`] keeps what was asked and answered,
//! [`checker`] judges it by rules that share no code with the engine, and [`proxy`] cuts
//! connections where it hurts most. A run proves nothing about power loss: kill -9 keeps the page
//! cache, so a missing fsync does not show here.

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
