//! What holds for any bytes, for an ordinary test and for the fuzzer.

use dyno_net::{Decoder, FrameError, Head, encode};

const MOST_BODY_BYTES: usize = 1 << 16;

/// Any stream, cut into pieces of `piece` bytes, gives the frames that it gives whole, and each
/// frame encodes to the bytes it came from.
pub fn check(stream: &[u8], piece: usize) {
    let whole = frames(&[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(piece.max(1)).collect();
    assert_eq!(frames(&pieces), whole);
    let (found, _) = whole;
    let mut again = Vec::new();
    for (head, body) in &found {
        encode(*head, body, &mut again).expect("a body this short");
    }
    assert_eq!(stream[..again.len()], again);
}

/// The frames of a stream, and the error that ended it.
type DecodedFrames = (Vec<(Head, Vec<u8>)>, Option<FrameError>);

fn frames(pieces: &[&[u8]]) -> DecodedFrames {
    let mut decoder = Decoder::new(MOST_BODY_BYTES);
    let mut found = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push((frame.head, frame.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    let end = decoder.end().err();
    (found, end)
}
