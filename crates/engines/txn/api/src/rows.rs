//! Values that were read together.

/// Values of several rows, one after the other in one buffer: reading many takes no allocation for
/// each.
///
/// ```
/// use dyno_txn_api::Rows;
/// let mut rows = Rows::with_capacity(2);
/// rows.push(Some(b"here"));
/// rows.push(None);
/// assert_eq!((rows.get(0), rows.get(1), rows.len()), (Some(&b"here"[..]), None, 2));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    bytes: Vec<u8>,
    /// Where each value ends, and whether there is one.
    ends: Vec<(usize, bool)>,
}

impl Rows {
    /// None yet, with room for so many.
    pub fn with_capacity(rows: usize) -> Self {
        let ends = Vec::with_capacity(rows);
        let bytes = Vec::new();
        Self { bytes, ends }
    }

    /// One more: its value, or that there is none.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or(&[]));
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// The value of a row, none where there is no row; counted from 0.
    ///
    /// # Panics
    /// Where fewer rows were read.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, there) = self.ends[at];
        there.then(|| &self.bytes[start..end])
    }

    /// How many rows were asked for.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in the order in which they were asked for.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|at| self.get(at))
    }
}
