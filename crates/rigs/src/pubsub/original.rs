//! The protocol of the original benchmark, pg_msg_bench: its tables, its statements and its
//! transaction boundaries, and its driver's way to send an array of byte strings. Two steps of the
//! ladder beside it keep all of that but the way in which the array travels, or also drop what a
//! log does not need.
//!
//! What is ours here is the client alone. It asks for no more round trips than the original and
//! pays less for garbage collection, so the original is at most this fast.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_pubsub::Dsn;
use postgres::types::private::BytesMut;
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};

use super::FlowError;
use super::server::connect;
use super::way::{Reader, Way, Writer};

/// How batches are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The original unchanged: arrays travel as text, in hexadecimal digits.
    TextArray,
    /// The same with arrays in binary form.
    Binary,
    /// In binary form, with one statement per write and one index. Readers keep their positions
    /// themselves and commit them when they have read something.
    Lean,
}

/// The original's tables, and clients for them.
pub(super) struct Original {
    pub dsn: Dsn,
    pub step: Step,
    pub partitions: usize,
    pub groups: usize,
    pub read_batch: usize,
}

/// The statement with which its driver begins a transaction.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

impl Original {
    fn partition_table(&self, partition: usize) -> String {
        if self.step == Step::Lean {
            return format!(
                "CREATE TABLE topicpartition{partition} (
                   c_offset bigint PRIMARY KEY,
                   payload bytea NOT NULL,
                   created_at timestamptz NOT NULL DEFAULT now());"
            );
        }
        format!(
            "CREATE TABLE topicpartition{partition} (
               id bigserial PRIMARY KEY,
               c_offset bigint UNIQUE NOT NULL,
               payload bytea NOT NULL,
               created_at timestamptz NOT NULL DEFAULT now());"
        )
    }
}

impl Way for Original {
    fn prepare(&self) -> Result<(), FlowError> {
        let mut client = connect(&self.dsn)?;
        client.batch_execute(
            "CREATE TABLE log_counter (id int PRIMARY KEY, next_offset bigint NOT NULL);
             CREATE TABLE consumer_offsets (
               group_id text NOT NULL, topic_id int NOT NULL, next_offset bigint NOT NULL DEFAULT 1,
               PRIMARY KEY (group_id, topic_id));",
        )?;
        for partition in 1..=self.partitions {
            client.batch_execute(&self.partition_table(partition))?;
            client.batch_execute(&format!(
                "INSERT INTO log_counter VALUES ({partition}, 1);
                 ALTER TABLE topicpartition{partition} SET (autovacuum_analyze_scale_factor = 0.05);"
            ))?;
            for group in 0..self.groups {
                client.execute(
                    "INSERT INTO consumer_offsets (group_id, topic_id) VALUES ($1, $2)",
                    &[&format!("g{group}"), &(partition as i32)],
                )?;
            }
        }
        Ok(())
    }

    fn writer(&self, writer: usize) -> Result<Box<dyn Writer>, FlowError> {
        let mut client = connect(&self.dsn)?;
        let partition = writer % self.partitions + 1;
        let insert = client.prepare_typed(
            &format!(
                "WITH reserve AS (
                   UPDATE log_counter SET next_offset = next_offset + $1
                   WHERE id = $3::int
                   RETURNING (next_offset - $1) AS first_off)
                 INSERT INTO topicpartition{partition}(c_offset, payload)
                 SELECT r.first_off + p.ord - 1, p.payload
                 FROM reserve r, unnest($2::bytea[]) WITH ORDINALITY AS p(payload, ord)"
            ),
            &[Type::INT8, Type::BYTEA_ARRAY, Type::INT4],
        )?;
        Ok(Box::new(OriginalWriter {
            client,
            insert,
            partition: partition as i32,
            step: self.step,
        }))
    }

    fn reader(&self, group: usize, reader: usize) -> Result<Box<dyn Reader>, FlowError> {
        let mut client = connect(&self.dsn)?;
        // A group has one fixed reader for each partition.
        let partition = reader + 1;
        let read = client.prepare(&format!(
            "SELECT c_offset, payload, created_at FROM topicpartition{partition}
             WHERE c_offset BETWEEN $1 AND $2 ORDER BY c_offset"
        ))?;
        let group = format!("g{group}");
        if self.step == Step::Lean {
            let tip = client.prepare("SELECT next_offset FROM log_counter WHERE id = $1")?;
            let commit = client.prepare(
                "UPDATE consumer_offsets SET next_offset = $3 WHERE group_id = $1 AND topic_id = $2",
            )?;
            return Ok(Box::new(LeanReader {
                client,
                tip,
                read,
                commit,
                group,
                partition: partition as i32,
                batch: self.read_batch as i64,
                next: 1,
            }));
        }
        let claim = client.prepare(
            "WITH counter_tip AS (
               SELECT (next_offset - 1) AS highest FROM log_counter WHERE id = $3::int),
             to_claim AS (
               SELECT c.group_id, c.next_offset AS n0,
                 LEAST($2::bigint, GREATEST(0, (SELECT highest FROM counter_tip) - c.next_offset + 1)) AS delta
               FROM consumer_offsets c
               WHERE c.group_id = $1::text AND c.topic_id = $3::int
               FOR UPDATE),
             upd AS (
               UPDATE consumer_offsets c SET next_offset = c.next_offset + t.delta
               FROM to_claim t
               WHERE c.group_id = t.group_id AND c.topic_id = $3::int
               RETURNING t.n0 AS first, (c.next_offset - 1) AS last)
             SELECT first, last FROM upd",
        )?;
        Ok(Box::new(OriginalReader {
            client,
            claim,
            read,
            group,
            partition: partition as i32,
            batch: self.read_batch as i64,
        }))
    }
}

