//! Loads the records of a log, beginning at the offsets in the ledger.
//!
//! Records of a partition are gathered into a batch until it is large or old enough. A batch
//! becomes one archive whose identity names its offsets, so one change of the ledger adds its rows
//! and moves the position. A process that is killed before that has changed nothing and reads the
//! records again; one that is killed after it continues behind them. Two processes that watch one
//! topic into one table cannot load a record twice, because the second finds the offsets taken.

mod batch;
mod fold;
mod partition;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_ingest::table::{Span, stream_name};
use dyno_ingest_feeds::Feed;
use tracing::{info, warn};

pub use source::{Ends, Source};

use self::partition::Partition;
use crate::folder::now_s;
use crate::pause::Pause;
use crate::{Destination, Metrics, SourceError, WatchError};

/// Shortest and longest pause between attempts while a log or a table is away.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The longest wait for records, so that a stop request is noticed.
const WAIT_MOST: Duration = Duration::from_millis(200);
/// Bytes of one fetch.
const FETCH_BYTES: usize = 8 << 20;
/// How often the log is asked for its ends.
const ENDS_EVERY: Duration = Duration::from_secs(5);

/// A batch is committed when the first of these limits is reached.
#[derive(Debug, Clone, Copy)]
pub struct Batching {
    /// Most records in a batch.
    pub records: u64,
    /// Most bytes of a batch's text.
    pub bytes: usize,
    /// The longest that its first record waits.
    pub wait: Duration,
}

/// The topic to watch, and when to commit and to stop.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// The topic's name, which is part of the stream's name in the ledger.
    pub topic: String,
    /// The feed that the records are lines of.
    pub feed: &'static Feed,
    /// The limits at which a batch is committed.
    pub batching: Batching,
    /// Skip records that retention has removed, instead of stopping.
    pub skip_lost: bool,
    /// End once everything that was there at the beginning is in the table.
    pub once: bool,
    /// With `once`: give up when the log has been away for this long.
    pub patience: Duration,
}

/// Counts since the watch began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Records that were committed, good or bad.
    pub records: u64,
    /// Good rows among the records.
    pub rows: u64,
    /// Rows that were put into quarantine.
    pub bad_rows: u64,
    /// Batches that were committed, each in one commit.
    pub commits: u64,
    /// Records skipped because retention had removed them.
    pub lost: u64,
}

/// A topic whose records are loaded into one table.
pub struct Stream<'a> {
    settings: StreamSettings,
    source: &'a mut dyn Source,
    destination: &'a dyn Destination,
    metrics: Metrics,
    partitions: BTreeMap<i32, Partition>,
    asked_at: Option<Instant>,
    summary: StreamSummary,
}

