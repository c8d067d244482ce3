//! The thread that writes what an outbox holds.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::{Outbox, Stream};

/// Parts in one call. Linux accepts 1024, but more than this is not faster.
const PARTS: usize = 256;
/// Bytes in one call. A call that waits for the peer reports no progress before it returns, and the
/// server has to tell a slow client from one that is stuck.
const CALL_BYTES: usize = 64 << 10;

/// Writes until the outbox is closed or the connection fails, then ends both.
pub fn run(outbox: &Outbox, stream: Stream) -> io::Result<()> {
    let stream = Arc::new(stream);
    outbox.lend(Arc::clone(&stream));
    let mut parts = Vec::new();
    let result = loop {
        if !outbox.drain(&mut parts) {
            break Ok(());
        }
        if let Err(error) = write_parts(&mut &*stream, &parts, &outbox.written) {
            break Err(error);
        }
        parts.clear();
    };
    outbox.close();
    stream.shutdown();
    result
}

/// Writes all of `parts`, and adds what the system has accepted to `total`.
pub fn write_parts(
    stream: &mut impl Write,
    mut parts: &[Bytes],
    total: &AtomicU64,
) -> io::Result<()> {
    // Bytes of the first part that are written already.
    let mut begun = 0;
    // A vectored write may end anywhere, even in the middle of a part, so each round begins with
    // what is left.
    while let Some(first) = parts.first() {
        if begun == first.len() {
            parts = &parts[1..];
            begun = 0;
            continue;
        }
        let mut slices = [IoSlice::new(&[]); PARTS];
        let mut count = 0;
        let mut room = CALL_BYTES;
        let from = std::iter::once(&first[begun..]).chain(parts[1..].iter().map(|part| &part[..]));
        for (slice, part) in slices.iter_mut().zip(from) {
            *slice = IoSlice::new(&part[..part.len().min(room)]);
            room -= slice.len();
            count += 1;
            if room == 0 {
                break;
            }
        }
        let mut written = match stream.write_vectored(&slices[..count]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                total.fetch_add(written as u64, Ordering::Relaxed);
                begun + written
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        while let Some(part) = parts.first().filter(|part| part.len() <= written) {
            written -= part.len();
            parts = &parts[1..];
        }
        begun = written;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most `most` bytes a call, from the first parts.
    struct Narrow {
        most: usize,
        got: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.most);
            self.got.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
            self.write(&all)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_writes_lose_nothing() {
        let mut parts: Vec<Bytes> = (0..1000_usize)
            .map(|at| Bytes::from(vec![at as u8; at % 7]))
            .collect();

        for most in [1, 2, 3, 5, 1000, 100_000] {
            if most == 1000 {
                parts.push(Bytes::from(vec![9; 3 * CALL_BYTES + 5]));
            }
            let mut narrow = Narrow {
                most,
                got: Vec::new(),
            };
            let total = AtomicU64::new(0);
            write_parts(&mut narrow, &parts, &total).unwrap();
            assert_eq!(narrow.got, parts.concat(), "{most}");
            assert_eq!(total.into_inner(), narrow.got.len() as u64);
        }
    }
}
