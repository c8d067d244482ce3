//! A column's value, owned or borrowed.

use crate::key::Tuple;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64 bits without sign.
    U64,
    /// 64 bits with sign; also money, in the smallest unit.
    I64,
    /// A double.
    F64,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
}

/// A value of its own.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// 64 bits without sign.
    U64(u64),
    /// 64 bits with sign.
    I64(i64),
    /// A double.
    F64(f64),
    /// UTF-8.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// A value whose bytes lie in a buffer of the caller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// Nothing.
    Null,
    /// 64 bits without sign.
    U64(u64),
    /// 64 bits with sign.
    I64(i64),
    /// A double.
    F64(f64),
    /// UTF-8.
    Text(&'a str),
    /// Any bytes.
    Bytes(&'a [u8]),
}

impl Value {
    /// The same, borrowed.
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
    /// The same, owned.
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

    /// The kind of column it fits; nothing fits all.
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

    /// The value as a part of an index key. A column that may be null has a byte before: 0 for
    /// null, which sorts first, 1 for a value. Columns that may not have none, so that the key of
    /// an index can begin with the bytes of the row's key.
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

    /// Order among values of one kind; `None` between kinds and for null.
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
