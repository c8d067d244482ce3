//! Base64 (RFC 4648, section 4) for values that are no text.

const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| three.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at > three.len() {
                text.push('=');
            } else {
                text.push(char::from(SIGNS[(bits >> (18 - 6 * at)) as usize & 63]));
            }
        }
    }
    text
}

/// The bytes, or what is wrong with the text.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let signs = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - signs.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return Err("base64 has a multiple of four signs, two of them `=` at most".to_owned());
    }
    let mut bytes = Vec::with_capacity(signs.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for sign in signs {
        let Some(value) = SIGNS.iter().position(|known| known == sign) else {
            return Err(format!("base64 has no sign {:?}", char::from(*sign)));
        };
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    if bits != 0 {
        return Err("base64 ends with bits that belong to no byte".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_specification() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Ok(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Ok(all));
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["Zg", "Z===", "Zh==", "Zm9\n", "Z=g=", "Zm-v"] {
            assert!(decode(text).is_err(), "{text:?}");
        }
    }
}
