//! The SQL files, in the order in which they are run.

/// Pairs of a version and a script, which brings the tables from the version before to this one.
/// Each is run once.
pub const MIGRATIONS: &[(i32, &str)] = &[
    (1, include_str!("../../sql/tables_1.sql")),
    (2, include_str!("../../sql/tables_2.sql")),
    (3, include_str!("../../sql/tables_3.sql")),
    (4, include_str!("../../sql/tables_4.sql")),
    (5, include_str!("../../sql/tables_5.sql")),
    (6, include_str!("../../sql/tables_6.sql")),
    (7, include_str!("../../sql/tables_7.sql")),
    (8, include_str!("../../sql/tables_8.sql")),
    (9, include_str!("../../sql/tables_9.sql")),
];

/// The functions, which are replaced at every installation. Later scripts use what earlier ones
/// define.
pub const FUNCTIONS: &[&str] = &[
    include_str!("../../sql/record.sql"),
    include_str!("../../sql/ranges.sql"),
    include_str!("../../sql/append.sql"),
    include_str!("../../sql/topic.sql"),
    include_str!("../../sql/placement.sql"),
    include_str!("../../sql/read.sql"),
    include_str!("../../sql/times.sql"),
    include_str!("../../sql/send.sql"),
    include_str!("../../sql/kafka.sql"),
    include_str!("../../sql/kafka_transactions.sql"),
    include_str!("../../sql/group.sql"),
    include_str!("../../sql/poll.sql"),
    include_str!("../../sql/group_admin.sql"),
    include_str!("../../sql/retention.sql"),
    include_str!("../../sql/queue.sql"),
    include_str!("../../sql/queue_by_name.sql"),
    include_str!("../../sql/roles.sql"),
];

/// The checksum of rows that SQL writes, where the server can compute it.
pub const CRC_OF_SERVER: &str = include_str!("../../sql/crc_of_server.sql");

/// The checksum of rows that SQL writes, where the server cannot compute it: such rows have none.
pub const CRC_MISSING: &str = include_str!("../../sql/crc_missing.sql");
