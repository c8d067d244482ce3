//! Rows of a block that filters have chosen, by their places in it.

use dyno_formats::parquet_read::BLOCK_ROWS;

/// The chosen of `from`, each through `by`.
pub(crate) fn gather<F: Copy, T>(
    from: &[F],
    chosen: Option<&[u32]>,
    to: &mut [T],
    by: impl Fn(F) -> T,
) {
    gather_into(from, chosen, to, |to, from| *to = by(from));
}

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

/// Writes down the places of codes that are chosen, and says how many there are.
pub(crate) fn first_choice(
    chosen: &mut [u32; BLOCK_ROWS],
    codes: &[u32],
    result: impl Fn(u32) -> bool,
) -> usize {
    let mut count = 0;
    for (at, code) in codes.iter().enumerate().take(BLOCK_ROWS) {
        // Without a branch: whether a row is chosen cannot be foretold. The mask changes no count
        // of rows before the last, and proves the place in bounds.
        chosen[count & (BLOCK_ROWS - 1)] = at as u32;
        count += result(*code) as usize;
    }
    count
}

/// Keeps the places that are chosen, too.
pub(crate) fn next_choice(
    chosen: &mut [u32],
    codes: &[u32],
    result: impl Fn(u32) -> bool,
) -> usize {
    let mut count = 0;
    for at in 0..chosen.len() {
        let place = chosen[at];
        chosen[count] = place;
        count += result(codes[place as usize]) as usize;
    }
    count
}
