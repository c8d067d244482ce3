//! The protocol of a ring in every interleaving that loom finds: the very source of
//! `src/ring/control.rs`, with loom's atomics in the place of the processor's. Has `unsafe`: loom
//! hands out its checked cells as raw pointers.

mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../src/ring/control.rs"]
mod control;

use control::{AWAKE, Control, Line, ON_BELL, ON_FUTEX, Reader, Writer};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Notify};
use loom::thread;

/// A ring of `N` bytes; loom's cells report any access that is not ordered with another.
struct Ring<const N: usize> {
    control: Control,
    bytes: [UnsafeCell<u8>; N],
    reader_bell: Notify,
    writer_bell: Notify,
}

impl<const N: usize> Ring<N> {
    fn new() -> Arc<Ring<N>> {
        Arc::new(Ring {
            control: Control {
                tail: Line(sync::AtomicU64::new(0)),
                head: Line(sync::AtomicU64::new(0)),
                reader_sleeps: Line(sync::AtomicU32::new(AWAKE)),
                writer_sleeps: Line(sync::AtomicU32::new(AWAKE)),
            },
            bytes: std::array::from_fn(|_| UnsafeCell::new(0)),
            reader_bell: Notify::new(),
            writer_bell: Notify::new(),
        })
    }

    /// Writes one byte, sleeping while there is no room.
    fn push(&self, writer: &mut Writer, byte: u8) {
        while writer.room(&self.control, 1).expect("an honest reader") == 0 {
            let sleeps = writer.announce_sleep(&self.control, 1, ON_FUTEX);
            if sleeps.expect("an honest reader") {
                self.writer_bell.wait();
            }
            writer.woke(&self.control);
        }
        let at = (writer.tail() % N as u64) as usize;
        self.bytes[at].with_mut(|place| {
            // SAFETY: the protocol under test gives this byte to the writer; loom fails if it does
            // not.
            unsafe { *place = byte }
        });
        writer.wrote(1);
        assert!(writer.unpublished());
    }

    fn publish(&self, writer: &mut Writer) {
        if writer.publish(&self.control) != AWAKE {
            self.reader_bell.notify();
        }
    }

    /// Reads what is there, sleeping while there is nothing.
    fn get(&self, reader: &mut Reader) -> Vec<u8> {
        loop {
            let count = reader.available(&self.control).expect("an honest writer");
            if count > 0 {
                let found = (reader.head()..reader.head() + count)
                    .map(|at| {
                        self.bytes[(at % N as u64) as usize].with(|place| {
                            // SAFETY: as above, for the reader.
                            unsafe { *place }
                        })
                    })
                    .collect();
                if reader.release(&self.control, count) != AWAKE {
                    self.writer_bell.notify();
                }
                return found;
            }
            let sleeps = reader.announce_sleep(&self.control, ON_BELL);
            if sleeps.expect("an honest writer") {
                self.reader_bell.wait();
            }
            reader.woke(&self.control);
        }
    }
}

fn check<const N: usize>(bytes: u8, per_batch: u8, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    // Beyond three preemptions the numbers explode, and what they find is found before.
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let ring = Ring::<N>::new();
        let writing = Arc::clone(&ring);
        let writer = thread::spawn(move || {
            let mut writer = Writer::new(N as u64);
            for byte in 1..=bytes {
                writing.push(&mut writer, byte);
                // A full ring must be shown, or nobody ever empties it.
                if byte % per_batch == 0 || byte == bytes {
                    writing.publish(&mut writer);
                }
            }
        });
        let mut reader = Reader::new(N as u64);
        let mut found = Vec::new();
        while found.len() < bytes as usize {
            found.extend(ring.get(&mut reader));
        }
        assert_eq!(found, (1..=bytes).collect::<Vec<u8>>());
        writer.join().expect("the writer ends");
    });
}

/// Both ends sleep and are woken: a lost wake-up would be a deadlock, which loom reports.
#[test]
fn bytes_come_in_order_and_nobody_sleeps_for_ever() {
    check::<1>(2, 1, 3);
    check::<2>(3, 1, 2);
}

#[test]
fn batches_are_seen_whole_around_the_end_of_the_ring() {
    check::<2>(4, 2, 2);
}

/// The same model must fail when the announcement comes after the last look: it can see what it is
/// for.
#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wake_up_would_be_found() {
    loom::model(|| {
        let ring = Ring::<1>::new();
        let writing = Arc::clone(&ring);
        let writer = thread::spawn(move || {
            let mut writer = Writer::new(1);
            writing.push(&mut writer, 1);
            writing.publish(&mut writer);
        });
        let mut reader = Reader::new(1);
        if reader.available(&ring.control).expect("an honest writer") == 0 {
            // Wrong on purpose: no look at the position after the announcement.
            ring.control
                .reader_sleeps
                .0
                .store(ON_BELL, sync::Ordering::SeqCst);
            ring.reader_bell.wait();
        }
        writer.join().expect("the writer ends");
    });
}
