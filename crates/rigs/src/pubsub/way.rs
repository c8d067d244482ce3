//! The protocols by which messages can go from writers to readers: the original's, ours, and the
//! steps between.

use super::FlowError;

/// One protocol, prepared for one run.
pub(super) trait Way: Sync {
    /// Makes tables, topics and groups.
    fn prepare(&self) -> Result<(), FlowError>;
    /// Opens a writer with its own connection. Writers are assigned to partitions in turn.
    fn writer(&self, writer: usize) -> Result<Box<dyn Writer>, FlowError>;
    /// Opens a reader of `group` with its own connection.
    fn reader(&self, group: usize, reader: usize) -> Result<Box<dyn Reader>, FlowError>;
    /// Processor seconds of helper processes other than the server and this one, such as a broker.
    fn helpers_cpu_s(&self) -> f64 {
        0.0
    }
}

/// Writes batches to one partition, on its own connection.
pub(super) trait Writer {
    /// Hands over messages, and returns when they are acknowledged; with a window, as soon as no
    /// more batches than that are unacknowledged. Calls `done` with the number of messages
    /// acknowledged, in the order in which they were handed over.
    fn write(&mut self, messages: &[Vec<u8>], done: &mut dyn FnMut(usize))
    -> Result<(), FlowError>;

    /// Returns when everything is acknowledged.
    fn flush(&mut self, done: &mut dyn FnMut(usize)) -> Result<(), FlowError>;
}

/// Reads messages of its group's partitions.
pub(super) trait Reader {
    /// Claims and reads once, calls `each` with the partition of each message, and returns how many
    /// there were. If there are none it waits as long as the protocol's own program does.
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError>;

    /// Commits what was read, at the end.
    fn close(&mut self) -> Result<(), FlowError> {
        Ok(())
    }
}
