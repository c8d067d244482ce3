//! Where a consumer reads from: the server itself here, a broker elsewhere.

use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Dsn;

use super::pace::Pace;
use super::placed::{Part, Placed};
use crate::connection::Connection;
use crate::error::{Code, Error, Result, Retry};
use crate::fetch::Fetched;
use crate::group::{Assigned, Cursor, Membership};
use crate::placement::HOME;

/// What a member learns when it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// The group's number.
    pub group_id: i32,
    /// The topic's.
    pub topic_id: i32,
    /// Partitions of the topic.
    pub partitions: u32,
}

/// How far a partition reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionEnds {
    /// Its number.
    pub partition: i32,
    /// The first offset that is still there.
    pub first_offset: i64,
    /// The offset that the next record gets.
    pub next_offset: i64,
}

/// A connection of one member of a group, or of a reader without one. After an error it reconnects by itself at the next call.
pub trait Source: Send {
    /// Enters the group.
    ///
    /// # Errors
    /// See [`Connection::join_group`].
    fn join(&mut self, membership: &Membership) -> Result<Joined>;

    /// Finds the topic without entering a group: then only [`Self::ends`] and [`Self::fetch`] may be called.
    ///
    /// # Errors
    /// `unknown-topic`, and whatever the server says.
    fn attach(&mut self, topic: &str) -> Result<Joined>;

    /// How far each partition reaches; joined or attached.
    ///
    /// # Errors
    /// Whatever the server says.
    fn ends(&mut self) -> Result<Vec<PartitionEnds>>;

    /// Renews the lease, gives partitions back, and says what is owned now.
    ///
    /// # Errors
    /// See [`Connection::group_heartbeat`].
    fn heartbeat(&mut self, released: &[i32]) -> Result<Vec<Assigned>>;

    /// Stores cursors and returns the partitions that were refused. What is claimed has to be durable when
    /// this returns; what is committed need not be.
    ///
    /// # Errors
    /// See [`Connection::group_commit`].
    fn commit(&mut self, cursors: &[Cursor]) -> Result<Vec<i32>>;

    /// Leaves the group.
    ///
    /// # Errors
    /// See [`Connection::group_leave`].
    fn leave(&mut self) -> Result<()>;

    /// Moves over what retention took.
    ///
    /// # Errors
    /// See [`Connection::group_skip_lost`].
    fn skip_lost(&mut self, partition: i32, generation: i64) -> Result<i64>;

    /// Reads at these places (partition, offset), at most so many bytes together, but for the first row. Returns as
    /// soon as there is something, with nothing when the wait is over.
    ///
    /// # Errors
    /// See [`Connection::fetch`]; `offset-out-of-range` names one partition of many in no other way than by
    /// [`FetchError::partition`].
    fn fetch(
        &mut self,
        places: &[(i32, i64)],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError>;
}

/// A failed fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchError {
    /// What failed.
    pub error: Error,
    /// At which partition, where it was one.
    pub partition: Option<i32>,
}

impl From<Error> for FetchError {
    fn from(error: Error) -> Self {
        Self {
            error,
            partition: None,
        }
    }
}

/// The source of a topic in direct mode: its server, or all clusters that it lies on.
pub(super) fn direct(dsn: &Dsn, topic: &str, idle_pause: Duration) -> Result<Box<dyn Source>> {
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
    let mut parts = vec![Part::new(
        HOME,
        placement.at_home(partitions),
        Box::new(home),
    )];
    for share in placement.elsewhere {
        // Not connected yet: a cluster that is away now may come back.
        let mut source = Direct::new(&share.dsn, idle_pause);
        source.home = Some(placement.home.clone());
        parts.push(Part::new(
            &share.cluster,
            share.partitions,
            Box::new(source),
        ));
    }
    Ok(Box::new(Placed::new(parts, idle_pause)))
}

/// Direct mode: one session that reads, joins and claims, and one whose commits do not wait for the disk, for cursors that need
/// not be durable and for questions that are forgotten with the server.
pub(super) struct Direct {
    dsn: Dsn,
    /// The identity of the topic's home, when this server has only a share of it.
    home: Option<String>,
    idle_pause: Duration,
    reading: Option<Connection>,
    committing: Option<Connection>,
    joined: Option<(Joined, String)>,
    /// Which place is read first, in turn, so that one busy partition does not starve the others.
    turn: usize,
    pace: Pace,
    /// Where it asked to be told of an append, and when.
    awaited: Option<(Vec<(i32, i64)>, Instant)>,
}

