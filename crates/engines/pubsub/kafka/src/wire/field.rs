//! Reading and writing the values of Kafka's protocol, in both of its encodings.
//!
//! From the version on that an API declares as flexible, lengths are varints and each structure
//! ends with tagged fields; before it, lengths are fixed-width and there are no tags.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Why bytes are not the message that they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end within a field.
    #[error("the message ends early")]
    Short,
    /// A length is negative where null is not allowed, or longer than what is left.
    #[error("a length of {0} does not fit the message")]
    Length(i64),
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A varint has more bytes than its type can have.
    #[error("a varint is too long")]
    Varint,
    /// The message holds more elements than this server reads.
    #[error("more than {MOST_ELEMENTS} elements in one message")]
    Elements,
}

/// The most elements of all arrays of one message. An element takes more memory than bytes on the
/// wire, so the length of a frame alone does not bound what it becomes.
const MOST_ELEMENTS: usize = 100_000;

/// Reads the fields of one message. No length that a peer states is believed beyond the bytes that
/// are there.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    version: i16,
    flexible: bool,
    elements_left: usize,
}

impl Reader {
    /// Reads a message of this version; `flexible` says in which encoding.
    pub fn new(bytes: Bytes, version: i16, flexible: bool) -> Reader {
        Reader {
            bytes,
            version,
            flexible,
            elements_left: MOST_ELEMENTS,
        }
    }

    /// Whether a field that exists within these versions is there.
    pub fn has(&self, since: i16, until: i16) -> bool {
        (since..=until).contains(&self.version)
    }

    /// The bytes behind what was read.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    /// An unsigned varint of at most 32 bits.
    fn varint(&mut self) -> Result<u32, WireError> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes.try_get_u8().map_err(|_| WireError::Short)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| WireError::Varint);
            }
        }
        Err(WireError::Varint)
    }

    /// A length as an array or a byte string has it; `None` stands for null.
    fn long_length(&mut self) -> Result<Option<usize>, WireError> {
        if self.flexible {
            return self.compact_length();
        }
        let length = self.bytes.try_get_i32().map_err(|_| WireError::Short)?;
        self.within(i64::from(length))
    }

    /// A length as a text has it; `None` stands for null.
    fn text_length(&mut self) -> Result<Option<usize>, WireError> {
        if self.flexible {
            return self.compact_length();
        }
        let length = self.bytes.try_get_i16().map_err(|_| WireError::Short)?;
        self.within(i64::from(length))
    }

    fn compact_length(&mut self) -> Result<Option<usize>, WireError> {
        let length = i64::from(self.varint()?) - 1;
        self.within(length)
    }

    /// Every element takes a byte at least, so a length beyond what is left cannot be right, and
    /// nothing may be reserved for it.
    fn within(&self, length: i64) -> Result<Option<usize>, WireError> {
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            _ => Err(WireError::Length(length)),
        }
    }

    fn text(&mut self, length: usize) -> Result<String, WireError> {
        let bytes = self.bytes.split_to(length);
        String::from_utf8(bytes.into()).map_err(|_| WireError::Text)
    }

    /// Reads and ignores tagged fields, which exist so that an older peer can ignore them.
    pub fn skip_tags(&mut self) -> Result<(), WireError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            let _tag = self.varint()?;
            let length = i64::from(self.varint()?);
            let length = self.within(length)?.ok_or(WireError::Length(length))?;
            self.bytes.advance(length);
        }
        Ok(())
    }

    fn array<T: Field>(&mut self) -> Result<Option<Vec<T>>, WireError> {
        let Some(length) = self.long_length()? else {
            return Ok(None);
        };
        // One bound for the whole message: arrays lie in arrays, and each by itself may be within
        // any bound while their product is not.
        self.elements_left = self
            .elements_left
            .checked_sub(length)
            .ok_or(WireError::Elements)?;
        let elements = (0..length).map(|_| T::read(self));
        elements.collect::<Result<_, _>>().map(Some)
    }
}

/// Bytes from this length on are not copied into a message, but become a part of it. A part costs
/// about as much as copying so many.
const PART_BYTES: usize = 4096;

/// Writes the fields of one message.
#[derive(Debug)]
pub struct Writer {
    /// What is written of the message before `bytes`.
    parts: Vec<Bytes>,
    bytes: BytesMut,
    version: i16,
    flexible: bool,
}

