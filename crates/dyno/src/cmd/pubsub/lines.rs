//! Standard input in blocks of whole lines. A thread of its own reads it, so that Ctrl-C is noticed
//! while no line is typed.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use dyno_pubsub::record::RECORD_BYTES_MAX;

/// How often a command that waits for a line looks whether it should stop.
pub const TICK: Duration = Duration::from_millis(50);

const READ_BYTES: usize = 64 << 10;
/// A line of JSON may be longer than its record: up to six characters for a byte, and room for the
/// names of the fields.
const LINE_BYTES: usize = 8 * RECORD_BYTES_MAX;
/// Blocks that may wait to be sent; the reader then waits, so a fast input takes no memory.
const BLOCKS: usize = 4;

/// Starts the reader. The last block may lack its line end. Nothing follows an error.
pub fn blocks(mut input: impl Read + Send + 'static) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, receiver) = sync_channel(BLOCKS);
    let read = move || {
        let mut block = Vec::new();
        loop {
            let next = next_block(&mut input, &mut block);
            let last = !matches!(next, Ok(Some(_)));
            // The receiver is gone if sending records failed; then the rest of the input is not
            // read.
            if let Some(next) = next.transpose()
                && sender.send(next).is_err()
            {
                return;
            }
            if last {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("lines".to_owned())
        .spawn(read)?;
    Ok(receiver)
}

/// The next whole lines; what follows the last line end stays in `rest`. `None` at the end.
fn next_block(input: &mut impl Read, rest: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    loop {
        let had = rest.len();
        rest.resize(had + READ_BYTES, 0);
        let read = input.read(&mut rest[had..]);
        rest.truncate(had + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(Some(mem::take(rest)).filter(|last| !last.is_empty())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if let Some(end) = rest[had..].iter().rposition(|byte| *byte == b'\n') {
            let after = rest.split_off(had + end + 1);
            return Ok(Some(mem::replace(rest, after)));
        }
        // Input without a line end, such as a binary file, would otherwise fill the memory.
        if rest.len() > LINE_BYTES {
            let text = format!("a line has more than {LINE_BYTES} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
    }
}

/// The lines of a block, without their ends.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let block = block.strip_suffix(b"\n").unwrap_or(block);
    block.split(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &'static [u8]) -> Vec<Vec<u8>> {
        let blocks = blocks(input).unwrap().into_iter();
        blocks
            .flat_map(|block| {
                lines(&block.unwrap())
                    .map(<[u8]>::to_vec)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn lines_come_whole() {
        assert_eq!(all(b""), Vec::<Vec<u8>>::new());
        assert_eq!(all(b"\n"), [b""]);
        assert_eq!(all(b"a\n\nb"), [&b"a"[..], b"", b"b"]);
        let long: &'static [u8] = vec![b'x'; 3 * READ_BYTES].leak();
        assert_eq!(all(long), [long]);
    }
}
