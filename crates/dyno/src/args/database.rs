//! Which database, as commands of transactions are told.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use dyno_rigs::txn::{Durability, Isolation};
use dyno_txn_api::Target;

use crate::units::bytes;

/// Which database.
#[derive(Debug, Clone, ClapArgs)]
pub struct OnArgs {
    /// The database: local:DIR, dyno://HOST:PORT, etcd://HOST:PORT,..., or postgres:DSN
    #[arg(long, value_name = "ENGINE")]
    pub on: Target,
    /// When our engine in this process acknowledges: fsync or memory
    #[arg(long, value_name = "MODE", default_value = "fsync")]
    pub durability: Durability,
    /// Memory for rows of our engine in this process
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4GiB")]
    pub memory: u64,
    /// Pin the threads of our engine in this process: 1, or 2-9, or 0,2,4
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub cores: Option<Cores>,
    /// A file with the token of a server of ours [default: what DYNO_TOKEN holds]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS with a server of ours whose certificate these roots have signed
    #[arg(long, value_name = "PEM")]
    pub tls_ca: Option<PathBuf>,
    /// Do not move to shared memory when the server is on this host
    #[arg(long)]
    pub no_ring: bool,
    /// Isolation level of transactions on a database that speaks PostgreSQL's protocol
    #[arg(long, value_enum, default_value = "serializable")]
    pub isolation: IsolationArg,
}

/// Isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IsolationArg {
    /// As if one after the other
    Serializable,
    /// Statements see what is committed; rows that are read stay locked until the end
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

/// Numbers of processor cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// `1`, `2-9`, `0,2,4-6`.
pub fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || format!("`{text}` is no list of cores, such as 1, 2-9 or 0,2,4");
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
    match cores
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len()
        == cores.len()
    {
        true => Ok(Cores(cores)),
        false => Err(format!("`{text}` names a core twice")),
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
