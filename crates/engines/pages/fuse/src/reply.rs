//! Replies to the kernel, as `linux/fuse.h` lays them out.

use crate::DEVICE;
use crate::request::{FILE, ROOT};

/// Length of the head in front of every reply.
pub const HEAD_BYTES: usize = 16;
/// The most bytes of one read or write.
pub const MOST_BYTES: u32 = 1 << 20;
/// How long the kernel may cache what never changes, in seconds.
const REMEMBER_S: u64 = 3600;
/// The protocol version. 7.31 is old enough to be everywhere, and has all that is used here except
/// the repetition of requests.
const MINOR: u32 = 31;

/// The abilities of the kernel that are used: reads and direct I/O in parallel, writes of more than
/// a page, more than 32 pages in a request, and requests again after a daemon died.
const WANTED: u64 = 1 | 1 << 5 | 1 << 15 | 1 << 22 | 1 << 30 | 1 << 39;

/// A reply under construction. Its buffer is reused for the next one.
#[derive(Debug, Default)]
pub struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    /// Begins the reply to request `unique`.
    pub fn begin(&mut self, unique: u64) {
        self.bytes.clear();
        self.bytes.extend([0; 8]);
        self.bytes.extend(unique.to_ne_bytes());
    }

    /// Finishes the reply, with what was put into it or with an error number alone.
    pub fn end(&mut self, done: Result<(), i32>) -> &[u8] {
        if let Err(errno) = done {
            self.bytes.truncate(HEAD_BYTES);
            self.bytes[4..8].copy_from_slice(&(-errno).to_ne_bytes());
        }
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        &self.bytes
    }

    /// Room for this many bytes of data, zeroed.
    pub fn data(&mut self, bytes: usize) -> &mut [u8] {
        let from = self.bytes.len();
        self.bytes.resize(from + bytes, 0);
        &mut self.bytes[from..]
    }

    fn u32s(&mut self, words: &[u32]) {
        words
            .iter()
            .for_each(|word| self.bytes.extend(word.to_ne_bytes()));
    }

    fn u64s(&mut self, words: &[u64]) {
        words
            .iter()
            .for_each(|word| self.bytes.extend(word.to_ne_bytes()));
    }

    /// The reply to Init: which version and abilities both sides use from now on.
    pub fn init(&mut self, max_readahead: u32, can: u64) {
        let flags = WANTED & can;
        self.u32s(&[7, MINOR, max_readahead, flags as u32]);
        // The most requests in the background, and the number from which the kernel slows writers
        // down.
        let (background, congested) = (64u32, 48u32);
        self.u32s(&[background | congested << 16, MOST_BYTES, 1]);
        self.u32s(&[MOST_BYTES / 4096, (flags >> 32) as u32]);
        self.u32s(&[0; 7]);
    }

    /// The reply to Lookup: a node and its attributes.
    pub fn entry(&mut self, node: u64, bytes: u64) {
        self.u64s(&[node, 0, REMEMBER_S, REMEMBER_S]);
        self.u32s(&[0, 0]);
        self.stat(node, bytes);
    }

    /// The reply to GetAttributes and SetAttributes.
    pub fn attributes(&mut self, node: u64, bytes: u64) {
        self.u64s(&[REMEMBER_S]);
        self.u32s(&[0, 0]);
        self.stat(node, bytes);
    }

    fn stat(&mut self, node: u64, bytes: u64) {
        let (mode, links, bytes) = match node {
            ROOT => (libc::S_IFDIR | 0o700, 2, 0),
            _ => (libc::S_IFREG | 0o600, 1, bytes),
        };
        // Inode number, size, blocks, and three times that are not kept.
        self.u64s(&[node, bytes, bytes.div_ceil(512), 0, 0, 0]);
        self.u32s(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0]);
    }

    /// The reply to Open: a file without a page cache above our store, whose writes go in parallel;
    /// or a directory.
    pub fn opened(&mut self, file: bool) {
        const DIRECT: u32 = 1;
        const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
        self.u64s(&[0]);
        self.u32s(&[
            if file {
                DIRECT | PARALLEL_DIRECT_WRITES
            } else {
                0
            },
            0,
        ]);
    }

    /// The reply to Write: how many bytes were stored.
    pub fn written(&mut self, bytes: u32) {
        self.u32s(&[bytes, 0]);
    }

    /// The reply to StatFs: all blocks and free ones.
    pub fn file_system(&mut self, blocks: u64, free: u64) {
        self.u64s(&[blocks, free, free, 1, 0]);
        self.u32s(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// The reply to ReadDirectory: the names from `offset` on that fit into `most` bytes.
    pub fn names(&mut self, offset: u64, most: u32) {
        let all = [(ROOT, 4, "."), (ROOT, 4, ".."), (FILE, 8, DEVICE)];
        let end = HEAD_BYTES + most as usize;
        for (number, (node, kind, name)) in (1..).zip(all).skip(offset.min(3) as usize) {
            let padded = name.len().next_multiple_of(8);
            if self.bytes.len() + 24 + padded > end {
                return;
            }
            self.u64s(&[node, number]);
            self.u32s(&[name.len() as u32, kind]);
            self.data(padded)[..name.len()].copy_from_slice(name.as_bytes());
        }
    }
}

/// The message that asks the kernel to send again what was read from it and not replied to.
pub fn repeat() -> [u8; HEAD_BYTES] {
    const REPEAT: u32 = 7;
    let mut bytes = [0; HEAD_BYTES];
    bytes[..4].copy_from_slice(&(HEAD_BYTES as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&REPEAT.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_lengths_of_the_header_file() {
        let length = |make: &dyn Fn(&mut Reply)| {
            let mut reply = Reply::default();
            reply.begin(5);
            make(&mut reply);
            reply.end(Ok(())).len() - HEAD_BYTES
        };
        assert_eq!(length(&|reply| reply.init(1 << 17, u64::MAX)), 64);
        assert_eq!(length(&|reply| reply.entry(FILE, 4096)), 128);
        assert_eq!(length(&|reply| reply.attributes(ROOT, 4096)), 104);
        assert_eq!(length(&|reply| reply.opened(true)), 16);
        assert_eq!(length(&|reply| reply.written(3)), 8);
        assert_eq!(length(&|reply| reply.file_system(10, 5)), 80);
        assert_eq!(length(&|reply| reply.names(0, 4096)), 96);
        assert_eq!(length(&|reply| reply.names(2, 4096)), 32);
        assert_eq!(length(&|reply| reply.names(0, 40)), 32);
        assert_eq!(length(&|reply| reply.names(9, 4096)), 0);
    }

    #[test]
    fn an_error_is_a_negative_number_and_nothing_else() {
        let mut reply = Reply::default();
        reply.begin(9);
        reply.written(3);
        let bytes = reply.end(Err(libc::ENOSPC)).to_vec();
        assert_eq!(bytes.len(), HEAD_BYTES);
        assert_eq!(bytes[4..8], (-28i32).to_ne_bytes());
        assert_eq!(bytes[8..], 9u64.to_ne_bytes());
    }
}
