//! The compressed frames in which ClickHouse takes data: checksum (16 bytes, CityHash128 of version
//! 1.0.2 over all that follows), method (1 byte), length of the frame without the checksum and
//! length of the data (4 bytes each, little-endian), and an LZ4 block. Has `unsafe`: calls into C.
//!
//! Source: ClickHouse, `src/Compression/CompressedReadBufferBase.cpp` and `CompressionInfo.h`.

use std::ffi::{c_char, c_int};

/// Data bytes of one frame: its LZ4 block and the table for it stay in the second-level cache.
pub const FRAME_BYTES: usize = 256 << 10;

const CHECKSUM: usize = 16;
const HEADER: usize = 9;
const LZ4: u8 = 0x82;

/// Packs bytes into frames, and keeps the finished frames.
#[derive(Debug)]
pub struct FrameWriter {
    data: Box<[u8]>,
    used: usize,
    frames: Vec<u8>,
}

impl FrameWriter {
    /// Uses the memory of `frames`; what is in it is dropped.
    pub fn new(mut frames: Vec<u8>) -> Self {
        frames.clear();
        FrameWriter {
            data: vec![0; FRAME_BYTES].into(),
            used: 0,
            frames,
        }
    }

    /// The next `len` bytes, at most [`FRAME_BYTES`], for the caller to fill. They hold arbitrary
    /// bytes at first.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= FRAME_BYTES, "{len} bytes in one frame");
        if self.used + len > FRAME_BYTES {
            self.seal();
        }
        let start = self.used;
        self.used += len;
        &mut self.data[start..self.used]
    }

    /// Appends bytes, split over as many frames as they need.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.used == FRAME_BYTES {
                self.seal();
            }
            let n = bytes.len().min(FRAME_BYTES - self.used);
            let (now, later) = bytes.split_at(n);
            self.data[self.used..self.used + n].copy_from_slice(now);
            self.used += n;
            bytes = later;
        }
    }

    /// Seals the last frame and returns all frames. The writer starts over in the memory of `next`.
    pub fn finish(&mut self, mut next: Vec<u8>) -> Vec<u8> {
        self.seal();
        next.clear();
        std::mem::replace(&mut self.frames, next)
    }

    fn seal(&mut self) {
        if self.used == 0 {
            return;
        }
        let data = &self.data[..self.used];
        let start = self.frames.len();
        let block = start + CHECKSUM + HEADER;
        // SAFETY: takes a number and touches nothing; FRAME_BYTES is far below the library's limit.
        let bound = unsafe { lz4_sys::LZ4_compressBound(data.len() as c_int) } as usize;
        self.frames.resize(block + bound, 0);
        // SAFETY: the pointers are good for the lengths given, and do not overlap.
        let written = unsafe {
            lz4_sys::LZ4_compress_default(
                data.as_ptr().cast::<c_char>(),
                self.frames[block..].as_mut_ptr().cast::<c_char>(),
                data.len() as c_int,
                bound as c_int,
            )
        };
        let written = usize::try_from(written).unwrap_or_default();
        assert!(
            written > 0,
            "LZ4 fails only without room, and it has its bound"
        );
        self.frames.truncate(block + written);
        let header = &mut self.frames[start + CHECKSUM..];
        header[0] = LZ4;
        header[1..5].copy_from_slice(&((HEADER + written) as u32).to_le_bytes());
        header[5..9].copy_from_slice(&(data.len() as u32).to_le_bytes());
        let checksum = checksum(header);
        self.frames[start..start + CHECKSUM].copy_from_slice(&checksum);
        self.used = 0;
    }
}

/// CityHash128 as ClickHouse stores it, the lower half first.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    cityhash_rs::cityhash_102_128(bytes)
        .rotate_right(64)
        .to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads frames slowly, by another implementation of LZ4.
    fn read(mut frames: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        while !frames.is_empty() {
            let size = |at: usize| {
                let bytes: [u8; 4] = frames[at..at + 4].try_into().expect("four bytes");
                u32::from_le_bytes(bytes) as usize
            };
            assert_eq!(frames[CHECKSUM], LZ4);
            let end = CHECKSUM + size(CHECKSUM + 1);
            let packed = &frames[CHECKSUM..end];
            assert_eq!(frames[..CHECKSUM], checksum(packed));
            let block = lz4_flex::block::decompress(&packed[HEADER..], size(CHECKSUM + 5));
            let block = block.expect("an LZ4 block");
            assert_eq!(block.len(), size(CHECKSUM + 5));
            assert!(block.len() <= FRAME_BYTES);
            data.extend_from_slice(&block);
            frames = &frames[end..];
        }
        data
    }

    /// The frame is the column file of a part that clickhouse-server 18.16.1 wrote:
    /// FixedString(16), one row.
    #[test]
    fn a_frame_of_a_server_has_our_checksum() {
        let frame = [
            0x09, 0x3b, 0x62, 0x60, 0x79, 0xe4, 0xc1, 0x40, 0xe0, 0x1c, 0x79, 0x5f, 0xb3, 0xf9,
            0x41, 0x7c, 0x82, 0x14, 0, 0, 0, 0x10, 0, 0, 0, 0x25, 0x61, 0, 1, 0, 0x50, 0, 0, 0, 0,
            0,
        ];
        assert_eq!(read(&frame), b"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    }

    proptest! {
        #[test]
        fn what_is_put_in_comes_back(
            pieces in proptest::collection::vec((any::<u8>(), 0usize..FRAME_BYTES, any::<bool>()), 0..8),
        ) {
            let mut writer = FrameWriter::new(vec![1, 2, 3]);
            for _again in 0..2 {
                let mut expected = Vec::new();
                for &(seed, len, whole) in &pieces {
                    let piece: Vec<u8> = (0..len)
                        .map(|i| seed.wrapping_mul(31).wrapping_add(((i * i) >> 7) as u8))
                        .collect();
                    if whole {
                        writer.room(len).copy_from_slice(&piece);
                    } else {
                        writer.write(&piece);
                        writer.write(&piece);
                        expected.extend_from_slice(&piece);
                    }
                    expected.extend_from_slice(&piece);
                }
                prop_assert_eq!(read(&writer.finish(Vec::new())), expected);
            }
        }
    }
}
