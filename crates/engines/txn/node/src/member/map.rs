//! Which process has which partitions, and where it listens.

use dyno_txn_api::{Code, Error, Result};
use dyno_txn_core::message::PartitionId;

const VERSION: u8 = 1;
/// Processes of a database, and threads of one, at most; the longest address.
const PARTS_MAX: usize = 1024;
const THREADS_MAX: u32 = 1024;
const ADDRESS_MAX: usize = 300;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part {
    /// `HOST:PORT`; empty: the one that says it, or, with no threads, not known.
    pub address: String,
    pub threads: u32,
}

/// All processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    pub partitions: u32,
    /// Process I has the partitions that are I modulo their number.
    pub parts: Vec<Part>,
}

impl Map {
    /// One process with everything.
    pub fn single(partitions: u32, threads: u32) -> Self {
        let address = String::new();
        let parts = vec![Part { address, threads }];
        Self { partitions, parts }
    }

    /// So many processes, none of which is known.
    pub fn unknown(partitions: u32, of: u32) -> Self {
        let parts = vec![Part::default(); of as usize];
        Self { partitions, parts }
    }

    /// Which process, and which of its threads, has a partition. None: it is not known.
    pub fn home(&self, partition: PartitionId) -> Option<(usize, usize)> {
        let of = self.parts.len();
        let part = partition as usize % of;
        let threads = self.parts[part].threads as usize;
        (threads > 0).then(|| (part, partition as usize / of % threads))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.partitions.to_le_bytes());
        out.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        for part in &self.parts {
            out.extend_from_slice(&part.threads.to_le_bytes());
            out.extend_from_slice(&(part.address.len() as u16).to_le_bytes());
            out.extend_from_slice(part.address.as_bytes());
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
        let count = number(&mut rest).ok_or_else(damaged)? as usize;
        if !(1..=PARTS_MAX).contains(&count) || !(1..=65_536).contains(&partitions) {
            return Err(damaged());
        }
        let mut parts = Vec::new();
        for _ in 0..count {
            parts.push(part(&mut rest).ok_or_else(damaged)?);
        }
        match rest.is_empty() {
            true => Ok(Self { partitions, parts }),
            false => Err(damaged()),
        }
    }
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (front, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*front))
}

fn part(bytes: &mut &[u8]) -> Option<Part> {
    let threads = number(bytes).filter(|&threads| threads <= THREADS_MAX)?;
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (address, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    let address = std::str::from_utf8(address).ok()?;
    (address.len() <= ADDRESS_MAX).then(|| Part {
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
        let parts = vec![
            Part::default(),
            Part {
                address,
                threads: 2,
            },
        ];
        let partitions = 6;
        let map = Map { partitions, parts };
        let bytes = [
            1, 6, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, b'a', b':', b'1',
        ];
        assert_eq!(map.encode(), bytes);
        assert_eq!(Map::decode(&bytes), Ok(map.clone()));
        for length in 0..bytes.len() {
            assert!(Map::decode(&bytes[..length]).is_err(), "{length}");
        }
        let newer = Map::decode(&[2]).expect_err("newer");
        assert_eq!(newer.kind(), Code::NewerVersion);
        assert_eq!(map.home(2), None);
        assert_eq!(
            [1, 3, 5].map(|p| map.home(p)),
            [Some((1, 0)), Some((1, 1)), Some((1, 0))]
        );
    }
}
