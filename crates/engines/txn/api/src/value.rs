//! The values of columns, owned or borrowed.

use crate::key::Tuple;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An unsigned number of 64 bits.
    U64,
    /// A signed number of 64 bits; also money, in its smallest unit.
    I64,
    /// A floating-point number of 64 bits.
    F64,
    /// Text in UTF-8, of any length.
    Text,
    /// Bytes of any length, without meaning.
    Bytes,
}

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The absence of a value, which has no type.
    Null,
    /// An unsigned number of 64 bits.
    U64(u64),
    /// A signed number of 64 bits.
    I64(i64),
    /// A floating-point number of 64 bits.
    F64(f64),
    /// Text in UTF-8, of any length.
    Text(String),
    /// Bytes of any length, without meaning.
    Bytes(Vec<u8>),
}

/// A value whose bytes are in a buffer of the caller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// The absence of a value, which has no type.
    Null,
    /// An unsigned number of 64 bits.
    U64(u64),
    /// A signed number of 64 bits.
    I64(i64),
    /// A floating-point number of 64 bits.
    F64(f64),
    /// Text in UTF-8, of any length.
    Text(&'a str),
    /// Bytes of any length, without meaning.
    Bytes(&'a [u8]),
}

impl Value {
    /// The same value, borrowed from this one.
    pub fn borrowed(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::U64(value) => ValueRef::U64(*value),
            Value::I64(value) => ValueRef::I64(*value),
            Value::F64(value) => ValueRef::F64(*value),
            Value::Text(value) => ValueRef::Text(value),
            Value::Bytes(value) => ValueRef::Bytes(value),
        }
    }
}

impl ValueRef<'_> {
    /// The same value with bytes of its own.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::U64(value) => Value::U64(value),
            ValueRef::I64(value) => Value::I64(value),
            ValueRef::F64(value) => Value::F64(value),
            ValueRef::Text(value) => Value::Text(value.to_owned()),
            ValueRef::Bytes(value) => Value::Bytes(value.to_vec()),
        }
    }

    /// The type of column that it fits, or `None` for null, which fits every nullable one.
    pub fn kind(self) -> Option<Kind> {
        match self {
            ValueRef::Null => None,
            ValueRef::U64(_) => Some(Kind::U64),
            ValueRef::I64(_) => Some(Kind::I64),
            ValueRef::F64(_) => Some(Kind::F64),
            ValueRef::Text(_) => Some(Kind::Text),
            ValueRef::Bytes(_) => Some(Kind::Bytes),
        }
    }

    /// Appends the value to an index key. In a nullable column a byte comes first: 0 for null,
    /// which sorts first, and 1 for a value. Other columns have no such byte, so that the key of an
    /// index can begin with the same bytes as the row's key.
    pub fn append_to(self, tuple: Tuple, nullable: bool) -> Tuple {
        let tuple = match (nullable, self) {
            (true, ValueRef::Null) => return tuple.u8(0),
            (true, _) => tuple.u8(1),
            (false, _) => tuple,
        };
        match self {
            ValueRef::Null => tuple,
            ValueRef::U64(value) => tuple.u64(value),
            ValueRef::I64(value) => tuple.i64(value),
            ValueRef::F64(value) => tuple.f64(value),
            ValueRef::Text(value) => tuple.text(value),
            ValueRef::Bytes(value) => tuple.bytes(value),
        }
    }

    /// Compares values of one type. Returns `None` for values of different types and for null.
    pub fn compare(self, other: ValueRef<'_>) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (ValueRef::U64(a), ValueRef::U64(b)) => Some(a.cmp(&b)),
            (ValueRef::I64(a), ValueRef::I64(b)) => Some(a.cmp(&b)),
            (ValueRef::F64(a), ValueRef::F64(b)) => Some(a.total_cmp(&b)),
            (ValueRef::Text(a), ValueRef::Text(b)) => Some(a.cmp(b)),
            (ValueRef::Bytes(a), ValueRef::Bytes(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident $into:expr;)+) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                #[allow(clippy::redundant_closure_call)]
                Value::$variant($into(value))
            }
        })+
    };
}

from! {
    u64 => U64 |v| v;
    i64 => I64 |v| v;
    f64 => F64 |v| v;
    String => Text |v| v;
    &str => Text str::to_owned;
    Vec<u8> => Bytes |v| v;
    &[u8] => Bytes <[u8]>::to_vec;
}
