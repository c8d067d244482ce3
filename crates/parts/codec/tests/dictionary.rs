//! Pages packed with a dictionary against the pages themselves and an obvious decoder, and damaged
//! forms, which give an error or a page and touch nothing else.

use std::sync::LazyLock;

use dyno_codec::dictionary::{Decoder, Dictionary, Encoder, FormError, train};
use dyno_codec::lz4::{self, BLOCK_BOUND, PAGE_BYTES, Page};
use proptest::prelude::*;

const DICTIONARY_BYTES: usize = 16 << 10;

/// Pages of words of one vocabulary, each in an order of its own, behind `noise` bytes that repeat
/// nothing.
fn related(number: u64, noise: usize) -> Page {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut page = [0; PAGE_BYTES];
    for place in page.as_chunks_mut::<16>().0 {
        let word = u128::from(next() % 300).wrapping_mul(0x1234_5678_9abc_def1_0fed_cba9_8765_4321);
        *place = word.to_le_bytes();
    }
    for byte in &mut page[..noise] {
        *byte = next() as u8;
    }
    page
}

fn dictionary() -> &'static Dictionary {
    static MADE: LazyLock<Dictionary> = LazyLock::new(|| {
        let sample: Vec<Page> = (0..200).map(|number| related(number, 0)).collect();
        let bytes = train(&sample, DICTIONARY_BYTES).expect("pages that repeat each other");
        assert!(bytes.len() <= DICTIONARY_BYTES);
        Dictionary::new(&bytes).expect("memory")
    });
    &MADE
}

fn form_of(page: &Page) -> Vec<u8> {
    let mut encoder = Encoder::new(dictionary().bytes(), 1).expect("memory");
    let mut out = [0; BLOCK_BOUND];
    let len = encoder.encode(page, &mut out, BLOCK_BOUND).expect("room");
    out[..len].to_vec()
}

fn decoded(form: &[u8]) -> Result<Page, FormError> {
    let mut page = [0xa5; PAGE_BYTES];
    let mut decoder = Decoder::new().expect("memory");
    decoder.decode(form, dictionary(), &mut page)?;
    Ok(page)
}

/// Why a block is not one of a page.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It has an offset of 0, for which the library copies whatever bytes are there.
    Offset,
    Other,
}

/// LZ4 by its description, a byte at a time, with the dictionary in front of the page.
fn obviously_decoded(block: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut all = dictionary().bytes().to_vec();
    let end = all.len() + PAGE_BYTES;
    let mut bytes = block.iter().copied();
    let length = |bytes: &mut dyn Iterator<Item = u8>, nibble: u8| {
        let mut length = usize::from(nibble);
        let mut more = nibble == 15;
        while more {
            let byte = bytes.next().ok_or(Refusal::Other)?;
            length += usize::from(byte);
            more = byte == 255;
        }
        Ok::<usize, Refusal>(length)
    };
    loop {
        let token = bytes.next().ok_or(Refusal::Other)?;
        for _ in 0..length(&mut bytes, token >> 4)? {
            all.push(bytes.next().ok_or(Refusal::Other)?);
        }
        let Some(low) = bytes.next() else {
            return if all.len() == end {
                Ok(all.split_off(end - PAGE_BYTES))
            } else {
                Err(Refusal::Other)
            };
        };
        let high = bytes.next().ok_or(Refusal::Other)?;
        let offset = usize::from(u16::from_le_bytes([low, high]));
        if offset == 0 {
            return Err(Refusal::Offset);
        }
        let from = all.len().checked_sub(offset).ok_or(Refusal::Other)?;
        for at in from..from + 4 + length(&mut bytes, token & 15)? {
            all.push(all[at]);
        }
        if all.len() > end {
            return Err(Refusal::Other);
        }
    }
}

