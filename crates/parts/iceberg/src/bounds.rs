//! Bounds of columns as Iceberg stores them (Appendix D of the specification, single values).

use crate::column::Kind;

/// Turns a PLAIN value of Parquet into a single value of Iceberg. Both are the same for all types
/// but decimals, whose bytes stand in the other order and are as few as the number needs.
pub(crate) fn from_plain(kind: Kind, plain: &[u8]) -> Option<Vec<u8>> {
    let bytes = match kind {
        Kind::Int | Kind::Date => (plain.len() == 4).then_some(plain)?,
        Kind::Long | Kind::Timestamptz => (plain.len() == 8).then_some(plain)?,
        Kind::String => plain,
        Kind::Decimal { .. } => {
            let unscaled = i64::from_le_bytes(plain.try_into().ok()?);
            return Some(shortest(unscaled));
        }
    };
    Some(bytes.to_vec())
}

/// The number in two's complement, the greatest byte first, without bytes that only repeat the
/// sign.
fn shortest(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let sign = if number < 0 { 0xff } else { 0 };
    let spare = (0..7)
        .take_while(|&at| bytes[at] == sign && (bytes[at + 1] ^ sign) & 0x80 == 0)
        .count();
    bytes[spare..].to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MONEY: Kind = Kind::Decimal {
        precision: 15,
        scale: 2,
    };

    /// What a reader makes of the bytes of a decimal.
    fn read(bytes: &[u8]) -> i64 {
        let first = i64::from(bytes[0] as i8);
        bytes[1..]
            .iter()
            .fold(first, |number, &byte| (number << 8) | i64::from(byte))
    }

    proptest! {
        #[test]
        fn a_decimal_is_the_same_number_in_the_fewest_bytes(number: i64, shift in 0u32..64) {
            let number = number >> shift;
            let bytes = from_plain(MONEY, &number.to_le_bytes()).expect("eight bytes");
            prop_assert_eq!(read(&bytes), number);
            // One byte less would be another number.
            if bytes.len() > 1 {
                prop_assert_ne!(read(&bytes[1..]), number);
            }
        }

        #[test]
        fn other_types_keep_their_bytes(number: i64, text: String) {
            let long = number.to_le_bytes();
            let from = from_plain(Kind::Timestamptz, &long);
            prop_assert_eq!(from.as_deref(), Some(&long[..]));
            let from = from_plain(Kind::String, text.as_bytes());
            prop_assert_eq!(from.as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn examples_of_the_specification_and_wrong_lengths() {
        assert_eq!(
            from_plain(MONEY, &1420i64.to_le_bytes()),
            Some(vec![0x05, 0x8c])
        );
        assert_eq!(from_plain(MONEY, &0i64.to_le_bytes()), Some(vec![0]));
        assert_eq!(from_plain(MONEY, &(-1i64).to_le_bytes()), Some(vec![0xff]));
        assert_eq!(
            from_plain(MONEY, &128i64.to_le_bytes()),
            Some(vec![0, 0x80])
        );
        assert_eq!(from_plain(Kind::Long, &[1, 2, 3, 4]), None);
        assert_eq!(from_plain(Kind::Int, &[0; 8]), None);
    }
}
