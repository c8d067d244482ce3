//! Types as bytes: little-endian numbers, lists with their count before them, and structs and enums
//! as their fields in order.
//!
//! Reading assumes hostile bytes: it does not panic, it allocates nothing by a length that was not
//! compared with the bytes that are there, and it limits nesting.
//!
//! ```
//! use dyno_wire::{Protocol, Reader, Wire, wire_enum, wire_struct};
//!
//! struct Shop;
//!
//! impl Protocol for Shop {
//!     type Error = String;
//!     fn damaged(what: &'static str, left_bytes: usize) -> String {
//!         format!("bytes of an order {what}, {left_bytes} before their end")
//!     }
//! }
//!
//! #[derive(Debug, PartialEq)]
//! struct Order { item: u32, sizes: Vec<u16>, payment: Payment }
//! #[derive(Debug, PartialEq)]
//! enum Payment { Cash, Card(String), Later { days: u16 } }
//!
//! wire_struct!(Shop: Order { item, sizes, payment });
//! wire_enum!(Shop: Payment { 0 Cash, 1 Card(number), 2 Later { days } });
//!
//! let order = Order { item: 7, sizes: vec![1, 2], payment: Payment::Later { days: 30 } };
//! let mut bytes = Vec::new();
//! order.write(&mut bytes);
//! assert_eq!(bytes, [7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0, 2, 30, 0]);
//!
//! let mut reader = Reader::new(&bytes);
//! assert_eq!(Order::read(&mut reader), Ok(order));
//! assert_eq!(reader.finish(), Ok(()));
//! let cut = Order::read(&mut Reader::new(&bytes[..5]));
//! assert_eq!(cut, Err("bytes of an order end too early, 1 before their end".to_owned()));
//! ```

mod reader;
mod types;

pub use reader::Reader;
pub use types::{write_bytes, write_optional, write_short};

/// Names what the bytes belong to, and makes the errors for them.
///
/// Each crate has a protocol of its own, and can therefore encode types of other crates: Rust lets
/// it implement [`Wire`] for them because its protocol is a parameter of the trait.
pub trait Protocol: Sized {
    /// The error for bytes that do not parse.
    type Error;

    /// Makes an error. `what` is a predicate of the bytes, such as "end too early"; `left_bytes`
    /// were left when that was seen.
    fn damaged(what: &'static str, left_bytes: usize) -> Self::Error;
}

/// A type with one binary form in a protocol. `read` accepts exactly what `write` makes.
pub trait Wire<P: Protocol>: Sized {
    /// Appends the value to `out`.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a value from the front of the remaining bytes.
    ///
    /// # Errors
    /// [`Protocol::damaged`] for bytes that `write` does not make.
    fn read(reader: &mut Reader<'_, P>) -> Result<Self, P::Error>;

    /// Appends a list in the form of a `Vec` of its elements: the count, then the elements.
    fn write_list(list: &[Self], out: &mut Vec<u8>) {
        types::write_count(list.len(), out);
        for element in list {
            element.write(out);
        }
    }

    /// Reads what `write_list` wrote.
    ///
    /// # Errors
    /// Those of `read`, and a count of more elements than there are bytes.
    fn read_list(reader: &mut Reader<'_, P>) -> Result<Vec<Self>, P::Error> {
        let count = reader.count()?;
        // The count may be a lie. It costs the reader no more memory than the message has elements,
        // because the list grows as they are read.
        let mut list = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            list.push(Self::read(reader)?);
        }
        Ok(list)
    }
}

/// Encodes a struct as its fields in order. The fields of a tuple struct are called `0`, `1`.
#[macro_export]
macro_rules! wire_struct {
    ($protocol:ty: $name:ident { $($field:tt),+ $(,)? }) => {
        impl $crate::Wire<$protocol> for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::Wire::<$protocol>::write(&self.$field, out);)+
            }
            fn read(
                reader: &mut $crate::Reader<'_, $protocol>,
            ) -> Result<Self, <$protocol as $crate::Protocol>::Error> {
                Ok($name { $($field: $crate::Wire::<$protocol>::read(reader)?),+ })
            }
        }
    };
}

/// Encodes an enum as a byte for the variant, and the variant's fields in order.
#[macro_export]
macro_rules! wire_enum {
    ($protocol:ty: $name:ident { $(
        $tag:literal $variant:ident $({ $($field:ident),* $(,)? })? $(($($value:ident),+))?
    ),+ $(,)? }) => {
        impl $crate::Wire<$protocol> for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $({ $($field),* })? $(($($value),+))? => {
                        out.push($tag);
                        $($($crate::Wire::<$protocol>::write($field, out);)*)?
                        $($($crate::Wire::<$protocol>::write($value, out);)+)?
                    })+
                }
            }
            fn read(
                reader: &mut $crate::Reader<'_, $protocol>,
            ) -> Result<Self, <$protocol as $crate::Protocol>::Error> {
                Ok(match reader.byte()? {
                    $($tag => $name::$variant
                        $({ $($field: $crate::Wire::<$protocol>::read(reader)?),* })?
                        $(($({
                            let $value = $crate::Wire::<$protocol>::read(reader)?;
                            $value
                        }),+))?,)+
                    _ => return Err(reader.damaged(concat!(
                        "name a kind of ",
                        stringify!($name),
                        " that is not known"
                    ))),
                })
            }
        }
    };
}
