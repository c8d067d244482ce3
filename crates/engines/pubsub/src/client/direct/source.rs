//! A consumer's source in direct mode: two sessions with the server, or such a source for each
//! cluster that has a share of the topic.

use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Dsn;

use super::super::pace::Pace;
use super::super::placed::{Placed, Share};
use super::super::source::{FetchError, Joined, PartitionEnds, Source};
use crate::connection::Connection;
use crate::error::{Code, Error, Result, Retry};
use crate::fetch::Fetched;
use crate::group::{Assigned, Cursor, Membership};
use crate::placement::HOME;
use crate::topic::Position;

/// The source of a topic: its server, or the servers of all clusters that have a share of its
/// partitions.
pub fn open_source(dsn: &Dsn, topic: &str, idle_pause: Duration) -> Result<Box<dyn Source>> {
    let mut home = Direct::open(dsn, idle_pause)?;
    let found = home.with_reading(|connection| {
        let topic = connection.topic(topic)?;
        Ok((topic.options.partitions, connection.placement(&topic)?))
    });
    let (partitions, placement) = match found {
        Ok((partitions, Some(placement))) => (partitions, placement),
        Ok((_, None)) => return Ok(Box::new(home)),
        Err(error) => return Err(error),
    };
    let mut parts = vec![Share::new(
        HOME,
        placement.at_home(partitions),
        Box::new(home),
    )];
    for share in placement.elsewhere {
        // It connects at its first use, because a cluster that is down now may be back by then.
        let mut source = Direct::new(&share.dsn, idle_pause);
        source.home = Some(placement.home.clone());
        parts.push(Share::new(
            &share.cluster,
            share.partitions,
            Box::new(source),
        ));
    }
    Ok(Box::new(Placed::new(parts, idle_pause)))
}

/// Direct mode, with two sessions. One reads, joins and claims. Commits of the other do not wait
/// for the disk; it stores cursors that need not be durable, and requests for notices, which mean
/// nothing after the server has crashed.
struct Direct {
    dsn: Dsn,
    /// The identity of the topic's home cluster, if this server has only a share of the topic.
    home: Option<String>,
    idle_pause: Duration,
    reading: Option<Connection>,
    committing: Option<Connection>,
    joined: Option<(Joined, String)>,
    /// Rotates which position is read first, so that one busy partition does not starve the others.
    turn: usize,
    pace: Pace,
    /// The positions for which it has requested a notice of the next append, and when.
    awaited: Option<(Vec<Position>, Instant)>,
}

/// How long it waits for a notice before it reads without one. A notice may never come: a
/// connection pooler may keep it back, and a server whose queue of notifications is full drops it.
const NOTICE_WAIT: Duration = Duration::from_millis(250);

impl Direct {
    fn open(dsn: &Dsn, idle_pause: Duration) -> Result<Self> {
        let mut direct = Self::new(dsn, idle_pause);
        direct.with_reading(Connection::check_schema)?;
        Ok(direct)
    }

    fn new(dsn: &Dsn, idle_pause: Duration) -> Self {
        Self {
            dsn: dsn.clone(),
            home: None,
            idle_pause,
            reading: None,
            committing: None,
            joined: None,
            turn: 0,
            pace: Pace::new(Instant::now()),
            awaited: None,
        }
    }

    fn with_reading<T>(&mut self, act: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        with(
            &mut self.reading,
            || Connection::open_session(&self.dsn, "dyno-consumer", &[]),
            act,
        )
    }

    /// Runs `act` on the session that does not wait for the disk. A commit that is lost with the
    /// server causes a redelivery, never a loss.
    fn with_committing<T>(&mut self, act: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let settings = [("synchronous_commit", "off")];
        let open = || Connection::open_session(&self.dsn, "dyno-consumer-commits", &settings);
        with(&mut self.committing, open, act)
    }

    fn member(&self) -> Result<(i32, i32, String)> {
        let (joined, member) = self.joined.as_ref().ok_or_else(|| {
            Error::new(Code::UnknownMember, "the consumer has not joined its group")
        })?;
        Ok((joined.group_id, joined.topic_id, member.clone()))
    }

