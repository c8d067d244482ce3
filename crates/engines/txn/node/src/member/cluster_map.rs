//! Which process hosts which partitions, and where it listens.

use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::PartitionId;

const VERSION: u8 = 1;
/// Processes of a database at most.
pub(super) const PROCESSES_MAX: u32 = 1024;
/// Threads of a process at most.
pub(super) const THREADS_MAX: u32 = 1024;
/// Partitions of a database at most.
pub(super) const PARTITIONS_MAX: u32 = 65_536;
/// The longest address, in bytes.
const ADDRESS_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Process {
    /// `HOST:PORT`. Empty means the process that sends the map or, if `threads` is 0, not known.
    pub address: String,
    pub threads: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterMap {
    pub partitions: u32,
    /// Process I hosts the partitions that are I modulo the number of processes.
    pub processes: Vec<Process>,
}

impl ClusterMap {
    /// One process that hosts everything.
    pub fn single(partitions: u32, threads: u32) -> Self {
        let address = String::new();
        let processes = vec![Process { address, threads }];
        Self {
            partitions,
            processes,
        }
    }

    /// `of` processes, none of which is known.
    pub fn unknown(partitions: u32, of: u32) -> Self {
        let processes = vec![Process::default(); of as usize];
        Self {
            partitions,
            processes,
        }
    }

    /// Which process hosts a partition, and on which of its threads. `None` if that is not known.
    pub fn home(&self, partition: PartitionId) -> Option<(usize, usize)> {
        let of = self.processes.len();
        let process = partition as usize % of;
        let threads = self.processes[process].threads as usize;
        (threads > 0).then(|| (process, partition as usize / of % threads))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.partitions.to_le_bytes());
        out.extend_from_slice(&(self.processes.len() as u32).to_le_bytes());
        for process in &self.processes {
            out.extend_from_slice(&process.threads.to_le_bytes());
            out.extend_from_slice(&(process.address.len() as u16).to_le_bytes());
            out.extend_from_slice(process.address.as_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::new(Code::Damaged, "a map that does not parse");
        let (&version, mut rest) = bytes.split_first().ok_or_else(damaged)?;
        if version != VERSION {
            let text = format!("a map of version {version}: this program has {VERSION}");
            return Err(Error::new(Code::NewerVersion, text));
        }
        let partitions = number(&mut rest).ok_or_else(damaged)?;
        let count = number(&mut rest).ok_or_else(damaged)?;
        // Checked before anything is allocated for them.
        if !(1..=PROCESSES_MAX).contains(&count) || !(1..=PARTITIONS_MAX).contains(&partitions) {
            return Err(damaged());
        }
        let mut processes = Vec::new();
        for _ in 0..count {
            processes.push(process(&mut rest).ok_or_else(damaged)?);
        }
        if rest.is_empty() {
            Ok(Self {
                partitions,
                processes,
            })
        } else {
            Err(damaged())
        }
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (front, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*front))
}

fn process(bytes: &mut &[u8]) -> Option<Process> {
    let threads = number(bytes).filter(|&threads| threads <= THREADS_MAX)?;
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (address, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    let address = std::str::from_utf8(address).ok()?;
    (address.len() <= ADDRESS_MAX).then(|| Process {
        address: address.to_owned(),
        threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_has_the_bytes_of_the_table() {
        let address = "a:1".to_owned();
        let processes = vec![
            Process::default(),
            Process {
                address,
                threads: 2,
            },
        ];
        let partitions = 6;
        let map = ClusterMap {
            partitions,
            processes,
        };
        let bytes = [
            1, 6, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, b'a', b':', b'1',
        ];
        assert_eq!(map.encode(), bytes);
        assert_eq!(ClusterMap::decode(&bytes), Ok(map.clone()));
        for length in 0..bytes.len() {
            assert!(ClusterMap::decode(&bytes[..length]).is_err(), "{length}");
        }
        let newer = ClusterMap::decode(&[2]).expect_err("newer");
        assert_eq!(newer.kind(), Code::NewerVersion);
        assert_eq!(map.home(2), None);
        assert_eq!(
            [1, 3, 5].map(|p| map.home(p)),
            [Some((1, 0)), Some((1, 1)), Some((1, 0))]
        );
    }
}
