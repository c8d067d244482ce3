//! The columns of a table: their numbers, names and Iceberg types.

use dyno_formats::parquet_write::{Field, Logical};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A column of an Iceberg table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The number that the schemas of the data files have for it, too.
    pub id: i32,
    /// The name by which queries refer to it.
    pub name: String,
    /// Whether all rows have a value.
    pub required: bool,
    /// The type of its values.
    #[serde(rename = "type", with = "text")]
    pub kind: Kind,
}

/// The types of Iceberg that are written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed integers of 32 bits.
    Int,
    /// Signed integers of 64 bits.
    Long,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamptz,
    /// Text in UTF-8.
    String,
    /// Integers that count units of 10^-`scale`.
    Decimal {
        /// How many digits a number has in all.
        precision: u8,
        /// How many of these stand behind the point.
        scale: u8,
    },
}

/// The columns of Parquet files with these fields.
///
/// # Errors
/// [`Error::Type`] for a field without a number, or with a type that Iceberg does not have:
/// integers without a sign or of less than 32 bits, and milliseconds.
pub fn columns_of(fields: &[Field]) -> Result<Vec<Column>> {
    let column = |field: &Field| {
        let refused = |given: String| Error::Type {
            name: field.name.to_owned(),
            given,
        };
        Ok(Column {
            id: field
                .id
                .ok_or_else(|| refused("a column without a number".to_owned()))?,
            name: field.name.to_owned(),
            required: !field.nullable,
            kind: Kind::from_logical(field.logical)
                .ok_or_else(|| refused(format!("{:?}", field.logical)))?,
        })
    };
    fields.iter().map(column).collect()
}

impl Kind {
    fn from_logical(logical: Logical) -> Option<Kind> {
        Some(match logical {
            Logical::Integer {
                bits: 32,
                signed: true,
            } => Kind::Int,
            Logical::Integer {
                bits: 64,
                signed: true,
            } => Kind::Long,
            Logical::Integer { .. } | Logical::TimestampMillis => return None,
            Logical::TimestampMicros => Kind::Timestamptz,
            Logical::Date => Kind::Date,
            Logical::Decimal { precision, scale } => Kind::Decimal { precision, scale },
            Logical::Text => Kind::String,
        })
    }
}

/// Stores a type by its name in the specification.
mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Kind;

    pub fn serialize<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
        match kind {
            Kind::Int => serializer.serialize_str("int"),
            Kind::Long => serializer.serialize_str("long"),
            Kind::Date => serializer.serialize_str("date"),
            Kind::Timestamptz => serializer.serialize_str("timestamptz"),
            Kind::String => serializer.serialize_str("string"),
            Kind::Decimal { precision, scale } => {
                serializer.collect_str(&format_args!("decimal({precision}, {scale})"))
            }
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let text = String::deserialize(deserializer)?;
        let decimal = || {
            let digits = text.strip_prefix("decimal(")?.strip_suffix(')')?;
            let (precision, scale) = digits.split_once(',')?;
            Some(Kind::Decimal {
                precision: precision.trim().parse().ok()?,
                scale: scale.trim().parse().ok()?,
            })
        };
        match text.as_str() {
            "int" => Ok(Kind::Int),
            "long" => Ok(Kind::Long),
            "date" => Ok(Kind::Date),
            "timestamptz" => Ok(Kind::Timestamptz),
            "string" => Ok(Kind::String),
            _ => {
                decimal().ok_or_else(|| D::Error::custom(format!("no type {text} is written here")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_back_as_it_was_written() {
        let decimal = Kind::Decimal {
            precision: 15,
            scale: 3,
        };
        for kind in [
            Kind::Int,
            Kind::Long,
            Kind::Date,
            Kind::Timestamptz,
            Kind::String,
            decimal,
        ] {
            let column = Column {
                id: 1,
                name: "a".to_owned(),
                required: true,
                kind,
            };
            let text = serde_json::to_string(&column).expect("it is JSON");
            let read: Column = serde_json::from_str(&text).expect("it is a column");
            assert_eq!(read, column, "{text}");
        }
    }

    #[test]
    fn types_that_iceberg_lacks_are_refused_by_name() {
        let field = |logical| Field {
            name: "power",
            logical,
            nullable: false,
            id: Some(1),
        };
        let unsigned = Logical::Integer {
            bits: 64,
            signed: false,
        };
        for logical in [
            unsigned,
            Logical::TimestampMillis,
            Logical::Integer {
                bits: 8,
                signed: true,
            },
        ] {
            let refused = columns_of(&[field(logical)]).expect_err("it has no such type");
            assert!(
                refused.to_string().starts_with("column power: "),
                "{refused}"
            );
        }
        let unnumbered = Field {
            id: None,
            ..field(Logical::Text)
        };
        assert!(columns_of(&[unnumbered]).is_err());
    }
}
