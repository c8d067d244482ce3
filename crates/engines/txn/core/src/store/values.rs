//! A slab allocator for values, and for keys that are too long for their row.
//!
//! A chunk is [`CHUNK`] bytes, cut into cells of one size. Sizes are at most an eighth apart, so a
//! cell wastes little. A freed cell is reused before new ones are cut, and a chunk without live
//! cells is freed. A value that is larger than the largest cell has a chunk of its own size. So an
//! update usually neither allocates nor frees, and a value is found by two reads.

use super::prefetch::{populate, prefetch};

/// Offsets and sizes of cells are multiples of it.
const UNIT: usize = 16;
const CHUNK: usize = 1 << 20;
/// How much new memory is faulted in by one call. That costs less than a fault for each page, and
/// takes about 10 us.
const POPULATED: usize = 64 << 10;
/// The largest cell. A chunk has eight of them.
const CELL_MAX: usize = CHUNK / 8;
/// The number of sizes: one for each unit up to 16, then eight for each doubling.
const CLASSES: usize = 16 + 8 * (CELL_MAX / UNIT / 16).ilog2() as usize;
/// Cache lines of a value that are prefetched. The processor fetches the rest of a larger one on
/// its own, because the lines are read in order.
const PREFETCH_LINES: usize = 9;
/// The class of a chunk that has one large value.
const LARGE: u8 = u8::MAX;
/// Marks a chunk that is not in the list of chunks with room.
const UNLISTED: u32 = u32::MAX;

/// The location of a value: 24 bits of chunk, 16 bits of unit within it, 24 bits of length. Or
/// none, for a deleted row. It does not own the value, which must be freed by [`Values::free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored(u64);

impl Stored {
    pub const NONE: Stored = Stored(u64::MAX);
    /// An empty value, which has no cell.
    const EMPTY: Stored = Stored(0);

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    fn new(chunk: usize, unit: usize, length: usize) -> Self {
        Self((chunk as u64) << 40 | (unit as u64) << 24 | length as u64)
    }

    fn chunk(self) -> usize {
        (self.0 >> 40) as usize
    }

    fn start(self) -> usize {
        (self.0 >> 24 & 0xffff) as usize * UNIT
    }

    fn length(self) -> usize {
        (self.0 & 0xff_ffff) as usize
    }

    pub fn to_bits(self) -> u64 {
        self.0
    }

    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// The state of a chunk, apart from its bytes.
#[derive(Debug)]
struct Chunk {
    class: u8,
    /// How many cells it has.
    cells: u32,
    /// The first cell that was never used.
    fresh: u32,
    /// How many cells are in use.
    live: u32,
    /// Bytes from its start that were faulted in.
    populated: usize,
    free: Vec<u16>,
    /// Its index in the list of its class's chunks with room.
    listed: u32,
}

#[derive(Debug)]
pub(crate) struct Values {
    bytes: Vec<Box<[u8]>>,
    chunks: Vec<Chunk>,
    /// Numbers of chunks that were freed.
    freed: Vec<u32>,
    /// The chunks with room, by class.
    room: Vec<Vec<u32>>,
    /// Bytes of cells in use.
    used: u64,
}

impl Values {
    pub fn new() -> Self {
        Self {
            bytes: Vec::new(),
            chunks: Vec::new(),
            freed: Vec::new(),
            room: vec![Vec::new(); CLASSES],
            used: 0,
        }
    }

    /// The bytes of all cells in use, and of large values.
    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn get(&self, at: Stored) -> Option<&[u8]> {
        match at {
            Stored::NONE => None,
            Stored::EMPTY => Some(&[]),
            _ => Some(&self.bytes[at.chunk()][at.start()..at.start() + at.length()]),
        }
    }

    pub fn insert(&mut self, value: &[u8]) -> Stored {
        if value.is_empty() {
            return Stored::EMPTY;
        }
        if value.len() > CELL_MAX {
            let chunk = self.add_chunk(LARGE, value.into(), 1);
            self.used += value.len() as u64;
            self.chunks[chunk].live = 1;
            return Stored::new(chunk, 0, value.len());
        }
        let (class, units) = class_of(value.len());
        let chunk = match self.room[class].last() {
            Some(&chunk) => chunk as usize,
            None => self.add_room(class, units),
        };
        let about = &mut self.chunks[chunk];
        let cell = about.free.pop().map_or(about.fresh, u32::from);
        about.fresh = about.fresh.max(cell + 1);
        about.live += 1;
        if about.live == about.cells {
            self.room[class].pop();
            about.listed = UNLISTED;
        }
        self.used += (units * UNIT) as u64;
        let unit = cell as usize * units;
        // Cells are cut from the front, so that everything from `populated` on is untouched memory.
        let end = (unit + units) * UNIT;
        if end > about.populated {
            let from = std::mem::replace(&mut about.populated, end.next_multiple_of(POPULATED));
            let to = about.populated.min(CHUNK);
            populate(&mut self.bytes[chunk][from..to]);
        }
        self.bytes[chunk][unit * UNIT..][..value.len()].copy_from_slice(value);
        self.prefetch_next(class, units);
        Stored::new(chunk, unit, value.len())
    }

    /// Prefetches the cell that the next value of this class will be written to, which was freed
    /// long ago.
    fn prefetch_next(&self, class: usize, units: usize) {
        let next = self.room[class].last().and_then(|&chunk| {
            let cell = *self.chunks[chunk as usize].free.last()?;
            self.cell(chunk, cell, units)
        });
        prefetch_lines(next.unwrap_or(&[]));
    }