    /// Keeps the positions at which there are records to read.
    fn with_records(&mut self, topic_id: i32, positions: &[Position]) -> Result<Vec<Position>> {
        // A single position is read at once: asking first for its end would cost a round trip more.
        if let [only] = positions {
            return Ok(vec![*only]);
        }
        self.turn = self.turn.wrapping_add(1);
        let ends = self.with_reading(|connection| {
            let statement = connection.prepared(
                "SELECT partition, next_offset FROM pubsub.partitions WHERE topic_id = $1 ORDER BY partition",
            )?;
            let rows = connection.client().query(&statement, &[&topic_id]);
            rows.map_err(Error::statement(format_args!("read the ends of topic {topic_id}")))
        })?;
        let end = |partition: i32| {
            ends.iter()
                .find(|row| row.get::<_, i32>(0) == partition)
                .map(|row| row.get(1))
        };
        let mut news: Vec<Position> = positions.to_vec();
        news.retain(|at| end(at.partition).is_none_or(|end: i64| end != at.offset));
        if !news.is_empty() {
            let first = self.turn % news.len();
            news.rotate_left(first);
        }
        Ok(news)
    }

    /// Requests a notice of the next append at these positions. Returns false if there are records
    /// already, so that a notice would come too late.
    fn request_notice(&mut self, topic_id: i32, positions: &[Position]) -> Result<bool> {
        self.with_reading(|connection| connection.listen(topic_id, positions))?;
        for Position { partition, offset } in positions {
            // A crash of the server ends this session too, so the request need not survive it.
            let ask = |connection: &mut Connection| {
                connection.request_notice(topic_id, *partition, *offset)
            };
            if !self.with_committing(ask)? {
                return Ok(false);
            }
        }
        self.awaited = Some((positions.to_vec(), Instant::now()));
        Ok(true)
    }

    /// Whether a notice is requested for these positions and has not come yet.
    fn awaits(&self, positions: &[Position]) -> bool {
        let awaited = self.awaited.as_ref();
        awaited.is_some_and(|(awaited, _)| awaited == positions)
    }

    /// Waits for the notice. Returns true when it is time to read: a notice came, or it is overdue.
    /// Returns false if `until` was reached first; the request then stays open for the next call.
    fn wait_for_notice(&mut self, until: Instant) -> Result<bool> {
        let Some((positions, asked_at)) = self.awaited.take() else {
            return Ok(true);
        };
        let read_at = asked_at + NOTICE_WAIT;
        let wait = until.min(read_at).saturating_duration_since(Instant::now());
        let notified = self.with_reading(|connection| connection.wait_for_notice(wait))?;
        if notified || Instant::now() >= read_at {
            return Ok(true);
        }
        self.awaited = Some((positions, asked_at));
        Ok(false)
    }

    /// Reads what is there at these positions. It stops early once less than an eighth of
    /// `most_bytes` is left, because the next partition could not fill a useful batch.
    fn read_available(
        &mut self,
        topic_id: i32,
        positions: &[Position],
        most_bytes: usize,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let mut fetched = Vec::new();
        let mut left = most_bytes;
        for Position { partition, offset } in self.with_records(topic_id, positions)? {
            let read =
                self.with_reading(|connection| connection.fetch(topic_id, partition, offset, left));
            let read = read.map_err(|error| FetchError {
                error,
                partition: Some(partition),
            })?;
            let bytes: usize = read.rows.iter().map(|row| row.body.len()).sum();
            left = left.saturating_sub(bytes);
            if !read.rows.is_empty() {
                fetched.push((partition, read));
            }
            if left < most_bytes / 8 {
                break;
            }
        }
        Ok(fetched)
    }
}

