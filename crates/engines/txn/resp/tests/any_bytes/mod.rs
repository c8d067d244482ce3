//! Any bytes as what a client of Redis sends, shared with the fuzz target `resp`.

/// Reads the bytes as commands: some of them or none, but no panic and no memory for lengths that
/// cannot be right.
pub fn check(bytes: &[u8]) -> usize {
    dyno_txn_resp::count_commands(bytes)
}
