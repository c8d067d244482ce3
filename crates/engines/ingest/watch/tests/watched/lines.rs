//! A log for tests: lines of a file, dealt to partitions in turn, some of which may be gone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dyno_ingest_watch::{Ends, Source, SourceError};

#[derive(Default)]
pub struct Lines {
    pub partitions: Vec<Vec<Vec<u8>>>,
    /// The first offset that is still there, of all partitions.
    pub first: u64,
    /// Records handed on by one fetch at most.
    pub most: usize,
    /// Calls that fail before one succeeds.
    pub away: u32,
    /// Where all partitions end for now; nothing: at their end.
    pub end: Option<u64>,
}

impl Lines {
    pub fn from_file(file: &Path, partitions: usize) -> Lines {
        let mut dealt = vec![Vec::new(); partitions];
        let text = fs::read(file).unwrap();
        for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            dealt[at % partitions].push(line.to_vec());
        }
        Lines {
            partitions: dealt,
            most: 500,
            ..Lines::default()
        }
    }

    fn end(&self, partition: usize) -> u64 {
        let end = self.partitions[partition].len() as u64;
        self.end.map_or(end, |bound| bound.min(end))
    }

    fn answers(&mut self) -> Result<(), SourceError> {
        if self.away > 0 {
            self.away -= 1;
            return Err(SourceError::Away("nobody listens".to_owned()));
        }
        Ok(())
    }
}

impl Source for Lines {
    fn ends(&mut self) -> Result<Vec<Ends>, SourceError> {
        self.answers()?;
        let ends = (0..self.partitions.len()).map(|at| Ends {
            partition: at as i32,
            first: self.first,
            next: self.end(at),
        });
        Ok(ends.collect())
    }

    fn fetch(
        &mut self,
        places: &[(i32, u64)],
        _most_bytes: usize,
        _wait: Duration,
        take: &mut dyn FnMut(i32, u64, &[u8]),
    ) -> Result<(), SourceError> {
        self.answers()?;
        for (partition, offset) in places {
            let end = self.end(*partition as usize);
            if *offset < self.first || *offset > end {
                return Err(SourceError::OutOfRange(format!("offset {offset}")));
            }
            let lines = &self.partitions[*partition as usize];
            let upto = end.min(offset + self.most as u64);
            for at in *offset..upto {
                take(*partition, at, &lines[at as usize]);
            }
        }
        Ok(())
    }
}
