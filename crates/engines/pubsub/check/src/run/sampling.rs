//! The samples that are taken in a soak, every few seconds.

use std::collections::BTreeMap;
use std::time::Instant;

use super::clients::Clients;
use super::servers::Servers;
use super::soak::{Sample, Soaked, disk_bytes, p99_by_minute};
use super::{Recorder, RunError, readings};
use crate::child::Process;
use crate::clock::now_us;
use dyno_soak::private_bytes;

/// The samples of a soak.
#[derive(Debug)]
pub struct Sampling {
    began: Instant,
    began_us: i64,
    samples: Vec<Sample>,
    log_most_bytes: u64,
}

impl Sampling {
    /// Begins a soak now, without samples.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            began_us: now_us(),
            samples: Vec::new(),
            log_most_bytes: 0,
        }
    }

    /// Takes one sample, and applies retention as an operator's timer would.
    pub fn sample(&mut self, servers: &Servers, clients: &Clients) -> Result<(), RunError> {
        let mut client = servers.connect()?;
        readings::maintain(&mut client)?;
        let of = |processes: &[Process]| {
            let bytes = processes.iter().map(|p| private_bytes(p.child().id()));
            bytes.flatten().sum::<u64>()
        };
        let server = servers.nodes.pids().into_iter().filter_map(private_bytes);
        let mut memory_bytes = BTreeMap::from([
            ("server".to_owned(), server.sum()),
            ("producers".to_owned(), of(&clients.producers)),
            ("consumers".to_owned(), of(&clients.consumers)),
        ]);
        if !clients.brokers.is_empty() {
            memory_bytes.insert("brokers".to_owned(), of(&clients.brokers));
        }
        let (log_bytes, disk_bytes) = disk_bytes(servers.nodes.dir()?);
        self.log_most_bytes = readings::log_most_bytes(&mut client)?;
        self.samples.push(Sample {
            at_s: self.began.elapsed().as_secs_f64(),
            memory_bytes,
            disk_bytes,
            log_bytes,
            dead_rows: readings::dead_rows(&mut client)?,
        });
        Ok(())
    }

    /// Ends the soak and judges the samples.
    pub fn judge(self, recorder: &Recorder) -> Soaked {
        let p99_ms = recorder.with(|history| p99_by_minute(history.events(), self.began_us));
        let seconds = self.began.elapsed().as_secs_f64();
        Soaked::judge(seconds, self.samples, p99_ms, self.log_most_bytes)
    }
}
