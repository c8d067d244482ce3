//! Watching as a library: folders, a log in memory, and both under kill -9.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod folder;
mod killed;
mod lines;
mod scene;
mod stream;
