//! The primitives, and two macros that make a type of its fields.

use dyno_txn_api::{Code, Error, Result};

/// Levels of nesting that a reader follows.
const DEPTH_MAX: u32 = 32;

/// Reads bytes from the front.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    depth: u32,
}

/// A type with one binary form. `read` accepts exactly what `write` makes, and refuses everything
/// else.
pub(crate) trait Wire: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(reader: &mut Reader<'_>) -> Result<Self>;
}

impl<'a> Reader<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        let left = bytes;
        Self { left, depth: 0 }
    }

    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.left.len() {
            return Err(self.damaged("ends too early"));
        }
        let (front, left) = self.left.split_at(count);
        self.left = left;
        Ok(front)
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// A count of elements, each of which has at least one byte: a larger count is damage, and is
    /// refused before anything is allocated for it.
    #[inline]
    pub fn count(&mut self) -> Result<usize> {
        let count = u32::read(self)? as usize;
        match count <= self.left.len() {
            true => Ok(count),
            false => Err(self.damaged("counts more than it holds")),
        }
    }

    /// Borrows the bytes that [`write_bytes`] wrote.
    #[inline]
    pub fn counted(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// The bytes that were not read yet.
    #[inline]
    pub fn rest(self) -> &'a [u8] {
        self.left
    }

    /// Reads a value whose type contains itself, such as a filter, and refuses one that is nested
    /// too deeply for the stack.
    pub fn nested<T: Wire>(&mut self) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.damaged("is nested too deeply"));
        }
        self.depth += 1;
        let value = T::read(self);
        self.depth -= 1;
        value
    }

    #[cold]
    pub fn damaged(&self, what: &str) -> Error {
        let text = format!(
            "bytes of a transaction {what}, {} before their end",
            self.left.len()
        );
        Error::new(Code::Damaged, text)
    }

    /// Refuses bytes that go on behind the value.
    pub fn finish(self) -> Result<()> {
        match self.left.is_empty() {
            true => Ok(()),
            false => Err(self.damaged("go on after their end")),
        }
    }
}

macro_rules! numbers {
    ($($number:ty)+) => {
        $(impl Wire for $number {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(reader.bytes(size_of::<$number>())?);
                Ok(<$number>::from_le_bytes(bytes))
            }
        })+
    };
}

numbers!(u16 u32 u64 i64 f64);

impl Wire for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(reader.damaged("hold a flag that is neither 0 nor 1")),
        }
    }
}

impl Wire for () {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(_reader: &mut Reader<'_>) -> Result<Self> {
        Ok(())
    }
}

/// Writes bytes as a `Vec<u8>` of them is written, without a copy.
pub(crate) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).write(out);
    out.extend_from_slice(bytes);
}

/// Writes bytes as an `Option<Vec<u8>>` of them is written, without a copy.
pub(crate) fn write_optional(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    bytes.is_some().write(out);
    if let Some(bytes) = bytes {
        write_bytes(bytes, out);
    }
}

// `u8` is not a `Wire` type, so that bytes are copied at once instead of one by one as other lists
// are.
impl Wire for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(reader.counted()?.to_vec())
    }
}

/// Writes a list as a `Vec` of its elements is written.
pub(crate) fn write_list<T: Wire>(list: &[T], out: &mut Vec<u8>) {
    (list.len() as u32).write(out);
    for element in list {
        element.write(out);
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u32).write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let bytes = Vec::read(reader)?;
        String::from_utf8(bytes).map_err(|_| reader.damaged("hold text that is not UTF-8"))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count()?;
        // The count may be a lie. It costs the reader no more memory than the message has elements,
        // because the list grows as they are read.
        let mut list = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            list.push(T::read(reader)?);
        }
        Ok(list)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match bool::read(reader)? {
            true => Ok(Some(T::read(reader)?)),
            false => Ok(None),
        }
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok((A::read(reader)?, B::read(reader)?))
    }
}

impl<T: Wire> Wire for Result<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_ok().write(out);
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match bool::read(reader)? {
            true => Ok(T::read(reader)?),
            false => Err(Error::read(reader)?),
        })
    }
}

/// Encodes a struct as its fields in order.
macro_rules! wire_struct {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)+
            }
            fn read(reader: &mut crate::wire::Reader<'_>) -> dyno_txn_api::Result<Self> {
                Ok($name { $($field: crate::wire::Wire::read(reader)?),+ })
            }
        }
    };
}

/// Encodes an enum as a byte for the variant, and the variant's fields in order.
macro_rules! wire_enum {
    ($name:ident { $($tag:literal $variant:ident { $($field:ident),* }),+ $(,)? }) => {
        impl crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        out.push($tag);
                        $($field.write(out);)*
                    })+
                }
            }
            fn read(reader: &mut crate::wire::Reader<'_>) -> dyno_txn_api::Result<Self> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant { $($field: crate::wire::Wire::read(reader)?),* },)+
                    _ => return Err(reader.damaged("name a kind that is not known")),
                })
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};
