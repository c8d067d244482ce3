//! The flags that name a database, for all commands that run transactions.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use dyno_txn_api::Target;
use dyno_txn_node::Durability;
use dyno_txn_postgres::Isolation;

use crate::units::bytes;

/// The database, and how to reach it.
#[derive(Debug, Clone, ClapArgs)]
pub struct OnArgs {
    /// Use this database: local:DIR, dyno://HOST:PORT, etcd://HOST:PORT,..., or postgres:DSN
    #[arg(long, value_name = "ENGINE")]
    pub on: Target,
    /// Give the rows of local:DIR at most SIZE of memory
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub memory: u64,
    /// Pin one thread of local:DIR to each core of LIST: 1, or 2-9, or 0,2,4
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub cores: Option<Cores>,
    /// Read the token from FILE [default: the environment variable DYNO_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS, and trust the root certificates in PEM
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    /// Stay on TCP when the server is on this host, instead of moving to shared memory
    #[arg(long)]
    pub no_ring: bool,
}

/// What the transactions of a command promise. Commands that run none do not take these flags.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct GuaranteeArgs {
    /// Acknowledge a commit of local:DIR after fsync, or when it is in memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// Run transactions of postgres:DSN at isolation level LEVEL
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "serializable")]
    pub isolation: IsolationArg,
}

/// Isolation level of a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum IsolationArg {
    /// As if one ran after the other
    #[default]
    Serializable,
    /// Statements see committed rows; rows that are read stay locked until the end
    ReadCommitted,
}

impl From<IsolationArg> for Isolation {
    fn from(arg: IsolationArg) -> Isolation {
        match arg {
            IsolationArg::Serializable => Isolation::Serializable,
            IsolationArg::ReadCommitted => Isolation::ReadCommitted,
        }
    }
}

/// Numbers of processor cores, each at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// Parses a list of cores, such as `1`, `2-9` or `0,2,4-6`.
pub fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || format!("`{text}` is not a list of cores, such as 1, 2-9 or 0,2,4");
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= 4_096 {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    if cores
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len()
        == cores.len()
    {
        Ok(Cores(cores))
    } else {
        Err(format!("`{text}` names a core twice"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(cores("1"), Ok(Cores(vec![1])));
        assert_eq!(cores("2-4,8"), Ok(Cores(vec![2, 3, 4, 8])));
        for wrong in ["", "a", "4-2", "1,1", "5000"] {
            assert!(cores(wrong).is_err(), "{wrong}");
        }
    }
}
