//! A topic of pubsub as a source of records.

use std::time::Duration;

use dyno_ingest_watch::{Ends, Source, SourceError};
use dyno_pubsub::{Address, Code, ConsumerOptions, Error, Position, Reader, Retry};

use crate::args::PubsubPlaceArgs;
use crate::cmd::pubsub::log;

/// A topic as a source. It connects when it is first read, so that a log that starts later than
/// this program is not a failure.
pub struct Topic {
    name: String,
    address: Address,
    options: ConsumerOptions,
    reader: Option<Reader>,
}

impl Topic {
    pub fn new(name: &str, place: &PubsubPlaceArgs) -> anyhow::Result<Topic> {
        Ok(Topic {
            name: name.to_owned(),
            address: log::address(place)?,
            options: ConsumerOptions {
                token: log::token(place)?,
                tls: log::tls(place)?,
                ..ConsumerOptions::default()
            },
            reader: None,
        })
    }

    fn reader(&mut self) -> Result<&mut Reader, SourceError> {
        // A reader that failed to open is not kept, so that the next call tries again.
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Reader::open(&self.address, &self.name, &self.options).map_err(of_log)?,
        };
        Ok(self.reader.insert(reader))
    }
}

impl Source for Topic {
    fn ends(&mut self) -> Result<Vec<Ends>, SourceError> {
        let ends = self.reader()?.ends().map_err(of_log)?;
        let ends = ends.into_iter().map(|is| Ends {
            partition: is.partition,
            first: is.first_offset.max(0).cast_unsigned(),
            next: is.next_offset.max(0).cast_unsigned(),
        });
        Ok(ends.collect())
    }

    fn fetch(
        &mut self,
        places: &[(i32, u64)],
        most_bytes: usize,
        wait: Duration,
        take: &mut dyn FnMut(i32, u64, &[u8]),
    ) -> Result<(), SourceError> {
        let positions: Vec<Position> = places
            .iter()
            .map(|(partition, offset)| Position {
                partition: *partition,
                offset: i64::try_from(*offset).unwrap_or(i64::MAX),
            })
            .collect();
        let messages = self.reader()?.read(&positions, most_bytes, wait);
        for message in messages.map_err(|failed| of_log(failed.error))? {
            let offset = message.offset.max(0).cast_unsigned();
            take(message.partition, offset, &message.value);
        }
        Ok(())
    }
}

fn of_log(error: Error) -> SourceError {
    match (error.kind(), error.retry()) {
        (Code::OffsetOutOfRange, _) => SourceError::OutOfRange(error.to_string()),
        (_, Retry::Never) => SourceError::Refused(error.to_string()),
        // An offset that was removed by retention and an error that no retry mends end the watch.
        // Everything else may pass, so the watch tries again.
        _ => SourceError::Away(error.to_string()),
    }
}
