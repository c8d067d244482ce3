//! The flags of commands that log while they run.

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, Copy, Default, ClapArgs)]
pub struct LogArgs {
    /// Log what is at least this important, on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
    /// Log lines for people, or one JSON object a line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// What was lost, refused or given up
    Error,
    /// What is tried again, or may need an operator
    Warn,
    /// What was done: a file loaded, a connection made
    #[default]
    Info,
    /// Each step
    Debug,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level and message
    #[default]
    Text,
    /// For a collector of logs
    Json,
}
