//! The thread that writes what an outbox holds.

use std::io::{self, IoSlice, Write};

use bytes::Bytes;

use crate::{Outbox, Stream};

/// Parts per call; Linux takes 1024, more than that brings nothing.
const PARTS: usize = 256;

/// Writes until the outbox is closed or the connection fails; then both are ended.
pub fn run(outbox: &Outbox, mut stream: Stream) -> io::Result<()> {
    let mut parts = Vec::new();
    let result = loop {
        if !outbox.take(&mut parts) {
            break Ok(());
        }
        if let Err(error) = write_all(&mut stream, &parts) {
            break Err(error);
        }
        parts.clear();
    };
    outbox.close();
    stream.shutdown();
    result
}

fn write_all(stream: &mut impl Write, mut parts: &[Bytes]) -> io::Result<()> {
    // How much of the first part is written already.
    let mut begun = 0;
    while let Some(first) = parts.first() {
        if begun == first.len() {
            parts = &parts[1..];
            begun = 0;
            continue;
        }
        let mut slices = [IoSlice::new(&[]); PARTS];
        let count = parts.len().min(PARTS);
        slices[0] = IoSlice::new(&first[begun..]);
        for (slice, part) in slices[1..count].iter_mut().zip(&parts[1..]) {
            *slice = IoSlice::new(part);
        }
        let mut written = match stream.write_vectored(&slices[..count]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => begun + written,
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
        let parts: Vec<Bytes> = (0..1000_usize)
            .map(|at| Bytes::from(vec![at as u8; at % 7]))
            .collect();
        for most in [1, 2, 3, 5, 1000, 100_000] {
            let mut narrow = Narrow {
                most,
                got: Vec::new(),
            };
            write_all(&mut narrow, &parts).unwrap();
            assert_eq!(narrow.got, parts.concat(), "{most}");
        }
    }
}