impl Writer {
    /// Writes a message of this version; `flexible` says in which encoding.
    pub fn new(version: i16, flexible: bool) -> Writer {
        Writer {
            parts: Vec::new(),
            bytes: BytesMut::new(),
            version,
            flexible,
        }
    }

    /// Whether a field that exists within these versions is there.
    pub fn has(&self, since: i16, until: i16) -> bool {
        (since..=until).contains(&self.version)
    }

    /// The message, in parts that follow each other.
    pub fn into_parts(mut self) -> Vec<Bytes> {
        self.parts.push(self.bytes.freeze());
        self.parts
    }

    fn shared(&mut self, bytes: &Bytes) {
        if bytes.len() < PART_BYTES {
            return self.bytes.put_slice(bytes);
        }
        self.parts.push(self.bytes.split().freeze());
        self.parts.push(bytes.clone());
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.put_u8((value as u8) | 0x80);
            value >>= 7;
        }
        self.bytes.put_u8(value as u8);
    }

    fn long_length(&mut self, length: Option<usize>) {
        match (self.flexible, length) {
            (true, Some(length)) => self.varint(length as u32 + 1),
            (true, None) => self.varint(0),
            (false, Some(length)) => self.bytes.put_i32(length as i32),
            (false, None) => self.bytes.put_i32(-1),
        }
    }

    fn text(&mut self, text: Option<&str>) {
        match (self.flexible, text) {
            (true, text) => self.long_length(text.map(str::len)),
            // A text of ours is a name or a sentence, far below 32 KiB. One that is not is cut,
            // because a wrong length would make the rest of the message unreadable.
            (false, Some(text)) => self.bytes.put_i16(cut(text).len() as i16),
            (false, None) => self.bytes.put_i16(-1),
        }
        let text = text.unwrap_or_default();
        let text = if self.flexible { text } else { cut(text) };
        self.bytes.put_slice(text.as_bytes());
    }

    /// Ends a structure: no field of ours is tagged.
    pub fn end_tags(&mut self) {
        if self.flexible {
            self.bytes.put_u8(0);
        }
    }

    fn array<T: Field>(&mut self, elements: &[T]) {
        self.long_length(Some(elements.len()));
        for element in elements {
            element.write(self);
        }
    }
}

/// The longest beginning of a text that an old length field can state.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(i16::MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A value that messages are made of.
pub trait Field: Sized {
    /// Reads the value.
    fn read(reader: &mut Reader) -> Result<Self, WireError>;
    /// Writes the value.
    fn write(&self, writer: &mut Writer);
}

macro_rules! number {
    ($kind:ty, $get:ident, $put:ident) => {
        impl Field for $kind {
            fn read(reader: &mut Reader) -> Result<Self, WireError> {
                reader.bytes.$get().map_err(|_| WireError::Short)
            }

            fn write(&self, writer: &mut Writer) {
                writer.bytes.$put(*self);
            }
        }
    };
}

number!(i8, try_get_i8, put_i8);
number!(i16, try_get_i16, put_i16);
number!(i32, try_get_i32, put_i32);
number!(i64, try_get_i64, put_i64);

impl Field for bool {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(i8::read(reader)? != 0)
    }

    fn write(&self, writer: &mut Writer) {
        i8::from(*self).write(writer);
    }
}

impl Field for Option<String> {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let length = reader.text_length()?;
        length.map(|length| reader.text(length)).transpose()
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(self.as_deref());
    }
}

impl Field for String {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        Option::read(reader)?.ok_or(WireError::Length(-1))
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(Some(self));
    }
}

impl Field for Option<Bytes> {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let length = reader.long_length()?;
        Ok(length.map(|length| reader.bytes.split_to(length)))
    }

    fn write(&self, writer: &mut Writer) {
        writer.long_length(self.as_ref().map(Bytes::len));
        if let Some(bytes) = self {
            writer.shared(bytes);
        }
    }
}

impl Field for Bytes {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        Option::read(reader)?.ok_or(WireError::Length(-1))
    }

    fn write(&self, writer: &mut Writer) {
        writer.long_length(Some(self.len()));
        writer.shared(self);
    }
}

impl<T: Field> Field for Option<Vec<T>> {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        reader.array()
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Some(elements) => writer.array(elements),
            None => writer.long_length(None),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        reader.array()?.ok_or(WireError::Length(-1))
    }

    fn write(&self, writer: &mut Writer) {
        writer.array(self);
    }
}
