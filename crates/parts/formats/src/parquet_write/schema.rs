//! The names and types of a file's columns, and how the footer states them.

use super::thrift::Struct;
use crate::columns::{self, Kind};

/// A column's name and the type of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name as the schema has it.
    pub name: &'static str,
    /// The logical type, from which the physical one follows.
    pub logical: Logical,
    /// Whether rows may be without a value.
    pub nullable: bool,
    /// The number by which a table format such as Iceberg knows the column whatever its name is;
    /// `None` if the file is of no such table.
    pub id: Option<i32>,
}

/// What a column's values mean. How they are stored follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    /// Integer of this many bits (8, 16, 32 or 64), signed or not.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether values may be negative.
        signed: bool,
    },
    /// Milliseconds since 1970-01-01 00:00 UTC.
    TimestampMillis,
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampMicros,
    /// Days since 1970-01-01, negative before that day.
    Date,
    /// Integer of 64 bits that counts units of 10^-`scale`.
    Decimal {
        /// Digits in all, at most 18.
        precision: u8,
        /// How many of these stand behind the point.
        scale: u8,
    },
    /// Text in UTF-8, of any length.
    Text,
}

/// How values are stored, by the numbers of parquet.thrift, Type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Int32 = 1,
    Int64 = 2,
    ByteArray = 6,
}

impl Logical {
    pub(super) fn physical(self) -> Physical {
        match self {
            Logical::Integer { bits: 64, .. }
            | Logical::TimestampMillis
            | Logical::TimestampMicros
            | Logical::Decimal { .. } => Physical::Int64,
            Logical::Integer { .. } | Logical::Date => Physical::Int32,
            Logical::Text => Physical::ByteArray,
        }
    }

    /// The converted type, for readers that do not know logical types.
    fn converted(self) -> i32 {
        match self {
            Logical::Text => 0,
            Logical::Decimal { .. } => 5,
            Logical::Date => 6,
            Logical::TimestampMillis => 9,
            Logical::TimestampMicros => 10,
            Logical::Integer { bits, signed } => {
                let size = bits.trailing_zeros() as i32 - 3;
                if signed { 15 + size } else { 11 + size }
            }
        }
    }

    fn write(self, union: &mut Struct<'_>) {
        match self {
            Logical::Text => union.structure(1, |_| {}),
            Logical::Decimal { precision, scale } => union.structure(5, |decimal| {
                decimal.i32(1, scale.into());
                decimal.i32(2, precision.into());
            }),
            Logical::Date => union.structure(6, |_| {}),
            Logical::TimestampMillis | Logical::TimestampMicros => {
                union.structure(8, |timestamp| {
                    let unit = 1 + i16::from(self == Logical::TimestampMicros);
                    timestamp.bool(1, true);
                    timestamp.structure(2, |union| union.structure(unit, |_| {}));
                })
            }
            Logical::Integer { bits, signed } => union.structure(10, |integer| {
                integer.i8(1, bits as i8);
                integer.bool(2, signed);
            }),
        }
    }
}

impl From<columns::Field> for Field {
    fn from(field: columns::Field) -> Field {
        let logical = match field.kind {
            Kind::Int32 => Logical::Integer {
                bits: 32,
                signed: true,
            },
            Kind::Int64 => Logical::Integer {
                bits: 64,
                signed: true,
            },
            Kind::Date => Logical::Date,
            Kind::Decimal { precision, scale } => Logical::Decimal { precision, scale },
            Kind::Text | Kind::Char(_) | Kind::Varchar(_) => Logical::Text,
        };
        Field {
            name: field.name,
            logical,
            nullable: false,
            id: None,
        }
    }
}

/// Numbers the columns from 1 in their order.
pub fn number(fields: &mut [Field]) {
    for (id, field) in (1..).zip(fields) {
        field.id = Some(id);
    }
}

impl Field {
    pub(super) fn write(&self, element: &mut Struct<'_>) {
        const REQUIRED: i32 = 0;
        const OPTIONAL: i32 = 1;
        element.i32(1, self.logical.physical() as i32);
        element.i32(3, if self.nullable { OPTIONAL } else { REQUIRED });
        element.binary(4, self.name.as_bytes());
        element.i32(6, self.logical.converted());
        if let Logical::Decimal { precision, scale } = self.logical {
            element.i32(7, scale.into());
            element.i32(8, precision.into());
        }
        if let Some(id) = self.id {
            element.i32(9, id);
        }
        element.structure(10, |union| self.logical.write(union));
    }
}
