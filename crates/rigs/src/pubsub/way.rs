//! The ways in which messages can go from writers to readers: the original's, ours, and the steps
//! between.

use super::FlowError;

/// One way, prepared for one run.
pub(super) trait Way: Sync {
    /// Makes tables, topics and groups.
    fn prepare(&self) -> Result<(), FlowError>;
    /// A writer of its own connection. Writers are dealt to partitions in turn.
    fn writer(&self, writer: usize) -> Result<Box<dyn Writer>, FlowError>;
    /// A reader of its own connection, one of its group's.
    fn reader(&self, group: usize, reader: usize) -> Result<Box<dyn Reader>, FlowError>;
    /// Processor seconds of processes beside the server that are not this one, such as a broker.
    fn helpers_cpu_s(&self) -> f64 {
        0.0
    }
}

/// Writes messages.
pub(super) trait Writer {
    /// Hands over messages, and returns when they are acknowledged; with a window, as soon as no
    /// more than the window are without acknowledgement. `done` is told of messages as they are
    /// acknowledged: how many, in the order in which they were handed over.
    fn write(&mut self, messages: &[Vec<u8>], done: &mut dyn FnMut(usize))
    -> Result<(), FlowError>;

    /// Returns when nothing is without acknowledgement.
    fn flush(&mut self, done: &mut dyn FnMut(usize)) -> Result<(), FlowError>;
}

/// Reads messages of its group's partitions.
pub(super) trait Reader {
    /// Claims and reads once, handing over each message with its partition; how many there were.
    /// Waits a little when there is nothing, as the way's own program does.
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError>;

    /// Commits what was read, at the end.
    fn close(&mut self) -> Result<(), FlowError> {
        Ok(())
    }
}