struct OriginalWriter {
    client: Client,
    insert: Statement,
    partition: i32,
    step: Step,
}

impl Writer for OriginalWriter {
    fn write(
        &mut self,
        messages: &[Vec<u8>],
        done: &mut dyn FnMut(usize),
    ) -> Result<(), FlowError> {
        let count = messages.len() as i64;
        match self.step {
            Step::TextArray => {
                self.client.batch_execute(BEGIN)?;
                let array = TextArray(messages);
                self.client
                    .execute(&self.insert, &[&count, &array, &self.partition])?;
                self.client.batch_execute("COMMIT")?;
            }
            Step::Binary => {
                self.client.batch_execute(BEGIN)?;
                self.client
                    .execute(&self.insert, &[&count, &messages, &self.partition])?;
                self.client.batch_execute("COMMIT")?;
            }
            Step::Lean => {
                self.client
                    .execute(&self.insert, &[&count, &messages, &self.partition])?;
            }
        }
        done(messages.len());
        Ok(())
    }

    fn flush(&mut self, _done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        Ok(())
    }
}

struct OriginalReader {
    client: Client,
    claim: Statement,
    read: Statement,
    group: String,
    partition: i32,
    batch: i64,
}

impl Reader for OriginalReader {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        self.client.batch_execute(BEGIN)?;
        let claimed = self
            .client
            .query_one(&self.claim, &[&self.group, &self.batch, &self.partition])?;
        let (first, last): (i64, i64) = (claimed.get(0), claimed.get(1));
        if first > last {
            self.client.batch_execute("COMMIT")?;
            std::thread::sleep(empty_poll_pause(unix_ns()));
            return Ok(0);
        }
        let rows = self.client.query(&self.read, &[&first, &last])?;
        for row in &rows {
            each(self.partition as u32, row.get(1));
        }
        self.client.batch_execute("COMMIT")?;
        Ok(rows.len())
    }
}

/// How long the original sleeps after a poll that found nothing: `jitter(100 us, 2 ms)` of its
/// `pubsub/reader.go` (commit 8164907). It draws by a xorshift of the clock, and takes the
/// remainder of a signed number: half of what it draws is negative, a sleep of which ends at once.
/// So about half of its empty polls do not sleep at all, the mean is about half a millisecond, and
/// the longest is 2 ms.
fn empty_poll_pause(now_ns: i64) -> Duration {
    const LEAST_NS: i64 = 100_000;
    const SPAN_NS: i64 = 1_900_000;
    let mut drawn = now_ns;
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    Duration::from_nanos(u64::try_from(LEAST_NS + drawn % SPAN_NS).unwrap_or(0))
}

fn unix_ns() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}

struct LeanReader {
    client: Client,
    tip: Statement,
    read: Statement,
    commit: Statement,
    group: String,
    partition: i32,
    batch: i64,
    next: i64,
}

impl Reader for LeanReader {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        let tip: i64 = self.client.query_one(&self.tip, &[&self.partition])?.get(0);
        let last = (tip - 1).min(self.next + self.batch - 1);
        if self.next > last {
            std::thread::sleep(empty_poll_pause(unix_ns()));
            return Ok(0);
        }
        let rows = self.client.query(&self.read, &[&self.next, &last])?;
        for row in &rows {
            each(self.partition as u32, row.get(1));
        }
        self.next = last + 1;
        self.client
            .execute(&self.commit, &[&self.group, &self.partition, &self.next])?;
        Ok(rows.len())
    }
}

/// Appends bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for part in bytes.chunks(64) {
        let mut digits = [0; 128];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(part) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        out.extend_from_slice(&digits[..2 * part.len()]);
    }
}

/// An array of byte strings as the original's driver sends it: text, each element in hexadecimal
/// digits.
#[derive(Debug)]
struct TextArray<'a>(&'a [Vec<u8>]);

impl ToSql for TextArray<'_> {
    fn to_sql(
        &self,
        _type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.reserve(2 + self.0.iter().map(|m| 2 * m.len() + 7).sum::<usize>());
        out.extend_from_slice(b"{");
        for (position, message) in self.0.iter().enumerate() {
            let opening: &[u8] = if position == 0 {
                b"\"\\\\x"
            } else {
                b",\"\\\\x"
            };
            out.extend_from_slice(opening);
            hexadecimal(message, out);
            out.extend_from_slice(b"\"");
        }
        out.extend_from_slice(b"}");
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA_ARRAY
    }

    fn encode_format(&self, _type: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_polls_pause_as_the_original_does() {
        // A poll every millisecond for some minutes: the sign changes only every second or so.
        let now = 1_763_800_000_000_000_000_i64;
        let pauses: Vec<Duration> = (0..200_000)
            .map(|n| empty_poll_pause(now + n * 1_000_003))
            .collect();
        let none = pauses.iter().filter(|pause| pause.is_zero()).count() as f64 / 200_000.0;
        assert!((0.40..0.60).contains(&none), "{none} of them do not sleep");
        let mean = pauses.iter().sum::<Duration>() / 200_000;
        assert!(
            (400..600).contains(&mean.as_micros()),
            "the mean is {mean:?}"
        );
        assert!(pauses.iter().max() < Some(&Duration::from_millis(2)));
    }

    #[test]
    fn an_array_is_written_as_the_driver_of_the_original_does() {
        let mut out = BytesMut::new();
        let messages = [vec![0x00, 0xff], vec![0x5c]];
        TextArray(&messages)
            .to_sql(&Type::BYTEA_ARRAY, &mut out)
            .expect("text");
        assert_eq!(&out[..], br#"{"\\x00ff","\\x5c"}"#);
    }
}