/// How long it waits to be told before it looks all the same: nobody is told of what a pooler between keeps back, or of
/// an append to a server whose queue of notifications is full.
const UNTOLD: Duration = Duration::from_millis(250);

impl Direct {
    pub fn open(dsn: &Dsn, idle_pause: Duration) -> Result<Self> {
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

    /// A lost commit of a cursor is a redelivery, never a loss, so it does not wait for the disk.
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

    /// The places at which there is something to read.
    fn with_news(&mut self, topic_id: i32, places: &[(i32, i64)]) -> Result<Vec<(i32, i64)>> {
        // One place is looked at by reading it: no question is saved by another before it.
        if let [only] = places {
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
        let mut news: Vec<(i32, i64)> = places.to_vec();
        news.retain(|(partition, offset)| end(*partition).is_none_or(|end: i64| end != *offset));
        if !news.is_empty() {
            let first = self.turn % news.len();
            news.rotate_left(first);
        }
        Ok(news)
    }

    /// Asks to be told of appends at these places. False: something is there already.
    fn ask_to_be_told(&mut self, topic_id: i32, places: &[(i32, i64)]) -> Result<bool> {
        self.with_reading(|connection| connection.listen(topic_id, places))?;
        for (partition, offset) in places {
            // Of a server that crashes both ends of this are gone, so it need not be durable.
            let ask = |connection: &mut Connection| {
                connection.will_be_told(topic_id, *partition, *offset)
            };
            if !self.with_committing(ask)? {
                return Ok(false);
            }
        }
        self.awaited = Some((places.to_vec(), Instant::now()));
        Ok(true)
    }

    /// Whether it asked already to be told of these places, and nothing came since.
    fn is_told_of(&self, places: &[(i32, i64)]) -> bool {
        let awaited = self.awaited.as_ref();
        awaited.is_some_and(|(awaited, _)| awaited == places)
    }

    /// Waits until it is told or should look all the same. False: neither was until then.
    fn wait_to_be_told(&mut self, until: Instant) -> Result<bool> {
        let Some((places, asked_at)) = self.awaited.take() else {
            return Ok(true);
        };
        let look_at = asked_at + UNTOLD;
        let wait = until.min(look_at).saturating_duration_since(Instant::now());
        let told = self.with_reading(|connection| connection.wait_to_be_told(wait))?;
        if told || Instant::now() >= look_at {
            return Ok(true);
        }
        self.awaited = Some((places, asked_at));
        Ok(false)
    }

    /// What is there at these places, the first of them that have something.
    fn look(
        &mut self,
        topic_id: i32,
        places: &[(i32, i64)],
        most_bytes: usize,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let mut fetched = Vec::new();
        let mut left = most_bytes;
        for (partition, offset) in self.with_news(topic_id, places)? {
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

fn with<T>(
    place: &mut Option<Connection>,
    open: impl FnOnce() -> Result<Connection>,
    act: impl FnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut connection = match place.take() {
        Some(connection) if !connection.is_closed() => connection,
        _ => open()?,
    };
    let done = act(&mut connection);
    let usable = done
        .as_ref()
        .err()
        .is_none_or(|error| error.retry() != Retry::Unknown);
    if usable && !connection.is_closed() {
        *place = Some(connection);
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
        places: &[(i32, i64)],
        most_bytes: usize,
        wait: Duration,
    ) -> std::result::Result<Vec<(i32, Fetched)>, FetchError> {
        let (_, topic_id, _) = self.member()?;
        let until = Instant::now() + wait;
        let mut empty_looks = 0;
        let asked = !wait.is_zero() && self.is_told_of(places);
        if asked && !self.wait_to_be_told(until)? {
            return Ok(Vec::new());
        }
        loop {
            let fetched = self.look(topic_id, places, most_bytes)?;
            let now = Instant::now();
            if !fetched.is_empty() {
                self.pace.found(now);
            }
            if !fetched.is_empty() || now >= until {
                return Ok(fetched);
            }
            empty_looks += 1;
            match self.pace.pause(empty_looks, self.idle_pause) {
                Some(pause) => thread::sleep(pause.min(until - now)),
                None if self.ask_to_be_told(topic_id, places)? => {
                    if !self.wait_to_be_told(until)? {
                        return Ok(Vec::new());
                    }
                }
                // Something came between the look and the question; or the log ends before this place, as one
                // restored from a copy may.
                None if empty_looks == 1 => {}
                None => thread::sleep(self.idle_pause.min(until - now)),
            }
        }
    }
}
