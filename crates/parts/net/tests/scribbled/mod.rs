//! A ring whose other end writes anything anywhere, for an ordinary test and for the fuzzer.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use dyno_net::ring::RingEnd;
use dyno_net::{Decoder, Head, encode};

const CAPACITY: u32 = 4096;
/// Both positions and both words of both directions (docs/formats/rings.md).
const WORDS: [u64; 8] = [4096, 4224, 4352, 4480, 6144, 6272, 6400, 6528];
const DATA: u64 = 8192;

/// Each step is some bytes of `steps`: what to do, and with what. The end under test reads and
/// writes as if all was well, and must not panic; it stops at the first error, as every user does.
pub fn check(steps: &[u8]) {
    let (mut end, fd) = RingEnd::make(CAPACITY).expect("a ring");
    let memory = File::from(fd);
    let mut decoder = Decoder::new(1 << 12);
    let mut steps = steps.iter().copied();
    while let Some(step) = steps.next() {
        let mut next = || u64::from(steps.next().unwrap_or(0));
        let written = match step % 6 {
            // A position, near to where it may be or anywhere.
            0 => {
                let (at, value) = (WORDS[next() as usize % WORDS.len()], next() << 4 | next());
                memory.write_all_at(&value.to_le_bytes(), at)
            }
            1 => {
                let at = WORDS[next() as usize % WORDS.len()];
                memory.write_all_at(&[next() as u8; 8], at)
            }
            2 => {
                let (at, byte) = (next() << 5, next() as u8);
                memory.write_all_at(&[byte; 32], DATA + at)
            }
            // A whole frame, perhaps with another length in it.
            3 => {
                let (at, length, lie) = (next() << 4, next() as usize, next() as u8);
                let head = Head {
                    verb: 1,
                    flags: 0,
                    request: 7,
                };
                let mut frame = Vec::new();
                encode(head, &vec![1; length], &mut frame).expect("a short frame");
                frame[8] ^= lie;
                memory.write_all_at(&frame, DATA + at)
            }
            4 => {
                let mut into = vec![0; 16 * next() as usize];
                let Ok((count, _)) = end.receiver.read(&mut into) else {
                    return;
                };
                assert!(count <= CAPACITY as usize);
                decoder.push(&into[..count]);
                loop {
                    match decoder.next_frame() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return,
                    }
                }
                Ok(())
            }
            _ => {
                if end.sender.write(&vec![9; 16 * next() as usize]).is_err() {
                    return;
                }
                let _ = end.sender.publish();
                let slept = (end.sender.announce_sleep(), end.receiver.announce_sleep());
                if slept.0.is_err() || slept.1.is_err() {
                    return;
                }
                Ok(())
            }
        };
        written.expect("a sealed memfd can be written");
    }
    // The same memory as a client gets it: the header is whole, whatever the rest holds.
    RingEnd::open(OwnedFd::from(memory), CAPACITY).expect("an untouched header");
}