impl<'a> Stream<'a> {
    /// Prepares to watch; nothing has been read yet.
    ///
    /// # Errors
    /// [`WatchError::NoStream`].
    pub fn new(
        settings: StreamSettings,
        source: &'a mut dyn Source,
        destination: &'a dyn Destination,
        metrics: Metrics,
    ) -> Result<Stream<'a>, WatchError> {
        if !settings.feed.lines_stand_alone {
            let feed = settings.feed.name;
            return Err(WatchError::NoStream { feed });
        }
        Ok(Stream {
            settings,
            source,
            destination,
            metrics,
            partitions: BTreeMap::new(),
            asked_at: None,
            summary: StreamSummary::default(),
        })
    }

    /// Loads records until `stop` is set or, with `once`, until all that was there is loaded.
    /// Commits what it has read before it returns. Logs what happens.
    ///
    /// # Errors
    /// [`WatchError::Lost`], [`WatchError::Shorter`], [`WatchError::Batch`], what the log refuses;
    /// once, [`WatchError::Away`].
    pub fn run(&mut self, stop: &Arc<AtomicBool>) -> Result<StreamSummary, WatchError> {
        let mut pause = Pause::new(PAUSES.0, PAUSES.1);
        while !stop.load(Ordering::Relaxed) {
            match self.step() {
                Ok(true) => return Ok(self.summary),
                Ok(false) => pause.over(),
                Err(error) if error.may_pass() => {
                    self.bear(&error, &mut pause)?;
                    pause.wait(stop);
                }
                Err(error) => return Err(error),
            }
        }
        // What was read is committed before the process ends, so that the next one does not have to
        // read it again.
        self.commit_all()?;
        Ok(self.summary)
    }

    /// Reports a failure that may pass once, and waits.
    fn bear(&mut self, error: &WatchError, pause: &mut Pause) -> Result<(), WatchError> {
        self.metrics.errors.add(1);
        let last = error.to_string();
        let (away, news) = pause.failed(&last);
        if self.settings.once && away >= self.settings.patience {
            let waited_s = away.as_secs();
            return Err(WatchError::Away { waited_s, last });
        }
        if news {
            warn!("{last}; it is tried again");
        }
        Ok(())
    }

    /// Fetches once and commits what is due. Returns true if everything that was to be read is in
    /// the table.
    fn step(&mut self) -> Result<bool, WatchError> {
        if self.asked_at.is_none_or(|at| at.elapsed() >= ENDS_EVERY) {
            self.ask_ends()?;
            self.asked_at = Some(Instant::now());
        }
        self.fetch()?;
        let now = Instant::now();
        let due = self.partitions.values().filter(|partition| {
            let reached = self.settings.once && partition.next >= partition.goal;
            partition.is_due(&self.settings.batching, now) || reached && partition.records() > 0
        });
        let due: Vec<i32> = due.map(|partition| partition.number).collect();
        for number in due {
            self.commit(number)?;
            self.fold(number)?;
        }
        let reached = |partition: &Partition| partition.first >= partition.goal;
        Ok(self.settings.once && self.partitions.values().all(reached))
    }

    /// Asks how far the log reaches. A new partition begins where the ledger says.
    fn ask_ends(&mut self) -> Result<(), WatchError> {
        let ends = self.source.ends().map_err(WatchError::Source)?;
        for ends in ends {
            if !self.partitions.contains_key(&ends.partition) {
                let partition = self.begin(ends)?;
                self.partitions.insert(ends.partition, partition);
            }
            if let Some(partition) = self.partitions.get_mut(&ends.partition) {
                partition.end = ends.next;
                partition.tell();
            }
        }
        Ok(())
    }

    fn begin(&mut self, ends: Ends) -> Result<Partition, WatchError> {
        let number = ends.partition;
        let topic = &self.settings.topic;
        let stream = stream_name(self.settings.feed.name, topic, number);
        // The ledger decides where to begin, because it was committed together with the rows. There
        // is no other record of the position.
        let known = self.destination.positions()?.remove(&stream);
        let (at, spans) = match known {
            Some(position) => (position.next, position.spans),
            None => (ends.first, Vec::new()),
        };
        let records = |(first, last): (u64, u64)| (first, last - first + 1);
        let folding = spans.into_iter().map(records).collect();
        // A log that ends before the ledger's position is another log or an old copy. Its next
        // records would get offsets that are in the table already, and could not be loaded.
        if at > ends.next {
            return Err(WatchError::Shorter {
                topic: topic.clone(),
                partition: number,
                end: ends.next,
                next: at,
            });
        }
        let metrics = self.metrics.partition(topic, number);
        let metrics = metrics.map_err(|error| WatchError::Destination {
            reason: error.to_string(),
            again: false,
        })?;
        info!(
            waiting = ends.next - at,
            "topic {topic} partition {number}: reading from offset {at}"
        );
        let mut partition = Partition {
            number,
            stream,
            metrics,
            end: ends.next,
            goal: ends.next,
            first: at,
            next: at,
            text: Vec::new(),
            since: None,
            sealed: false,
            folding,
        };
        self.skip_lost(&mut partition, ends)?;
        Ok(partition)
    }

    /// Skips records that retention has removed, or fails unless that is allowed.
    fn skip_lost(&mut self, partition: &mut Partition, ends: Ends) -> Result<(), WatchError> {
        if partition.next >= ends.first {
            return Ok(());
        }
        let (first, last) = (partition.next, ends.first - 1);
        let (topic, number) = (self.settings.topic.clone(), partition.number);
        if !self.settings.skip_lost {
            return Err(WatchError::Lost {
                topic,
                partition: number,
                first,
                last,
            });
        }
        warn!(
            "topic {topic} partition {number}: offsets {first} to {last} are gone and are left out"
        );
        self.summary.lost += last - first + 1;
        self.metrics.lost.add(last - first + 1);
        partition.first = ends.first;
        partition.next = ends.first;
        Ok(())
    }

    fn fetch(&mut self) -> Result<(), WatchError> {
        let batching = self.settings.batching;
        let places: Vec<(i32, u64)> = self
            .partitions
            .values()
            .filter(|partition| partition.takes(&batching))
            .map(|partition| (partition.number, partition.next))
            .collect();
        if places.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let oldest = self
            .partitions
            .values()
            .filter_map(|partition| partition.since);
        let due = oldest
            .min()
            .map(|since| (since + batching.wait).saturating_duration_since(now));
        // The fetch must not outlast the moment at which the oldest batch is due for its commit.
        let wait = due.map_or(WAIT_MOST, |due| due.min(WAIT_MOST));
        let partitions = &mut self.partitions;
        let mut take = |number: i32, offset: u64, value: &[u8]| {
            if let Some(partition) = partitions.get_mut(&number) {
                partition.add(offset, value);
            }
        };
        match self.source.fetch(&places, FETCH_BYTES, wait, &mut take) {
            Err(SourceError::OutOfRange(reason)) => self.out_of_range(reason),
            fetched => fetched.map_err(WatchError::Source),
        }
    }

    /// Commits what was read, then skips what is gone behind it, or fails.
    fn out_of_range(&mut self, reason: String) -> Result<(), WatchError> {
        self.commit_all()?;
        let mut gone = false;
        for ends in self.source.ends().map_err(WatchError::Source)? {
            let Some(mut partition) = self.partitions.remove(&ends.partition) else {
                continue;
            };
            // If nothing is gone, the log refused offsets that it claims to have, and asking again
            // would not end.
            gone |= partition.next < ends.first;
            let skipped = self.skip_lost(&mut partition, ends);
            let next = partition.next;
            self.partitions.insert(ends.partition, partition);
            skipped?;
            if next > ends.next {
                return Err(WatchError::Shorter {
                    topic: self.settings.topic.clone(),
                    partition: ends.partition,
                    end: ends.next,
                    next,
                });
            }
        }
        if gone {
            Ok(())
        } else {
            Err(WatchError::Source(SourceError::Refused(reason)))
        }
    }

    fn commit_all(&mut self) -> Result<(), WatchError> {
        let numbers: Vec<i32> = self.partitions.keys().copied().collect();
        for number in numbers {
            self.commit(number)?;
        }
        Ok(())
    }

    /// Loads a batch. After a failure the batch is unchanged and can be tried again.
    fn commit(&mut self, number: i32) -> Result<(), WatchError> {
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(());
        };
        if partition.records() == 0 {
            return Ok(());
        }
        let span = Span {
            stream: partition.stream.clone(),
            first: partition.first,
            last: partition.next - 1,
        };
        // If the load fails, it may still have been committed. The retry must then have the same
        // offsets to be found in the ledger, so until it succeeds the batch takes no more records.
        partition.sealed = true;
        let text = std::mem::take(&mut partition.text);
        let text = Arc::<[u8]>::from(text);
        let loaded = batch::load(&self.settings, self.destination, number, &span, &text);
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(());
        };
        let (rows, bad_rows) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                // The batch is whole again, so the retry has the same bytes and finds a commit that
                // succeeded.
                partition.text = text.to_vec();
                return Err(error);
            }
        };
        if bad_rows > 0 {
            warn!(bad_rows, "{span}: bad rows are in quarantine");
        }
        let records = partition.records();
        partition.folding.push((span.first, records));
        partition.first = partition.next;
        partition.since = None;
        partition.sealed = false;
        partition.end = partition.end.max(partition.next);
        partition.tell();
        self.summary.records += records;
        self.summary.rows += rows;
        self.summary.bad_rows += bad_rows;
        self.summary.commits += 1;
        let metrics = &self.metrics;
        metrics.loaded.add(1);
        metrics.records.add(records);
        metrics.rows.add(rows);
        metrics.bad_rows.add(bad_rows);
        metrics.bytes.add(text.len() as u64);
        metrics.committed_at_s.set(now_s());
        Ok(())
    }
}
