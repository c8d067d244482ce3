//! Reserves room on the disk before it is written.

use crate::device::Device;
use crate::error::IoError;

/// How far ahead room is reserved if the length of the file is not known: enough that the
/// reservation costs nothing, and little enough to cut off again.
const STEP_BYTES: u64 = 64 << 20;

/// Extends a file ahead of its writer. A direct write that extends a file changes its metadata and
/// waits for the writes before it; one into reserved room does not.
#[derive(Debug)]
pub(crate) struct Reserve {
    reserved_bytes: u64,
    expected_bytes: u64,
    possible: bool,
}

impl Reserve {
    pub fn new(expected_bytes: Option<u64>) -> Self {
        Self {
            reserved_bytes: 0,
            expected_bytes: expected_bytes.unwrap_or(0),
            possible: true,
        }
    }

    /// Reserves room, if necessary, before the bytes up to `end_bytes` are written.
    pub fn reach(&mut self, device: &dyn Device, end_bytes: u64) -> Result<(), IoError> {
        if !self.possible || end_bytes <= self.reserved_bytes {
            return Ok(());
        }
        let ahead = if end_bytes <= self.expected_bytes {
            self.expected_bytes
        } else {
            end_bytes + STEP_BYTES
        };
        // A file system that cannot reserve is asked once and not for every block.
        self.possible = device.allocate(ahead)?;
        if self.possible {
            self.reserved_bytes = ahead;
        }
        Ok(())
    }

    /// Notes that the file was truncated to `len_bytes`, and with it the reserved room.
    pub fn cut(&mut self, len_bytes: u64) {
        self.reserved_bytes = len_bytes;
    }
}