/// Runs `act` on the session in `slot`, which it opens first if the slot is empty. The session is
/// kept unless the outcome is unknown: then an answer may still be under way on it, and the next
/// statement would read that one.
fn with<T>(
    slot: &mut Option<Connection>,
    open: impl FnOnce() -> Result<Connection>,
    act: impl FnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut connection = match slot.take() {
        Some(connection) if !connection.is_closed() => connection,
        _ => open()?,
    };
    let done = act(&mut connection);
    let usable = done
        .as_ref()
        .err()
        .is_none_or(|error| error.retry() != Retry::Unknown);
    if usable && !connection.is_closed() {
        *slot = Some(connection);
    }
    done
}

impl Source for Direct {
    fn join(&mut self, membership: &Membership) -> Result<Joined> {
        let home = self.home.clone();
        let joined = self.with_reading(|connection| {
            if let Some(home) = home {
                connection.share_of(&membership.topic, &home)?;
            }
            let topic = connection.topic(&membership.topic)?;
            Ok(Joined {
                group_id: connection.join_group(membership)?,
                topic_id: topic.topic_id,
                partitions: topic.options.partitions,
            })
        })?;
        self.joined = Some((joined, membership.member.clone()));
        Ok(joined)
    }

    fn attach(&mut self, topic: &str) -> Result<Joined> {
        let home = self.home.clone();
        let joined = self.with_reading(|connection| {
            if let Some(home) = home {
                connection.share_of(topic, &home)?;
            }
            let topic = connection.topic(topic)?;
            Ok(Joined {
                group_id: 0,
                topic_id: topic.topic_id,
                partitions: topic.options.partitions,
            })
        })?;
        self.joined = Some((joined, String::new()));
        Ok(joined)
    }

    fn ends(&mut self) -> Result<Vec<PartitionEnds>> {
        let (_, topic_id, _) = self.member()?;
        let partitions = self.with_reading(|connection| connection.partitions(topic_id))?;
        let ends = partitions.into_iter().map(|is| PartitionEnds {
            partition: is.partition,
            first_offset: is.first_offset,
            next_offset: is.next_offset,
        });
        Ok(ends.collect())
    }

    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>> {
        let (group_id, _, member) = self.member()?;
        self.with_reading(|connection| connection.group_heartbeat(group_id, &member, released))
    }

    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>> {
        let (group_id, _, member) = self.member()?;
        let commit =
            |connection: &mut Connection| connection.group_commit(group_id, &member, cursors);
        if cursors.iter().any(|cursor| cursor.claimed_to.is_some()) {
            self.with_reading(commit)
        } else {
            self.with_committing(commit)
        }
    }

    fn leave(&mut self) -> Result<()> {
        let (group_id, _, member) = self.member()?;
        self.with_reading(|connection| connection.group_leave(group_id, &member))?;
        self.joined = None;
        Ok(())
    }

    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64> {
        let (group_id, _, member) = self.member()?;
        self.with_reading(|connection| {
            connection.group_skip_lost(group_id, &member, partition, generation)
        })
    }

    fn fetch(
        &mut self,
        positions: &[Position],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let (_, topic_id, _) = self.member()?;
        let until = Instant::now() + wait;
        let mut empty_reads = 0;
        let asked = !wait.is_zero() && self.awaits(positions);
        if asked && !self.wait_for_notice(until)? {
            return Ok(Vec::new());
        }
        loop {
            let fetched = self.read_available(topic_id, positions, most_bytes)?;
            let now = Instant::now();
            if !fetched.is_empty() {
                self.pace.found(now);
            }
            if !fetched.is_empty() || now >= until {
                return Ok(fetched);
            }
            empty_reads += 1;
            match self.pace.pause(empty_reads, self.idle_pause) {
                Some(pause) => thread::sleep(pause.min(until - now)),
                None if self.request_notice(topic_id, positions)? => {
                    if !self.wait_for_notice(until)? {
                        return Ok(Vec::new());
                    }
                }
                // A record was appended between the read and the request, so it is read at once.
                // When that finds nothing either, the log ends before our position, as one restored
                // from a backup may: then we must not spin.
                None if empty_reads == 1 => {}
                None => thread::sleep(self.idle_pause.min(until - now)),
            }
        }
    }
}
