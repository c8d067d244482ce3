//! The fuzz targets' bodies on a seeded corpus.

mod lz4_agrees;

use dyno_codec::lz4::{BLOCK_BOUND, Codec, Encoder, PAGE_BYTES, Page};

const CASES: u64 = 4000;

struct Draws(u64);

impl Draws {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % below
    }
}

#[test]
fn arbitrary_bytes_as_blocks() {
    let mut draws = Draws(1);
    for _ in 0..CASES {
        let len = draws.next(600);
        // Small values make short sequences, which get furthest.
        let most = [4, 32, 256][draws.next(3)];
        let block: Vec<u8> = (0..len).map(|_| draws.next(most) as u8).collect();
        lz4_agrees::check_block(&block);
    }
}

#[test]
fn blocks_cut_off_and_with_several_bits_flipped() {
    let mut draws = Draws(2);
    for case in 0..CASES {
        let page: Page = std::array::from_fn(|at| ((at * draws.next(3)) >> (case % 5)) as u8);
        let mut out = [0; BLOCK_BOUND];
        let len = Encoder::new(Codec::Page)
            .encode(&page, &mut out, BLOCK_BOUND)
            .expect("room");
        for _ in 0..1 + case % 6 {
            out[draws.next(len)] ^= 1 << draws.next(8);
        }
        lz4_agrees::check_block(&out[..len]);
        lz4_agrees::check_block(&out[..draws.next(len)]);
    }
}

#[test]
fn pages_of_all_periods() {
    let mut draws = Draws(3);
    for period in (1..300).chain([511, 512, 513, 4090, PAGE_BYTES]) {
        let bytes: Vec<u8> = (0..period).map(|_| draws.next(256) as u8).collect();
        lz4_agrees::check_page(&bytes);
    }
}
