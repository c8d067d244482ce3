//! The arguments of a command in one buffer: a count, and a length before each. It is the form in
//! which commands wait, travel to the engine and are run, so that they are copied once.

/// Bytes that most commands take beyond their first argument.
const USUAL_BYTES: usize = 128;

/// Collects the arguments of a command one by one.
#[derive(Debug, Default)]
pub struct ArgumentsBuilder {
    count: u32,
    bytes: Vec<u8>,
}

impl ArgumentsBuilder {
    /// Appends the next argument, which is copied.
    pub fn push(&mut self, argument: &[u8]) {
        if self.count == 0 {
            self.bytes.reserve(USUAL_BYTES + argument.len());
            // The place of the count, which is known at the end.
            self.bytes.extend_from_slice(&[0; 4]);
        }
        self.count += 1;
        push_bytes(&mut self.bytes, argument);
    }

    /// The number of bytes that were collected, with their lengths.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The arguments as bytes. The next ones begin a command of their own.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        if let Some((count, _)) = bytes.split_first_chunk_mut() {
            *count = std::mem::take(&mut self.count).to_le_bytes();
        }
        bytes
    }
}

/// Appends bytes with their length before them.
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The arguments of a command that [`ArgumentsBuilder`] has encoded; `None` for other bytes.
pub fn arguments(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader(bytes);
    let list = reader.arguments()?;
    reader.0.is_empty().then_some(list)
}

/// Reads numbers and bytes in the order in which they were written.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next byte; `None` at the end.
    pub fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    /// The next eight bytes as a number.
    pub fn u64(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    /// The next bytes that [`push_bytes`] wrote.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    /// The arguments of the next command.
    pub fn arguments(&mut self) -> Option<Vec<&'a [u8]>> {
        let count = self.u32()? as usize;
        // A damaged count must not ask for more memory than the bytes allow: each argument has a
        // length of four bytes before it.
        let mut list = Vec::with_capacity(count.min(self.0.len() / 4));
        for _ in 0..count {
            list.push(self.bytes()?);
        }
        Some(list)
    }
}
