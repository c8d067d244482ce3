//! The forms of the types of the standard library.

use crate::{Protocol, Reader, Wire};

#[inline]
pub(crate) fn write_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

/// Writes bytes in the form of a `Vec<u8>`, without making one.
#[inline]
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Writes bytes in the form of an `Option<Vec<u8>>`, without making one.
#[inline]
pub fn write_optional(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        write_bytes(bytes, out);
    }
}

/// Writes bytes behind a length of 16 bits. Longer bytes are cut off at that, so the caller limits
/// what it passes.
pub fn write_short(bytes: &[u8], out: &mut Vec<u8>) {
    let count = bytes.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(count as u16).to_le_bytes());
    out.extend_from_slice(&bytes[..count]);
}

macro_rules! numbers {
    ($($number:ty)+) => {
        $(impl<P: Protocol> Wire<P> for $number {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(reader.bytes(size_of::<$number>())?);
                Ok(<$number>::from_le_bytes(bytes))
            }
        })+
    };
}

numbers!(u16 u32 u64 i64 f64);

/// Eight bytes on every machine. A number that is too large for this machine is read as the largest
/// that it has.
impl<P: Protocol> Wire<P> for usize {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(*self as u64).to_le_bytes());
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        let number = u64::read(reader)?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }
}

impl<P: Protocol> Wire<P> for u8 {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    #[inline]
    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        reader.byte()
    }

    // Bytes are copied at once, while the elements of other lists are written one by one.
    #[inline]
    fn write_list(list: &[Self], out: &mut Vec<u8>) {
        write_bytes(list, out);
    }

    #[inline]
    fn read_list(reader: &mut Reader<'_, P>) -> Result<Vec<Self>, P::Error> {
        Ok(reader.counted()?.to_vec())
    }
}

impl<P: Protocol> Wire<P> for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline]
    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        match reader.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(reader.damaged("hold a flag that is neither 0 nor 1")),
        }
    }
}

impl<P: Protocol> Wire<P> for () {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(_reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        Ok(())
    }
}

impl<P: Protocol> Wire<P> for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.as_bytes(), out);
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        let text = std::str::from_utf8(reader.counted()?);
        let text = text.map_err(|_| reader.damaged("hold text that is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

impl<P: Protocol, T: Wire<P>> Wire<P> for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write_list(self, out);
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        T::read_list(reader)
    }
}

/// There is no count, because the type has it.
impl<P: Protocol, T: Wire<P> + Copy + Default, const N: usize> Wire<P> for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|element| element.write(out));
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        let mut all = [T::default(); N];
        for element in &mut all {
            *element = T::read(reader)?;
        }
        Ok(all)
    }
}

impl<P: Protocol, T: Wire<P>> Wire<P> for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        Ok(if bool::read(reader)? {
            Some(T::read(reader)?)
        } else {
            None
        })
    }
}

impl<P: Protocol, A: Wire<P>, B: Wire<P>> Wire<P> for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        Ok((A::read(reader)?, B::read(reader)?))
    }
}

impl<P: Protocol, T: Wire<P>, E: Wire<P>> Wire<P> for Result<T, E> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_ok()));
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error> {
        Ok(if bool::read(reader)? {
            Ok(T::read(reader)?)
        } else {
            Err(E::read(reader)?)
        })
    }
}
