//! Decoding tables for Huffman codes (RFC 1951, section 3.2.2).
//!
//! A table has `1 << main_bits` entries, indexed by the next bits of the stream; a longer code
//! leads to a sub-table behind them. An entry has one of these forms:
//!
//! ```text
//! literal     1 | byte (bits 16..24)  | bits to take (0..8)
//! base+extra  0 | base (bits 16..31)  | bits of the code (8..12) | code and extra bits (0..8)
//! sub-table   0 | start (bits 16..31) | EXCEPTION | SUBTABLE | index (8..12) | main bits (0..8)
//! end         0 | EXCEPTION | END | bits to take
//! invalid     0 | EXCEPTION
//! ```

/// Marks the entry of a literal.
pub(super) const LITERAL: u32 = 1 << 31;
/// Marks an entry that is neither a literal nor a length or distance.
pub(super) const EXCEPTION: u32 = 1 << 15;
/// Marks an entry that points to a sub-table.
pub(super) const SUBTABLE: u32 = 1 << 14;
/// Marks the entry of the end of block.
pub(super) const END: u32 = 1 << 13;

/// Index bits of the table of literals and lengths: most codes of text are at most this long.
pub(super) const LITERAL_BITS: u32 = 11;
/// Index bits of the distance table.
pub(super) const DISTANCE_BITS: u32 = 9;
/// Index bits of the table for code lengths, whose codes have at most 7 bits.
pub(super) const LENGTH_CODE_BITS: u32 = 7;

const MAX_BITS: usize = 15;

/// Lowest length and number of extra bits of symbols 257 to 285 (RFC 1951, section 3.2.5).
const LENGTHS: [(u32, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// Lowest distance and number of extra bits of distance symbols 0 to 29.
const DISTANCES: [(u32, u32); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];

/// What the symbols of a code stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    Literals,
    Distances,
    CodeLengths,
}

impl Alphabet {
    fn main_bits(self) -> u32 {
        match self {
            Alphabet::Literals => LITERAL_BITS,
            Alphabet::Distances => DISTANCE_BITS,
            Alphabet::CodeLengths => LENGTH_CODE_BITS,
        }
    }

    /// The entry of `symbol`, whose code consumes `bits` of the table that holds it.
    fn entry(self, symbol: usize, bits: u32) -> u32 {
        let with_extra = |(base, extra): (u32, u32)| base << 16 | bits << 8 | (bits + extra);
        match self {
            Alphabet::CodeLengths => (symbol as u32) << 16 | bits << 8 | bits,
            Alphabet::Distances => DISTANCES.get(symbol).map_or(EXCEPTION, |&d| with_extra(d)),
            Alphabet::Literals if symbol < 256 => LITERAL | (symbol as u32) << 16 | bits,
            Alphabet::Literals if symbol == 256 => EXCEPTION | END | bits,
            Alphabet::Literals => LENGTHS
                .get(symbol - 257)
                .map_or(EXCEPTION, |&l| with_extra(l)),
        }
    }
}

/// Fills `table` for the code with these lengths.
///
/// # Errors
/// A sentence if the lengths do not form a prefix code. As in zlib, an incomplete code is accepted
/// only if it has a single symbol of one bit (or, for distances, no symbol at all).
pub(super) fn build(
    table: &mut Vec<u32>,
    alphabet: Alphabet,
    lengths: &[u8],
) -> Result<(), &'static str> {
    let main_bits = alphabet.main_bits();
    let mut count = [0u16; MAX_BITS + 1];
    for &length in lengths {
        count[usize::from(length)] += 1;
    }
    count[0] = 0;
    check_complete(&count, alphabet)?;

    let mut next_code = [0u32; MAX_BITS + 2];
    for bits in 1..=MAX_BITS {
        next_code[bits + 1] = (next_code[bits] + u32::from(count[bits])) << 1;
    }
    table.clear();
    table.resize(1 << main_bits, EXCEPTION);
    let mut long: Vec<(u32, u32, usize)> = Vec::new();
    for (symbol, &length) in lengths.iter().enumerate() {
        if length == 0 {
            continue;
        }
        let bits = u32::from(length);
        let code = next_code[bits as usize];
        next_code[bits as usize] += 1;
        // Codes arrive with their first bit lowest, and the table is indexed by the bits as they
        // arrive.
        let reversed = code.reverse_bits() >> (32 - bits);
        if bits > main_bits {
            long.push((reversed, bits, symbol));
            continue;
        }
        let entry = alphabet.entry(symbol, bits);
        for slot in table[reversed as usize..].iter_mut().step_by(1 << bits) {
            *slot = entry;
        }
    }
    add_subtables(table, alphabet, &mut long);
    Ok(())
}

fn check_complete(count: &[u16; MAX_BITS + 1], alphabet: Alphabet) -> Result<(), &'static str> {
    let mut left: i32 = 1;
    for &n in &count[1..] {
        left = (left << 1) - i32::from(n);
        if left < 0 {
            return Err("a Huffman code is over-subscribed");
        }
    }
    let symbols: u16 = count[1..].iter().sum();
    let alone = symbols == 1 && count[1] == 1 && alphabet != Alphabet::CodeLengths;
    let none = symbols == 0 && alphabet == Alphabet::Distances;
    if left > 0 && !alone && !none {
        return Err("a Huffman code is incomplete");
    }
    Ok(())
}

/// Appends a sub-table for every main index that is shared by long codes.
fn add_subtables(table: &mut Vec<u32>, alphabet: Alphabet, long: &mut [(u32, u32, usize)]) {
    let main_bits = alphabet.main_bits();
    let main_mask = (1 << main_bits) - 1;
    long.sort_unstable_by_key(|&(reversed, ..)| reversed & main_mask);
    for group in long.chunk_by(|a, b| a.0 & main_mask == b.0 & main_mask) {
        let index_bits = group
            .iter()
            .map(|&(_, bits, _)| bits - main_bits)
            .max()
            .unwrap_or(0);
        let start = table.len();
        table[(group[0].0 & main_mask) as usize] =
            (start as u32) << 16 | EXCEPTION | SUBTABLE | index_bits << 8 | main_bits;
        table.resize(start + (1 << index_bits), EXCEPTION);
        for &(reversed, bits, symbol) in group {
            let entry = alphabet.entry(symbol, bits - main_bits);
            let first = start + (reversed >> main_bits) as usize;
            for slot in table[first..].iter_mut().step_by(1 << (bits - main_bits)) {
                *slot = entry;
            }
        }
    }
}
