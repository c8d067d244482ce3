//! The values of several rows that were read together.

/// The values of several rows in one buffer, so that reading many rows does not allocate for each.
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
    /// The end of each value, and whether the row exists.
    ends: Vec<(usize, bool)>,
}

impl Rows {
    /// An empty list, with room for this many rows.
    pub fn with_capacity(rows: usize) -> Self {
        let ends = Vec::with_capacity(rows);
        let bytes = Vec::new();
        Self { bytes, ends }
    }

    /// Appends the value of a row, or `None` if the row does not exist.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or(&[]));
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// The value of the row at this place, counted from 0, or `None` if the row does not exist.
    ///
    /// # Panics
    /// If fewer rows were read.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, there) = self.ends[at];
        there.then(|| &self.bytes[start..end])
    }

    /// The number of rows, with those that do not exist.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no row was read.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All rows, in the order in which they were requested.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|at| self.get(at))
    }
}
