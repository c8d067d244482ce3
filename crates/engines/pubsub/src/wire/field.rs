//! How each kind of value is written to a body and read from it.

use bytes::{Buf, Bytes};

use super::WireError;
use crate::key::Partitioner;

/// A body that is being written. The last field of a message may be large, so it is shared instead
/// of copied.
#[derive(Debug, Default)]
pub struct Body {
    fixed: Vec<u8>,
    rest: Vec<Bytes>,
}

impl Body {
    /// The body as the parts of a frame.
    pub fn into_parts(mut self) -> Vec<Bytes> {
        self.rest.insert(0, Bytes::from(self.fixed));
        self.rest
    }
}

/// A body that is being read, field by field.
#[derive(Debug)]
pub struct Fields {
    message: &'static str,
    bytes: Bytes,
}

impl Fields {
    /// Reads this body of the message of this name.
    pub fn new(message: &'static str, bytes: Bytes) -> Fields {
        Fields { message, bytes }
    }

    /// The error for a value that means nothing.
    pub fn wrong(&self, field: &'static str, reason: &'static str) -> WireError {
        WireError::Value {
            message: self.message,
            field,
            reason,
        }
    }

    /// Ends the reading. Bytes that are left are an error.
    pub fn end(self) -> Result<(), WireError> {
        match self.bytes.len() {
            0 => Ok(()),
            bytes => Err(WireError::Long {
                message: self.message,
                bytes,
            }),
        }
    }

    fn need(&self, bytes: usize, field: &'static str) -> Result<(), WireError> {
        if self.bytes.len() < bytes {
            return Err(WireError::Short {
                message: self.message,
                field,
            });
        }
        Ok(())
    }
}

/// A value that can stand in a body.
pub trait Field: Sized {
    /// The fewest bytes that a value takes, which bounds what the count of a list may claim.
    const LEAST_BYTES: usize;

    /// Appends the value to a body.
    fn write(&self, body: &mut Body);

    /// Reads a value. `field` is its name, for errors.
    fn read(fields: &mut Fields, field: &'static str) -> Result<Self, WireError>;
}

macro_rules! number {
    ($kind:ty, $get:ident) => {
        impl Field for $kind {
            const LEAST_BYTES: usize = size_of::<$kind>();

            fn write(&self, body: &mut Body) {
                body.fixed.extend_from_slice(&self.to_le_bytes());
            }

            fn read(fields: &mut Fields, field: &'static str) -> Result<$kind, WireError> {
                fields.need(size_of::<$kind>(), field)?;
                Ok(fields.bytes.$get())
            }
        }
    };
}

number!(u8, get_u8);
number!(u16, get_u16_le);
number!(u32, get_u32_le);
number!(i32, get_i32_le);
number!(u64, get_u64_le);
number!(i64, get_i64_le);

impl Field for bool {
    const LEAST_BYTES: usize = 1;

    fn write(&self, body: &mut Body) {
        u8::from(*self).write(body);
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<bool, WireError> {
        match u8::read(fields, field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(fields.wrong(field, "is neither 0 nor 1")),
        }
    }
}

/// At most 65 535 bytes of UTF-8. A longer text is cut at a character. That happens only to
/// messages for people, because names have shorter limits of their own.
impl Field for String {
    const LEAST_BYTES: usize = 2;

    fn write(&self, body: &mut Body) {
        let mut length = self.len().min(usize::from(u16::MAX));
        while !self.is_char_boundary(length) {
            length -= 1;
        }
        (length as u16).write(body);
        body.fixed.extend_from_slice(&self.as_bytes()[..length]);
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<String, WireError> {
        let length = usize::from(u16::read(fields, field)?);
        fields.need(length, field)?;
        let bytes = fields.bytes.split_to(length);
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(fields.wrong(field, "is not UTF-8")),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    const LEAST_BYTES: usize = 4;

    fn write(&self, body: &mut Body) {
        (self.len() as u32).write(body);
        self.iter().for_each(|value| value.write(body));
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<Vec<T>, WireError> {
        let count = u32::read(fields, field)? as usize;
        // The count is the peer's word. A count whose values cannot be in the bytes that are left
        // is refused before anything is allocated for it.
        fields.need(count.saturating_mul(T::LEAST_BYTES), field)?;
        (0..count).map(|_| T::read(fields, field)).collect()
    }
}

/// The last field of a message to which a later version added it. It is not written while it has
/// its default, so that a peer of the earlier version still reads the message. That peer refuses a
/// message with another value, which is better than to do without what it does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added<T>(pub T);

impl<T: Field + Default + PartialEq> Field for Added<T> {
    const LEAST_BYTES: usize = 0;

    fn write(&self, body: &mut Body) {
        if self.0 != T::default() {
            self.0.write(body);
        }
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<Added<T>, WireError> {
        if fields.bytes.is_empty() {
            Ok(Added::default())
        } else {
            T::read(fields, field).map(Added)
        }
    }
}

impl Field for Partitioner {
    const LEAST_BYTES: usize = String::LEAST_BYTES;

    fn write(&self, body: &mut Body) {
        self.name().to_owned().write(body);
    }

    fn read(fields: &mut Fields, field: &'static str) -> Result<Partitioner, WireError> {
        let name = String::read(fields, field)?;
        Partitioner::named(&name).map_err(|_| fields.wrong(field, "is not a known partitioner"))
    }
}

/// The rest of a body, without a length: the last field of a message. Several parts are written one
/// after the other, and are read as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rest(pub Vec<Bytes>);

impl Rest {
    /// A rest of one part.
    pub fn one(bytes: Bytes) -> Rest {
        Rest(vec![bytes])
    }

    /// All bytes. They are shared if they are one part, as they are after reading.
    pub fn bytes(&self) -> Bytes {
        match &self.0[..] {
            [one] => one.clone(),
            parts => Bytes::from(parts.concat()),
        }
    }
}

impl Field for Rest {
    const LEAST_BYTES: usize = 0;

    fn write(&self, body: &mut Body) {
        body.rest.extend(self.0.iter().cloned());
    }

    fn read(fields: &mut Fields, _: &'static str) -> Result<Rest, WireError> {
        Ok(Rest::one(fields.bytes.split_off(0)))
    }
}
