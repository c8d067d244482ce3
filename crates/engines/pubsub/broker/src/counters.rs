//! The counters of a broker.

use std::sync::atomic::{AtomicU64, Ordering};

use dyno_pubsub::wire::Counter;

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Counters that only grow, from the start of the broker on.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(#[doc = $doc] pub $name: AtomicU64,)*
        }

        impl Counters {
            /// The name and the meaning of each counter, in the order of [`Self::all`].
            pub const MEANINGS: &[(&'static str, &'static str)] =
                &[$((stringify!($name), $doc.trim_ascii())),*];

            /// All of them by name.
            pub fn all(&self) -> Vec<Counter> {
                vec![$(Counter {
                    name: stringify!($name).to_owned(),
                    value: self.$name.load(Ordering::Relaxed),
                },)*]
            }
        }
    };
}

counters! {
    /// Records acknowledged, duplicates not counted.
    appended_records,
    /// Bytes of the rows of these records.
    appended_bytes,
    /// Rows that these records became.
    appended_rows,
    /// Calls of append functions that were committed.
    appends,
    /// Batches that were there already.
    duplicate_batches,
    /// Batches that were refused and not appended.
    refused_batches,
    /// Appends sent again because their outcome was unknown.
    retried_appends,
    /// Microseconds that appenders waited for the database.
    append_wait_us,
    /// Fetches that consumers have sent.
    fetches,
    /// Fetches that went to the database.
    fetches_behind,
    /// Bytes of rows read from the database.
    read_bytes,
    /// Transactions that stored cursors of groups.
    cursor_commits,
    /// Cursors that these transactions stored.
    cursors,
    /// Partitions whose lease was taken.
    leases_taken,
    /// Partitions whose lease was lost.
    leases_lost,
    /// Ranges that retention dropped, and those that readers kept it from dropping.
    maintained,
    /// Times that retention could not be applied.
    failed_maintenances,
    /// Connections that were let in.
    connections,
    /// Connections that ended because their client sent what is not a frame or did not read.
    broken_connections,
}

/// Adds `more` to a counter. The order among counters is not kept.
pub fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
