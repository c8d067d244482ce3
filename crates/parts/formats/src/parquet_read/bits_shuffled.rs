//! What the unpackers that shuffle bytes have in common, which is where each byte goes and how wide
//! values may be.

/// The widest values that can be shuffled. A value and the up to 7 bits before it in its first byte
/// must fit into a lane of 32 bits.
pub(super) const MAX_WIDTH: usize = 25;

/// For each lane of 32 bits the four bytes that its value lies in, counted from where the values
/// begin that are shuffled `together`.
pub(super) const fn byte_indexes<const BYTES: usize>(width: usize, together: usize) -> [u8; BYTES] {
    let mut indexes = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        let lane = at / 4;
        let begin = (lane - lane % together) * width / 8;
        indexes[at] = (lane * width / 8 - begin + at % 4) as u8;
        at += 1;
    }
    indexes
}

/// For each lane how many bits of its first byte belong to the value before it.
pub(super) const fn shifts<const LANES: usize>(width: usize) -> [u32; LANES] {
    let mut shifts = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        shifts[lane] = (lane * width % 8) as u32;
        lane += 1;
    }
    shifts
}
