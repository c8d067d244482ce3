//! Finds commits in what a client sends to a broker: frames of a verb that commits, to their last
//! byte. The header is described in docs/formats/frames.md. Only verb and length are read.

const HEADER_BYTES: usize = 16;
const VERB_AT: usize = 2;
const LENGTH_AT: usize = 8;

/// Follows the frames of one connection, in whatever pieces they come.
#[derive(Debug)]
pub struct FrameWatch {
    committing: Vec<u8>,
    header: Vec<u8>,
    left: usize,
}

impl FrameWatch {
    /// A connection before its first byte.
    pub fn new(committing: &[u8]) -> Self {
        Self {
            committing: committing.to_vec(),
            header: Vec::with_capacity(HEADER_BYTES),
            left: 0,
        }
    }

    /// The position in `bytes` right after the first frame that makes the broker commit.
    pub fn commit_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut found = None;
        let mut at = 0;
        while at < bytes.len() {
            if self.header.len() < HEADER_BYTES {
                let taken = (HEADER_BYTES - self.header.len()).min(bytes.len() - at);
                self.header.extend_from_slice(&bytes[at..at + taken]);
                at += taken;
                if self.header.len() < HEADER_BYTES {
                    break;
                }
                let length = self.header[LENGTH_AT..LENGTH_AT + 4].iter().rev();
                self.left = length.fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            } else {
                let taken = self.left.min(bytes.len() - at);
                self.left -= taken;
                at += taken;
            }
            if self.left == 0 {
                if found.is_none() && self.committing.contains(&self.header[VERB_AT]) {
                    found = Some(at);
                }
                self.header.clear();
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(verb: u8, body: usize) -> Vec<u8> {
        let mut bytes = vec![0xd1, 1, verb, 0, 7, 0, 0, 0];
        bytes.extend_from_slice(&(body as u32).to_le_bytes());
        bytes.resize(HEADER_BYTES + body, 3);
        bytes
    }

    #[test]
    fn the_end_of_a_committing_frame_is_found_whatever_the_pieces() {
        let mut bytes = frame(1, 20);
        bytes.extend(frame(3, 0));
        bytes.extend(frame(5, 300));
        let end = bytes.len();
        bytes.extend(frame(1, 0));
        for piece in 1..bytes.len() {
            let mut watch = FrameWatch::new(&[5]);
            let found = bytes
                .chunks(piece)
                .enumerate()
                .find_map(|(number, part)| watch.commit_end(part).map(|end| number * piece + end));
            assert_eq!(found, Some(end), "pieces of {piece}");
        }
    }
}
