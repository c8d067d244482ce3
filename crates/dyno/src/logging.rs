//! The log of commands that run until they are stopped: lines on standard error, each with its
//! time in UTC and a level, as text or as JSON.
//!
//! Standard output stays with what a script waits for, such as the address of a listener. Commands
//! that end by themselves print their messages without time and level.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

use crate::args::{LogArgs, LogFormat, LogLevel};

/// Starts the log of this process, which must be done once, before threads are started that log.
pub fn start(args: LogArgs) {
    let log = tracing_subscriber::fmt()
        .with_max_level(filter(args.log_level))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // A line that cannot be written is lost. Complaining about it on the same standard error
        // would panic, and a daemon must outlive the pipe and the disk that its log goes to.
        .log_internal_errors(false);
    match args.log_format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
