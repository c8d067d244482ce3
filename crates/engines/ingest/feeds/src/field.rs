//! The columns of a feed's table, and the kinds of their values.

/// A column of a feed's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name of the column.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether a row may be without a value.
    pub nullable: bool,
    /// What the column means, with its unit.
    pub about: &'static str,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers of 8, 16, 32 or 64 bits; unsigned ones of 64 bits go to 2^63 - 1.
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether values may be negative.
        signed: bool,
    },
    /// Milliseconds since 1970-01-01 00:00 UTC.
    Moment,
    /// Integers that count thousandths, of 15 digits at most.
    Thousandths,
    /// Text that occurs again and again: codes into a dictionary.
    Word,
    /// Text that hardly occurs twice.
    Text,
}

impl Field {
    /// A column that has a value in every row.
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Field {
        Field {
            name,
            kind,
            nullable: false,
            about,
        }
    }

    /// A column in which rows may lack a value.
    pub const fn nullable(name: &'static str, kind: Kind, about: &'static str) -> Field {
        Field {
            name,
            kind,
            nullable: true,
            about,
        }
    }
}

impl Kind {
    /// Signed integers of `bits` bits.
    pub const fn signed(bits: u8) -> Kind {
        Kind::Integer { bits, signed: true }
    }

    /// Unsigned integers of `bits` bits.
    pub const fn unsigned(bits: u8) -> Kind {
        Kind::Integer {
            bits,
            signed: false,
        }
    }

    /// The least and the greatest value, both included; `None` for text.
    pub fn range(self) -> Option<(i64, i64)> {
        match self {
            Kind::Integer { bits, signed: true } => {
                let most = i64::MAX >> (64 - u32::from(bits));
                Some((-most - 1, most))
            }
            Kind::Integer { bits: 64, .. } => Some((0, i64::MAX)),
            Kind::Integer { bits, .. } => Some((0, (1 << bits) - 1)),
            Kind::Moment => Some((i64::MIN, i64::MAX)),
            Kind::Thousandths => Some((-(10i64.pow(15) - 1), 10i64.pow(15) - 1)),
            Kind::Word | Kind::Text => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(Kind::signed(8).range(), Some((-128, 127)));
        assert_eq!(Kind::signed(64).range(), Some((i64::MIN, i64::MAX)));
        assert_eq!(Kind::unsigned(16).range(), Some((0, 65535)));
        assert_eq!(Kind::unsigned(64).range(), Some((0, i64::MAX)));
        assert_eq!(Kind::Word.range(), None);
    }
}