    /// Prefetches the cells that the next so many values of this length will be written to.
    pub fn prefetch_room(&self, length: usize, count: usize) {
        if length == 0 || length > CELL_MAX {
            return;
        }
        let (class, units) = class_of(length);
        let chunks = self.room[class].iter().rev();
        let free = chunks.flat_map(|&chunk| {
            let cells = self.chunks[chunk as usize].free.iter().rev();
            cells.map(move |&cell| (chunk, cell))
        });
        for (chunk, cell) in free.take(count) {
            prefetch_lines(self.cell(chunk, cell, units).unwrap_or(&[]));
        }
    }

    fn cell(&self, chunk: u32, cell: u16, units: usize) -> Option<&[u8]> {
        let start = usize::from(cell) * units * UNIT;
        self.bytes[chunk as usize].get(start..start + units * UNIT)
    }

    pub fn free(&mut self, at: Stored) {
        if at == Stored::NONE || at == Stored::EMPTY {
            return;
        }
        let chunk = at.chunk();
        let about = &mut self.chunks[chunk];
        if about.class == LARGE {
            self.used -= at.length() as u64;
            return self.free_chunk(chunk);
        }
        let (class, units) = class_of(at.length());
        self.used -= (units * UNIT) as u64;
        about.live -= 1;
        about.free.push((at.start() / UNIT / units) as u16);
        if about.listed == UNLISTED {
            about.listed = self.room[class].len() as u32;
            self.room[class].push(chunk as u32);
        }
        // One chunk of a class stays, so that inserting and freeing one value in turns does not
        // allocate each time.
        if about.live == 0 && self.room[class].len() > 1 {
            self.unlist(class, chunk);
            self.free_chunk(chunk);
        }
    }

    /// Prefetches what [`Values::free`] will write to.
    pub fn prefetch_free(&self, at: Stored) {
        if at != Stored::NONE
            && at != Stored::EMPTY
            && let Some(last) = self.chunks[at.chunk()].free.last()
        {
            prefetch(last);
        }
    }

    fn add_room(&mut self, class: usize, units: usize) -> usize {
        let cells = (CHUNK / UNIT / units) as u32;
        let chunk = self.add_chunk(class as u8, vec![0; CHUNK].into(), cells);
        self.chunks[chunk].listed = self.room[class].len() as u32;
        self.room[class].push(chunk as u32);
        chunk
    }

    fn add_chunk(&mut self, class: u8, bytes: Box<[u8]>, cells: u32) -> usize {
        let chunk = Chunk {
            class,
            cells,
            fresh: 0,
            live: 0,
            populated: 0,
            free: Vec::new(),
            listed: UNLISTED,
        };
        match self.freed.pop() {
            Some(number) => {
                self.chunks[number as usize] = chunk;
                self.bytes[number as usize] = bytes;
                number as usize
            }
            None => {
                self.chunks.push(chunk);
                self.bytes.push(bytes);
                self.chunks.len() - 1
            }
        }
    }

    fn unlist(&mut self, class: usize, chunk: usize) {
        let at = self.chunks[chunk].listed as usize;
        self.room[class].swap_remove(at);
        if let Some(&moved) = self.room[class].get(at) {
            self.chunks[moved as usize].listed = at as u32;
        }
    }

    fn free_chunk(&mut self, chunk: usize) {
        self.bytes[chunk] = Box::default();
        self.chunks[chunk].free = Vec::new();
        self.freed.push(chunk as u32);
    }
}

pub(super) fn prefetch_lines(value: &[u8]) {
    for line in value.chunks(64).take(PREFETCH_LINES) {
        prefetch(&line[0]);
    }
}

/// The class for a value of this length, at least one byte, and the units of its cells.
fn class_of(length: usize) -> (usize, usize) {
    let units = length.div_ceil(UNIT);
    if units <= 16 {
        return (units - 1, units);
    }
    let shift = (units - 1).ilog2() as usize - 3;
    let steps = ((units - 1) >> shift) + 1;
    (16 + (shift - 1) * 8 + steps - 9, steps << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_and_waste_at_most_an_eighth() {
        let mut before = (0, 1);
        for length in 1..=CELL_MAX {
            let (class, units) = class_of(length);
            assert!(class < CLASSES && units * UNIT >= length);
            assert!(units * UNIT <= length + (length / 8).max(UNIT - 1) + UNIT);
            assert!((class, units) == before || class == before.0 + 1 && units > before.1);
            before = (class, units);
        }
        assert_eq!(before, (CLASSES - 1, CELL_MAX / UNIT));
    }

    #[test]
    fn values_stay_what_they_are_and_all_goes_back() {
        let (mut random, mut values) = (dyno_sim::Random::new(3), Values::new());
        let mut kept: Vec<(Stored, Vec<u8>)> = Vec::new();
        for round in 0..20_000u32 {
            let size = match random.bits() % 100 {
                0 => 200_000,
                1..20 => 40_000,
                _ => 600,
            };
            let value = vec![round as u8; (random.bits() % size) as usize];
            let at = values.insert(&value);
            kept.push((at, value));
            if kept.len() > 300 || random.one_in(3) {
                let (at, value) = kept.swap_remove(random.bits() as usize % kept.len());
                assert_eq!(values.get(at), Some(&*value));
                values.free(at);
            }
        }
        for (at, value) in kept {
            assert_eq!(values.get(at), Some(&*value));
            values.free(at);
        }
        assert_eq!(values.used(), 0);
        let chunks = values.bytes.iter().filter(|bytes| !bytes.is_empty());
        assert!(chunks.count() <= CLASSES);
    }
}
