//! Settings for connections, and for those whose client has gone away.

use super::{Advice, advice, at_restart};

pub(super) fn settings() -> Vec<Advice> {
    vec![
        at_restart(
            "max_connections",
            "450",
            "a session for each producer and two for each consumer in direct mode: a hundred producers and five groups of thirty consumers fit; on all machines alike, since a standby needs as many as its primary",
        ),
        at_restart(
            "max_locks_per_transaction",
            "256",
            "dropping a topic locks each of its ranges in one transaction",
        ),
        advice(
            "tcp_keepalives_idle",
            "30",
            "a client whose machine is gone is noticed within a minute, and what it locked is free again",
        ),
        advice(
            "tcp_keepalives_interval",
            "10",
            "see tcp_keepalives_idle: three probes, ten seconds apart",
        ),
        advice(
            "tcp_keepalives_count",
            "3",
            "see tcp_keepalives_idle: the third lost probe ends the session",
        ),
        advice(
            "client_connection_check_interval",
            "10s",
            "a statement whose client is gone is ended while it runs",
        ),
        advice(
            "idle_in_transaction_session_timeout",
            "5min",
            "a forgotten transaction holds its locks, and keeps dead rows of every table",
        ),
        advice(
            "deadlock_timeout",
            "1s",
            "waits for a partition's counter are short; a longer one is looked into",
        ),
        advice(
            "log_min_messages",
            "log",
            "errors of statements go to the client that sent them; one in a loop must not fill the disk with them",
        ),
        advice(
            "TimeZone",
            "UTC",
            "times in views and answers mean the same everywhere",
        ),
        advice(
            "log_timezone",
            "UTC",
            "the log can be laid beside those of other machines",
        ),
    ]
}
