//! `dyno beside`: a load of the lab, as a process of its own.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
pub struct BesideArgs {
    #[command(subcommand)]
    pub load: BesideLoad,
}

/// What keeps the machine busy.
#[derive(Debug, Subcommand)]
pub enum BesideLoad {
    /// Spin on every logical processor
    Cpu,
    /// Copy between arrays that are larger than the caches
    Memory,
    /// Write to a file in the working directory and make each write durable
    Disk,
    /// Run a shell command
    Shell {
        /// Command for `sh -c`
        #[arg(value_name = "CMD")]
        command: String,
    },
}
