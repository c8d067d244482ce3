//! Loads the records of a log, from the offsets in the ledger on.
//!
//! Records of a partition are gathered into a batch until it has enough of them, or is old enough.
//! A batch becomes one archive whose identity names its offsets, so one change of the ledger brings
//! in its rows and moves the place to go on. A process that is killed before that has changed
//! nothing and reads the records again; after it, it goes on behind them. Two that watch one topic
//! into one table cannot double anything: the second finds the offsets taken.

mod batch;
mod fold;
mod partition;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_ingest::table::{Span, stream_name};

pub use source::{Ends, Source};

use self::partition::Partition;
use crate::folder::now_s;
use crate::pause::Pause;
use crate::{Destination, Metrics, SourceError, WatchError, Whose};

/// Feeds whose lines have columns that only their file gives them.
const OF_FILES: [&str; 2] = ["cabrillo", "solar"];
/// Pauses between attempts at a log or a table that is away.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// The longest wait for records, so that a wish to stop is heard.
const WAIT_MOST: Duration = Duration::from_millis(200);
/// Bytes asked of the log at a time.
const FETCH_BYTES: usize = 8 << 20;
/// How often the log is asked how far it reaches.
const ENDS_EVERY: Duration = Duration::from_secs(5);

/// When a batch is committed: at the first of these.
#[derive(Debug, Clone, Copy)]
pub struct Batching {
    /// It has so many records.
    pub records: u64,
    /// Its text has so many bytes.
    pub bytes: usize,
    /// Its first record has waited so long.
    pub wait: Duration,
}

/// How a topic is watched.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// Its name, which is part of the ledger's.
    pub topic: String,
    /// Whose lines the records are.
    pub whose: Whose,
    /// When a batch is committed.
    pub batching: Batching,
    /// Go on behind records that are gone, instead of stopping.
    pub skip_lost: bool,
    /// End when all that was there at the beginning is in the table.
    pub once: bool,
    /// Once: give up when the log is away for so long.
    pub patience: Duration,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Records committed.
    pub records: u64,
    /// Good rows of them.
    pub rows: u64,
    /// Rows in quarantine.
    pub bad_rows: u64,
    /// Commits.
    pub commits: u64,
    /// Records that were gone.
    pub lost: u64,
}

