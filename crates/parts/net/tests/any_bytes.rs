//! The frame against streams that nobody wrote by hand.

mod frames;

use dyno_net::{Head, encode};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_bytes_give_the_same_frames_however_they_are_cut(
        stream in proptest::collection::vec(any::<u8>(), 0..200),
        piece in 1_usize..40,
    ) {
        frames::check(&stream, piece);
    }

    #[test]
    fn frames_come_back_however_they_are_cut_and_wherever_they_are_damaged(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..5),
        piece in 1_usize..700,
        damage in proptest::option::of((any::<prop::sample::Index>(), 1_u8..)),
    ) {
        let mut stream = Vec::new();
        for (request, body) in bodies.iter().enumerate() {
            let head = Head { verb: request as u8, flags: 7, request: request as u32 };
            encode(head, body, &mut stream).unwrap();
        }
        if let Some((at, change)) = damage.filter(|_| !stream.is_empty()) {
            let at = at.index(stream.len());
            stream[at] ^= change;
        }
        frames::check(&stream, piece);
    }
}
