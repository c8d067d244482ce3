//! Fields as the types of an ORC file.

use std::collections::HashSet;

use super::error::{Error, Result};
use super::protobuf::{bytes, message, packed, uint};
use crate::columns::{Field, Kind};

/// Refuses fields that ORC, or this writer, cannot have.
pub(super) fn check(fields: &[Field]) -> Result<()> {
    let mut names = HashSet::new();
    for field in fields {
        let reason = match field.kind {
            _ if field.name.is_empty() => "it has no name".to_owned(),
            _ if !names.insert(field.name) => "there are two of this name".to_owned(),
            Kind::Decimal { precision, scale }
                if !(1..=18).contains(&precision) || scale > precision =>
            {
                format!("decimal({precision},{scale}) does not have 1 to 18 digits")
            }
            Kind::Char(0) | Kind::Varchar(0) => "its length is 0".to_owned(),
            _ => continue,
        };
        return Err(Error::Field {
            name: field.name,
            reason,
        });
    }
    if fields.is_empty() {
        return Err(Error::Field {
            name: "(none)",
            reason: "a file has at least one column".to_owned(),
        });
    }
    Ok(())
}

/// Appends the messages `Type` of the root and of each field to a footer.
pub(super) fn write(fields: &[Field], footer: &mut Vec<u8>) {
    const TYPES: u64 = 4;
    const STRUCT: u64 = 12;
    message(footer, TYPES, |root| {
        uint(root, 1, STRUCT);
        let children: Vec<u64> = (1..=fields.len() as u64).collect();
        packed(root, 2, &children);
        for field in fields {
            bytes(root, 3, field.name.as_bytes());
        }
    });
    for field in fields {
        message(footer, TYPES, |column| write_kind(field.kind, column));
    }
}

fn write_kind(kind: Kind, column: &mut Vec<u8>) {
    let number = match kind {
        Kind::Int32 => 3,
        Kind::Int64 => 4,
        Kind::Text => 7,
        Kind::Decimal { .. } => 14,
        Kind::Date => 15,
        Kind::Varchar(_) => 16,
        Kind::Char(_) => 17,
    };
    uint(column, 1, number);
    match kind {
        Kind::Char(most) | Kind::Varchar(most) => uint(column, 4, most.into()),
        Kind::Decimal { precision, scale } => {
            uint(column, 5, precision.into());
            uint(column, 6, scale.into());
        }
        _ => {}
    }
}
