//! Events as the kernel writes them: 32 bytes each. Has `unsafe`: a descriptor that came in one.

use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::Fault;

/// Bytes of one event (`struct uffd_msg`).
pub const MESSAGE_BYTES: usize = 32;

const FAULT: u8 = 0x12;
const FORK: u8 = 0x13;
const REMAP: u8 = 0x14;
const REMOVE: u8 = 0x15;
const UNMAP: u8 = 0x16;

/// An event of the memory behind a descriptor. All but faults come only to a descriptor that asked
/// for them when it was made.
#[derive(Debug)]
pub enum Event {
    /// A thread touched a page and waits for it.
    Fault(Fault),
    /// The pages are being given up (`MADV_DONTNEED`, `MADV_REMOVE`) and are zeros from now on.
    /// Until the event was read, the thread that gives them up waits, and orders are refused.
    Removed(Range<u64>),
    /// The addresses are being unmapped.
    Unmapped(Range<u64>),
    /// The memory is being moved to other addresses (`mremap`).
    Remapped {
        /// The address where it began.
        from: u64,
        /// The address where it begins now.
        to: u64,
        /// How many bytes were moved.
        bytes: u64,
    },
    /// The process forks, and this descriptor has the faults of the child.
    Forked(OwnedFd),
}

/// Reads one event; `None` if it is of a kind that this program does not know.
///
/// # Safety
/// The message was just read from the kernel, and is decoded once: the descriptor in a
/// [`Event::Forked`] then belongs to nothing else.
pub unsafe fn decode(message: &[u8; MESSAGE_BYTES]) -> Option<Event> {
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| message[at + byte]));
    Some(match message[0] {
        FAULT => Event::Fault(Fault {
            address: word(16),
            write: word(8) & 1 != 0,
            protected: word(8) & 2 != 0,
        }),
        FORK => {
            let fd = RawFd::from_ne_bytes(std::array::from_fn(|byte| message[8 + byte]));
            // SAFETY: the caller guarantees it.
            Event::Forked(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        REMAP => Event::Remapped {
            from: word(8),
            to: word(16),
            bytes: word(24),
        },
        REMOVE => Event::Removed(word(8)..word(16)),
        UNMAP => Event::Unmapped(word(8)..word(16)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, words: [u64; 3]) -> [u8; MESSAGE_BYTES] {
        let mut message = [0; MESSAGE_BYTES];
        message[0] = kind;
        for (at, word) in words.iter().enumerate() {
            message[8 + 8 * at..16 + 8 * at].copy_from_slice(&word.to_ne_bytes());
        }
        message
    }

    #[test]
    fn events_say_which_addresses_they_are_about() {
        // SAFETY: no message of this test has a descriptor.
        let decoded = |kind, words| unsafe { decode(&message(kind, words)) };
        let fault = Fault {
            address: 0x7000,
            write: true,
            protected: false,
        };
        let found = decoded(FAULT, [1, 0x7000, 0]);
        assert!(matches!(found, Some(Event::Fault(found)) if found == fault));
        let found = decoded(REMOVE, [0x1000, 0x3000, 0]);
        assert!(matches!(found, Some(Event::Removed(range)) if range == (0x1000..0x3000)));
        let found = decoded(UNMAP, [0x1000, 0x3000, 0]);
        assert!(matches!(found, Some(Event::Unmapped(range)) if range == (0x1000..0x3000)));
        let found = decoded(REMAP, [1, 2, 3]);
        assert!(matches!(
            found,
            Some(Event::Remapped {
                from: 1,
                to: 2,
                bytes: 3
            })
        ));
        assert!(decoded(0x77, [1, 2, 3]).is_none());
    }
}
