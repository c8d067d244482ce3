//! A ring whose other end lies: an error, and never a panic or a byte from elsewhere.

mod scribbled;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use dyno_net::ring::{LayoutError, RingEnd, RingError};
use proptest::prelude::*;

/// Where the positions lie, from docs/formats/rings.md.
const TO_MAKER: u64 = 4096;
const TO_OPENER: u64 = 6144;
const HEAD: u64 = 128;

fn made() -> (RingEnd, File) {
    let (end, fd) = RingEnd::make(4096).expect("a ring");
    (end, File::from(fd))
}

fn set(memory: &File, at: u64, value: u64) {
    memory
        .write_all_at(&value.to_le_bytes(), at)
        .expect("a sealed memfd can be written");
}

#[test]
fn a_writer_that_claims_more_than_the_ring_holds_is_refused() {
    for claim in [4097, u64::MAX, 1 << 63] {
        let (mut end, memory) = made();
        set(&memory, TO_MAKER, claim);
        let error = end.receiver.read(&mut [0; 64]).expect_err("a lie");
        assert!(matches!(error, RingError::Position(_)), "{error}");
        assert!(error.to_string().contains("writer's"), "{error}");
    }
}

#[test]
fn a_position_that_goes_back_is_refused() {
    let (mut end, memory) = made();
    set(&memory, TO_MAKER, 100);
    let (count, _) = end.receiver.read(&mut [0; 4096]).expect("100 bytes");
    assert_eq!(count, 100);
    set(&memory, TO_MAKER, 99);
    end.receiver.read(&mut [0; 64]).expect_err("a step back");

    let (mut end, memory) = made();
    assert_eq!(end.sender.write(&[1; 4096]).expect("room"), 4096);
    let _ = end.sender.publish();
    set(&memory, TO_OPENER + HEAD, 50);
    assert_eq!(end.sender.write(&[1; 4096]).expect("room"), 50);
    set(&memory, TO_OPENER + HEAD, 49);
    let error = end.sender.write(&[1; 10]).expect_err("a step back");
    assert!(error.to_string().contains("reader's"), "{error}");
}

#[test]
fn a_reader_that_claims_to_have_read_what_was_not_shown_is_refused() {
    let (mut end, memory) = made();
    assert_eq!(end.sender.write(&[1; 4096]).expect("room"), 4096);
    set(&memory, TO_OPENER + HEAD, 1);
    end.sender
        .write(&[1; 10])
        .expect_err("nothing was published");
}

#[test]
fn memory_that_is_no_ring_is_refused_by_name() {
    let refused = |change: &dyn Fn(&File)| -> LayoutError {
        let (_end, memory) = made();
        change(&memory);
        match RingEnd::open(OwnedFd::from(memory), 1 << 20) {
            Err(RingError::Layout(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let write = |at: u64, bytes: &'static [u8]| {
        move |memory: &File| memory.write_all_at(bytes, at).expect("it can be written")
    };
    assert_eq!(refused(&write(0, b"X")), LayoutError::Magic);
    assert_eq!(refused(&write(8, &[2])), LayoutError::Version { found: 2 });
    for capacity in [0_u32, 4095, 2048, 1 << 31, 2 << 20] {
        let error = refused(&|memory| {
            memory
                .write_all_at(&capacity.to_le_bytes(), 12)
                .expect("it can be written");
        });
        assert_eq!(error, LayoutError::Capacity { found: capacity });
    }
    assert_eq!(
        refused(&|memory| {
            memory
                .write_all_at(&8192_u32.to_le_bytes(), 12)
                .expect("it can be written");
        }),
        LayoutError::Length {
            found: 16384,
            expected: 24576
        }
    );
    let plain = tempfile::tempfile().expect("a file");
    plain.set_len(16384).expect("room");
    assert!(matches!(
        RingEnd::open(plain.into(), 1 << 20),
        Err(RingError::Layout(LayoutError::Unsealed))
    ));
}

/// The header of version 1, byte by byte: what every later version must read.
#[test]
fn the_header_is_that_of_the_specification() {
    let (_end, memory) = made();
    let mut header = [0; 16];
    memory.read_exact_at(&mut header, 0).expect("a header");
    assert_eq!(&header, b"DYNORING\x01\0\0\0\0\x10\0\0");
    let mut maker = RingEnd::make(4096).expect("a ring");
    assert_eq!(maker.0.sender.write(b"abc").expect("room"), 3);
    let _ = maker.0.sender.publish();
    let memory = File::from(maker.1);
    let mut bytes = [0; 8];
    memory
        .read_exact_at(&mut bytes, TO_OPENER)
        .expect("a position");
    assert_eq!(bytes, 3_u64.to_le_bytes());
    memory
        .read_exact_at(&mut bytes[..3], 8192 + 4096)
        .expect("data");
    assert_eq!(&bytes[..3], b"abc");
}

proptest! {
    #[test]
    fn whatever_is_scribbled_over_a_ring_ends_in_frames_or_an_error(
        steps in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        scribbled::check(&steps);
    }

    #[test]
    fn bytes_come_back_in_order_whatever_the_steps(
        steps in proptest::collection::vec((any::<bool>(), 1_usize..6000), 1..60),
    ) {
        let (mut one, mut other) = RingEnd::pair(4096).unwrap();
        let (mut sent, mut received) = (0_usize, 0_usize);
        for (writes, bytes) in steps {
            if writes {
                let data: Vec<u8> = (sent..sent + bytes).map(|at| (at % 251) as u8).collect();
                let count = one.sender.write(&data).unwrap();
                prop_assert_eq!(count, bytes.min(4096 - (sent - received)));
                sent += count;
                let _ = one.sender.publish();
            } else {
                let mut into = vec![0; bytes];
                let (count, _) = other.receiver.read(&mut into).unwrap();
                // A read may give only what was known of before, but never nothing while there is
                // something.
                prop_assert!(count <= bytes.min(sent - received));
                prop_assert_eq!(count == 0, sent == received);
                for byte in &into[..count] {
                    prop_assert_eq!(*byte, (received % 251) as u8);
                    received += 1;
                }
            }
        }
    }
}
