//! How much topics and queues hold, and how far groups are behind, for Prometheus. Every broker of
//! a log shows the same, because the database is asked.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dyno_pubsub::{Connection, Dsn, Error, Result};
use dyno_serve::{Registry, ServeError};
use parking_lot::Mutex;

use crate::link::Link;

/// How long an answer is shown. Two scrapers cost the database no more than one.
const FRESH: Duration = Duration::from_secs(10);
/// The most series of one kind. The largest come first, so only the smallest are left out.
const MOST: usize = 500;
/// The most rows of one queue that are counted, because a count of millions would take longer than
/// a scrape may.
const MOST_COUNTED: i64 = 100_000;
/// A scrape must not wait behind a lock, or for a count that takes too long.
const SETTINGS: &[(&str, &str)] = &[("statement_timeout", "2000"), ("lock_timeout", "500")];
const SESSION_NAME: &str = "dyno-pubsub metrics";

const TOPICS: &str = "\
    SELECT t.name, coalesce(sum(p.next_offset - p.first_offset), 0)::bigint AS records \
      FROM pubsub.topics AS t LEFT JOIN pubsub.partitions AS p USING (topic_id) \
     GROUP BY t.name ORDER BY records DESC, t.name LIMIT $1";
const GROUPS: &str = "\
    SELECT t.name, g.name, \
           coalesce(sum(greatest(p.next_offset - greatest(a.committed, p.first_offset), 0)), 0)::bigint AS lag \
      FROM pubsub.groups AS g JOIN pubsub.topics AS t USING (topic_id) \
      LEFT JOIN pubsub.assignments AS a ON a.group_id = g.group_id \
      LEFT JOIN pubsub.partitions AS p ON p.topic_id = g.topic_id AND p.partition = a.partition \
     GROUP BY t.name, g.name ORDER BY lag DESC, t.name, g.name LIMIT $1";
const QUEUES: &str =
    "SELECT name, queue_id, max_attempts FROM pubsub.queues ORDER BY name LIMIT $1";

/// A kind of series: its name, its meaning, and its labels.
struct Kind {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "dyno_pubsub_topic_records",
        help: "Records of a topic that are kept.",
        labels: &["topic"],
    },
    Kind {
        name: "dyno_pubsub_group_lag_records",
        help: "Records that a group has not committed yet.",
        labels: &["topic", "group"],
    },
    Kind {
        name: "dyno_pubsub_queue_messages",
        help: "Messages of a queue that are neither acknowledged nor dead, counted up to 100000.",
        labels: &["queue"],
    },
    Kind {
        name: "dyno_pubsub_queue_dead_messages",
        help: "Messages of a queue that were given up, counted up to 100000.",
        labels: &["queue"],
    },
];

/// One series: which kind, the values of its labels, and its value.
type Series = (usize, Vec<String>, i64);

/// The series that are shown, and the session that asks for them.
pub struct Depths {
    state: Mutex<State>,
}

struct State {
    link: Link,
    asked: Option<Instant>,
    /// The series that are shown now.
    shown: BTreeSet<(usize, Vec<String>)>,
}

impl Depths {
    pub fn new(dsn: &Dsn) -> Depths {
        Depths {
            state: Mutex::new(State {
                link: Link::new(dsn, SESSION_NAME, SETTINGS),
                asked: None,
                shown: BTreeSet::new(),
            }),
        }
    }

    /// Brings the series of `registry` up to date, unless they are fresh. If the database does not
    /// answer they are removed, because an old number would look like a present one.
    pub fn refresh(&self, registry: &Registry) {
        let mut state = self.state.lock();
        if state.asked.is_some_and(|asked| asked.elapsed() < FRESH) {
            return;
        }
        let found = state.link.run_again(look).unwrap_or_default();
        state.asked = Some(Instant::now());
        let now = found
            .iter()
            .map(|(kind, values, _)| (*kind, values.clone()));
        let now: BTreeSet<(usize, Vec<String>)> = now.collect();
        for (kind, values) in state.shown.difference(&now) {
            registry.remove(KINDS[*kind].name, &labels(*kind, values));
        }
        // A name that the registry refuses, or one series too many, is left out; the others are
        // shown.
        for (kind, values, value) in &found {
            let _: std::result::Result<(), ServeError> = registry
                .gauge(KINDS[*kind].name, KINDS[*kind].help, &labels(*kind, values))
                .map(|gauge| gauge.set(*value));
        }
        state.shown = now;
    }
}

fn labels(kind: usize, values: &[String]) -> Vec<(&'static str, &str)> {
    let labels = KINDS[kind].labels.iter().copied();
    labels.zip(values.iter().map(String::as_str)).collect()
}

fn look(connection: &mut Connection) -> Result<Vec<Series>> {
    let most = MOST as i64;
    let mut found = Vec::new();
    let failed = || Error::statement("count what topics, groups and queues hold");
    let client = connection.client();
    for row in client.query(TOPICS, &[&most]).map_err(failed())? {
        found.push((0, vec![row.get(0)], row.get(1)));
    }
    for row in client.query(GROUPS, &[&most]).map_err(failed())? {
        found.push((1, vec![row.get(0), row.get(1)], row.get(2)));
    }
    for queue in client.query(QUEUES, &[&most]).map_err(failed())? {
        let (name, id): (String, i32) = (queue.get(0), queue.get(1));
        let max_attempts: i32 = queue.get(2);
        // A message whose last worker did not come back is dead, although only the next claim moves
        // it. An idle queue has no next claim, and its dead letters must be seen all the same. The
        // limit bounds the rows that are read, and not only those that are found.
        let unacknowledged = format!(
            "SELECT count(*) FILTER (WHERE NOT is_dead), count(*) FILTER (WHERE is_dead) \
               FROM (SELECT visible_at <= statement_timestamp() AND attempts >= $1 AS is_dead \
                       FROM pubsub.queue_{id}_state LIMIT {MOST_COUNTED}) AS counted"
        );
        // A queue that was dropped meanwhile has no tables, and no series.
        let Ok(row) = client.query_one(&unacknowledged, &[&max_attempts]) else {
            continue;
        };
        let not_moved: i64 = row.get(1);
        found.push((2, vec![name.clone()], row.get(0)));
        let moved = format!(
            "SELECT count(*) \
               FROM (SELECT FROM pubsub.queue_{id}_dead LIMIT {MOST_COUNTED}) AS counted"
        );
        if let Ok(row) = client.query_one(&moved, &[]) {
            let dead = not_moved + row.get::<_, i64>(0);
            found.push((3, vec![name], dead.min(MOST_COUNTED)));
        }
    }
    Ok(found)
}