/// A form is refused, or gives the page that its block stands for.
fn check(form: &[u8]) {
    if let (Ok(page), Some((&1, block))) = (decoded(form), form.split_first()) {
        match obviously_decoded(block) {
            Ok(obvious) => assert!(obvious == page),
            Err(refusal) => assert_eq!(refusal, Refusal::Offset),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn pages_come_back(number in any::<u64>(), noise in 0..=PAGE_BYTES) {
        let page = related(number, noise);
        let form = form_of(&page);
        prop_assert!(decoded(&form).expect("our form") == page);
        if form[0] == 1 {
            let obvious = obviously_decoded(&form[1..]);
            prop_assert_eq!(obvious.as_deref(), Ok(&page[..]));
        }
        // Other forms of the same page.
        let mut plain = [1; BLOCK_BOUND];
        let mut encoder = lz4::Encoder::new(lz4::Codec::Page);
        let mut block = [0; BLOCK_BOUND];
        let len = encoder.encode(&page, &mut block, BLOCK_BOUND).expect("room");
        if len < plain.len() {
            plain[1..=len].copy_from_slice(&block[..len]);
            prop_assert!(decoded(&plain[..=len]).expect("a block is a form") == page);
        }
    }

    #[test]
    fn damaged_forms_are_refused_or_give_what_they_say(
        number in any::<u64>(),
        noise in 0..PAGE_BYTES,
        damage in any::<u64>(),
    ) {
        let mut form = form_of(&related(number, noise));
        let at = damage as usize % form.len();
        match damage >> 60 {
            0..4 => form.truncate(at),
            4..12 => form[at] ^= 1 << (damage >> 32 & 7),
            _ => form[at] = (damage >> 40) as u8,
        }
        check(&form);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_give_what_they_say(
        kind in 0..3u8,
        mut bytes in proptest::collection::vec(any::<u8>(), 1..600),
    ) {
        bytes[0] = kind;
        check(&bytes);
    }

    #[test]
    fn a_limit_is_kept(number in any::<u64>(), noise in 0..PAGE_BYTES, under in 0usize..3000) {
        let page = related(number, noise);
        let whole = form_of(&page).len();
        let mut encoder = Encoder::new(dictionary().bytes(), 1).expect("memory");
        let mut out = [0; BLOCK_BOUND];
        let limit = whole.saturating_sub(under);
        if let Some(len) = encoder.encode(&page, &mut out, limit) {
            // A frame that saved too little to be chosen may be all that fits.
            prop_assert!(len <= limit, "{} bytes, {} allowed", len, limit);
            prop_assert!(decoded(&out[..len]).expect("our form") == page);
        }
    }
}

#[test]
fn every_cut_and_every_changed_bit_of_both_forms_is_survived() {
    let mut kinds = [0; 2];
    for (number, noise) in [(777, 0), (5, 3000), (9, 100)] {
        let page = related(number, noise);
        let mut form = form_of(&page);
        kinds[usize::from(form[0])] += 1;
        for cut in 0..form.len() {
            assert!(decoded(&form[..cut]).is_err(), "{cut} bytes");
        }
        for bit in 0..8 * form.len() {
            form[bit / 8] ^= 1 << (bit % 8);
            check(&form);
            form[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(kinds.iter().sum::<i32>() == 3, "{kinds:?}");
}

#[test]
fn a_decoder_reads_on_after_damage() {
    let page = related(1, 50);
    let form = form_of(&page);
    let mut decoder = Decoder::new().expect("memory");
    let mut back = [0; PAGE_BYTES];
    for cut in [0, 1, 2, form.len() / 2, form.len() - 1] {
        assert!(
            decoder
                .decode(&form[..cut], dictionary(), &mut back)
                .is_err()
        );
        decoder
            .decode(&form, dictionary(), &mut back)
            .expect("whole");
        assert!(back == page);
    }
}

#[test]
fn pages_are_shorter_with_a_dictionary() {
    let page = related(777, 0);
    let mut out = [0; BLOCK_BOUND];
    let mut alone = lz4::Encoder::new(lz4::Codec::C);
    let alone = alone.encode(&page, &mut out, BLOCK_BOUND).expect("room");
    let with = form_of(&page).len();
    assert!(with < alone / 2, "{with} bytes with one, {alone} without");
}

#[test]
fn what_cannot_be_a_dictionary_is_refused() {
    let error = train(&[related(1, 0)], DICTIONARY_BYTES).expect_err("one page");
    assert!(error.to_string().starts_with("zstd: "), "{error}");
    let error = Dictionary::new(&[7; 70_000]).expect_err("too long");
    assert!(error.to_string().contains("60 KiB"), "{error}");
    let kind = decoded(&[2, 3]).expect_err("no such kind");
    assert_eq!(kind, FormError::Kind { form_bytes: 2 });
}
