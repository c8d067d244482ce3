//! The primitives, and two macros that make a type of its fields.

use dyno_txn_api::{Code, Error, Result};

/// Levels of nesting that a reader follows.
const DEPTH_MAX: u32 = 32;

/// Bytes that are read from the front.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    depth: u32,
}

/// A type that can be written and read.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(reader: &mut Reader<'_>) -> Result<Self>;
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

    /// A count of things that take a byte at least.
    #[inline]
    pub fn count(&mut self) -> Result<usize> {
        let count = u32::take(self)? as usize;
        match count <= self.left.len() {
            true => Ok(count),
            false => Err(self.damaged("counts more than it holds")),
        }
    }

    /// Bytes as [`put_bytes`] wrote them, where they lie.
    #[inline]
    pub fn counted(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// All that is left.
    #[inline]
    pub fn rest(self) -> &'a [u8] {
        self.left
    }

    /// Reads something that may contain its like.
    pub fn nested<T: Wire>(&mut self) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.damaged("is nested too deeply"));
        }
        self.depth += 1;
        let value = T::take(self);
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

    /// The end must be here.
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
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn take(reader: &mut Reader<'_>) -> Result<Self> {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(reader.bytes(size_of::<$number>())?);
                Ok(<$number>::from_le_bytes(bytes))
            }
        })+
    };
}

numbers!(u16 u32 u64 i64 f64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(reader.damaged("hold a flag that is neither 0 nor 1")),
        }
    }
}

impl Wire for () {
    fn put(&self, _out: &mut Vec<u8>) {}

    fn take(_reader: &mut Reader<'_>) -> Result<Self> {
        Ok(())
    }
}

/// Bytes as a `Vec<u8>` of them is written.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).put(out);
    out.extend_from_slice(bytes);
}

/// Bytes as an `Option<Vec<u8>>` of them is written.
pub(crate) fn put_optional(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    bytes.is_some().put(out);
    if let Some(bytes) = bytes {
        put_bytes(bytes, out);
    }
}

// `u8` is no `Wire`, so that bytes are not a list like others but copied at once.
impl Wire for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self, out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(reader.counted()?.to_vec())
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let bytes = Vec::take(reader)?;
        String::from_utf8(bytes).map_err(|_| reader.damaged("hold text that is not UTF-8"))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        for one in self {
            one.put(out);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.count()?;
        // A lie about the count costs as much as it carries: the list grows as elements come.
        let mut list = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            list.push(T::take(reader)?);
        }
        Ok(list)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        match bool::take(reader)? {
            true => Ok(Some(T::take(reader)?)),
            false => Ok(None),
        }
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok((A::take(reader)?, B::take(reader)?))
    }
}

impl<T: Wire> Wire for Result<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match bool::take(reader)? {
            true => Ok(T::take(reader)?),
            false => Err(Error::take(reader)?),
        })
    }
}

/// A struct is its fields in order.
macro_rules! wire_struct {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl crate::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }
            fn take(reader: &mut crate::wire::Reader<'_>) -> dyno_txn_api::Result<Self> {
                Ok($name { $($field: crate::wire::Wire::take(reader)?),+ })
            }
        }
    };
}

/// An enum is a byte and the fields of its variant in order.
macro_rules! wire_enum {
    ($name:ident { $($tag:literal $variant:ident { $($field:ident),* }),+ $(,)? }) => {
        impl crate::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        out.push($tag);
                        $($field.put(out);)*
                    })+
                }
            }
            fn take(reader: &mut crate::wire::Reader<'_>) -> dyno_txn_api::Result<Self> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant { $($field: crate::wire::Wire::take(reader)?),* },)+
                    _ => return Err(reader.damaged("name a kind that is not known")),
                })
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};
