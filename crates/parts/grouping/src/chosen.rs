//! Lists the rows of a block that filters choose, and gathers their values.

use dyno_formats::parquet_read::BLOCK_ROWS;

/// Fills `to` with the chosen elements of `from`, or all of them, each mapped by `by`.
pub(crate) fn gather<F: Copy, T>(
    from: &[F],
    chosen: Option<&[u32]>,
    to: &mut [T],
    by: impl Fn(F) -> T,
) {
    gather_into(from, chosen, to, |to, from| *to = by(from));
}

/// Calls `by` for each element of `to` with the chosen element of `from` that belongs to it.
pub(crate) fn gather_into<F: Copy, T>(
    from: &[F],
    chosen: Option<&[u32]>,
    to: &mut [T],
    by: impl Fn(&mut T, F),
) {
    match chosen {
        None => to.iter_mut().zip(from).for_each(|(to, from)| by(to, *from)),
        Some(chosen) => {
            for (to, at) in to.iter_mut().zip(chosen) {
                by(to, from[*at as usize]);
            }
        }
    }
}

/// Lists the rows whose codes are chosen, and returns how many there are.
pub(crate) fn first_choice(
    chosen: &mut [u32; BLOCK_ROWS],
    codes: &[u32],
    result: impl Fn(u32) -> bool,
) -> usize {
    let mut count = 0;
    for (at, code) in codes.iter().enumerate().take(BLOCK_ROWS) {
        // There is no branch, because the processor could not predict whether a row is chosen. The
        // mask changes no count of rows before the last, and proves the index in bounds.
        chosen[count & (BLOCK_ROWS - 1)] = at as u32;
        count += result(*code) as usize;
    }
    count
}

/// Keeps the listed rows whose codes in another column are chosen too, and returns how many there
/// are.
pub(crate) fn next_choice(
    chosen: &mut [u32],
    codes: &[u32],
    result: impl Fn(u32) -> bool,
) -> usize {
    let mut count = 0;
    for at in 0..chosen.len() {
        // The list is never longer than what has been read of it, so it is overwritten in place.
        let place = chosen[at];
        chosen[count] = place;
        count += result(codes[place as usize]) as usize;
    }
    count
}