/// A topic whose records are loaded.
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
    /// One that has read nothing yet.
    ///
    /// # Errors
    /// [`WatchError::NoStream`].
    pub fn new(
        settings: StreamSettings,
        source: &'a mut dyn Source,
        destination: &'a dyn Destination,
        metrics: Metrics,
    ) -> Result<Stream<'a>, WatchError> {
        let feed = settings.whose.name();
        if OF_FILES.contains(&feed) {
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

    /// Loads what comes until `stop` is set, or, once, until all that was there is loaded. What was
    /// read by then is committed first. Tells `say` what happens.
    ///
    /// # Errors
    /// [`WatchError::Lost`], [`WatchError::Shorter`], [`WatchError::Batch`], what the log refuses;
    /// once, [`WatchError::Away`].
    pub fn run(
        &mut self,
        stop: &Arc<AtomicBool>,
        say: &dyn Fn(&str),
    ) -> Result<StreamSummary, WatchError> {
        let mut pause = Pause::new(PAUSES.0, PAUSES.1);
        while !stop.load(Ordering::Relaxed) {
            match self.step(say) {
                Ok(true) => return Ok(self.summary),
                Ok(false) => pause.over(),
                Err(error) if error.may_pass() => {
                    self.bear(&error, &mut pause, say)?;
                    pause.wait(stop);
                }
                Err(error) => return Err(error),
            }
        }
        self.commit_all(say)?;
        Ok(self.summary)
    }

    /// A failure that may pass is told of once, and waited out.
    fn bear(
        &mut self,
        error: &WatchError,
        pause: &mut Pause,
        say: &dyn Fn(&str),
    ) -> Result<(), WatchError> {
        self.metrics.errors.add(1);
        let last = error.to_string();
        let (away, news) = pause.failed(&last);
        if self.settings.once && away >= self.settings.patience {
            let waited_s = away.as_secs();
            return Err(WatchError::Away { waited_s, last });
        }
        if news {
            say(&format!("{last}; it is tried again"));
        }
        Ok(())
    }

    /// One fetch, and the commits that are due. True: all that was to be read is in the table.
    fn step(&mut self, say: &dyn Fn(&str)) -> Result<bool, WatchError> {
        if self.asked_at.is_none_or(|at| at.elapsed() >= ENDS_EVERY) {
            self.ask_ends(say)?;
            self.asked_at = Some(Instant::now());
        }
        self.fetch(say)?;
        let now = Instant::now();
        let due = self.partitions.values().filter(|partition| {
            let reached = self.settings.once && partition.next >= partition.goal;
            partition.is_due(&self.settings.batching, now) || reached && partition.records() > 0
        });
        let due: Vec<i32> = due.map(|partition| partition.number).collect();
        for number in due {
            self.commit(number, say)?;
            self.fold(number, say)?;
        }
        let reached = |partition: &Partition| partition.first >= partition.goal;
        Ok(self.settings.once && self.partitions.values().all(reached))
    }

    /// Learns how far the log reaches; a partition that is new begins where the ledger says.
    fn ask_ends(&mut self, say: &dyn Fn(&str)) -> Result<(), WatchError> {
        let ends = self.source.ends().map_err(WatchError::Source)?;
        for ends in ends {
            if !self.partitions.contains_key(&ends.partition) {
                let partition = self.begin(ends, say)?;
                self.partitions.insert(ends.partition, partition);
            }
            if let Some(partition) = self.partitions.get_mut(&ends.partition) {
                partition.end = ends.next;
                partition.tell();
            }
        }
        Ok(())
    }

    fn begin(&mut self, ends: Ends, say: &dyn Fn(&str)) -> Result<Partition, WatchError> {
        let number = ends.partition;
        let topic = &self.settings.topic;
        let stream = stream_name(self.settings.whose.name(), topic, number);
        let known = self.destination.positions()?.remove(&stream);
        let (at, spans) = match known {
            Some(position) => (position.next, position.spans),
            None => (ends.first, Vec::new()),
        };
        let records = |(first, last): (u64, u64)| (first, last - first + 1);
        let folding = spans.into_iter().map(records).collect();
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
        say(&format!(
            "topic {topic} partition {number}: from offset {at}, {} records are waiting",
            ends.next - at
        ));
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
        self.skip_lost(&mut partition, ends, say)?;
        Ok(partition)
    }

    /// Goes over records that are gone, where that is allowed.
    fn skip_lost(
        &mut self,
        partition: &mut Partition,
        ends: Ends,
        say: &dyn Fn(&str),
    ) -> Result<(), WatchError> {
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
        say(&format!(
            "topic {topic} partition {number}: offsets {first} to {last} are gone and left out"
        ));
        self.summary.lost += last - first + 1;
        self.metrics.lost.add(last - first + 1);
        partition.first = ends.first;
        partition.next = ends.first;
        Ok(())
    }

    fn fetch(&mut self, say: &dyn Fn(&str)) -> Result<(), WatchError> {
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
        let wait = due.map_or(WAIT_MOST, |due| due.min(WAIT_MOST));
        let partitions = &mut self.partitions;
        let mut take = |number: i32, offset: u64, value: &[u8]| {
            if let Some(partition) = partitions.get_mut(&number) {
                partition.add(offset, value);
            }
        };
        match self.source.fetch(&places, FETCH_BYTES, wait, &mut take) {
            Err(SourceError::OutOfRange(reason)) => self.out_of_range(reason, say),
            fetched => fetched.map_err(WatchError::Source),
        }
    }

    /// What was read stays; what is gone behind it is gone over, or is the end.
    fn out_of_range(&mut self, reason: String, say: &dyn Fn(&str)) -> Result<(), WatchError> {
        self.commit_all(say)?;
        let mut gone = false;
        for ends in self.source.ends().map_err(WatchError::Source)? {
            let Some(mut partition) = self.partitions.remove(&ends.partition) else {
                continue;
            };
            gone |= partition.next < ends.first;
            let skipped = self.skip_lost(&mut partition, ends, say);
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
        match gone {
            true => Ok(()),
            false => Err(WatchError::Source(SourceError::Refused(reason))),
        }
    }

    fn commit_all(&mut self, say: &dyn Fn(&str)) -> Result<(), WatchError> {
        let numbers: Vec<i32> = self.partitions.keys().copied().collect();
        for number in numbers {
            self.commit(number, say)?;
        }
        Ok(())
    }

    /// Puts a batch into the table. After a failure it is as it was, and can be tried again.
    fn commit(&mut self, number: i32, say: &dyn Fn(&str)) -> Result<(), WatchError> {
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
                partition.text = text.to_vec();
                return Err(error);
            }
        };
        if bad_rows > 0 {
            say(&format!("{span}: {bad_rows} bad rows are in quarantine"));
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
