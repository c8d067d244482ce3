//! Our encoder against the C library's decoder and lz4_flex's, its plain twin, and damaged blocks
//! behind guard pages.

mod lz4_agrees;

use proptest::prelude::*;

use dyno_codec::lz4::{BLOCK_BOUND, BlockError, Codec, Encoder, PAGE_BYTES, Page, decode};

const KINDS: [Codec; 3] = [Codec::C, Codec::Page, Codec::PagePlain];

/// Pages of bytes with repetitions at all distances: copies of what came before, runs and noise.
fn pages() -> impl Strategy<Value = Box<Page>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| (bytes, 0, 0)),
        (1usize..300, 1usize..400).prop_map(|(back, len)| (Vec::new(), back, len)),
        (1usize..4000, 4usize..12).prop_map(|(back, len)| (Vec::new(), back, len)),
    ];
    proptest::collection::vec(piece, 1..700).prop_map(|pieces| {
        let mut bytes: Vec<u8> = Vec::with_capacity(2 * PAGE_BYTES);
        for (fresh, back, len) in pieces.into_iter().cycle().take(5000) {
            if bytes.len() >= PAGE_BYTES {
                break;
            }
            bytes.extend_from_slice(&fresh);
            let from = bytes.len().saturating_sub(back);
            for at in 0..len {
                bytes.push(bytes.get(from + at).copied().unwrap_or(7));
            }
        }
        bytes.resize(PAGE_BYTES, 0);
        bytes.into_boxed_slice().try_into().expect("a page long")
    })
}

fn block_of(codec: Codec, page: &Page) -> Vec<u8> {
    let mut out = [0; BLOCK_BOUND];
    let len = Encoder::new(codec)
        .encode(page, &mut out, BLOCK_BOUND)
        .expect("room for any block");
    out[..len].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn two_decoders_read_what_each_encoder_writes(page in pages()) {
        for writer in KINDS {
            let block = block_of(writer, &page);
            let mut back = [0xa5; PAGE_BYTES];
            prop_assert_eq!(decode(&block, &mut back), Ok(()));
            prop_assert!(back == *page, "the C library of {:?}", writer);
            let read = lz4_flex::block::decompress_into(&block, &mut back);
            prop_assert!(matches!(read, Ok(PAGE_BYTES)), "{:?}", read);
            prop_assert!(back == *page, "lz4_flex of {:?}", writer);
        }
    }

    #[test]
    fn pages_of_any_period(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
        lz4_agrees::check_page(&bytes);
    }

    #[test]
    fn the_plain_twin_writes_the_same_block(page in pages()) {
        prop_assert_eq!(block_of(Codec::Page, &page), block_of(Codec::PagePlain, &page));
    }

    #[test]
    fn a_limit_is_kept_to_the_byte(page in pages(), under in 1usize..50) {
        for codec in KINDS {
            let len = block_of(codec, &page).len();
            let (mut encoder, mut out) = (Encoder::new(codec), [0; BLOCK_BOUND]);
            prop_assert_eq!(encoder.encode(&page, &mut out, len), Some(len));
            prop_assert_eq!(encoder.encode(&page, &mut out, len - under.min(len)), None);
        }
    }

    #[test]
    fn damaged_blocks_are_refused_or_give_a_page(page in pages(), damage in any::<u64>()) {
        let mut block = block_of(Codec::C, &page);
        let at = damage as usize % block.len();
        match damage >> 60 {
            0..4 => block.truncate(at),
            4..12 => block[at] ^= 1 << (damage >> 32 & 7),
            _ => block[at] = (damage >> 40) as u8,
        }
        lz4_agrees::check_block(&block);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_give_a_page(
        bytes in proptest::collection::vec(any::<u8>(), 0..600)
    ) {
        lz4_agrees::check_block(&bytes);
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let mut page = [0; PAGE_BYTES];
    let mut refused = |block: &[u8]| decode(block, &mut page).expect_err("bad");
    assert_eq!(refused(&[]), BlockError::Refused { block_bytes: 0 });
    let far = [0x10, b'x', 9, 0, 0, 0];
    assert_eq!(refused(&far), BlockError::Refused { block_bytes: 6 });
    let short = [0x10, b'x'];
    assert_eq!(refused(&short), BlockError::Length { page_bytes: 1 });
}

#[test]
fn noise_is_told_by_the_limit() {
    let mut state = 1u64;
    let page: Page = std::array::from_fn(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    for codec in KINDS {
        assert_eq!(
            Encoder::new(codec).encode(&page, &mut [0; BLOCK_BOUND], 4000),
            None
        );
    }
}
