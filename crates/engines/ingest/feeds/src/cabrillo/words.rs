//! Finds the tag of a line, and which of its words are callsigns.

/// The tag of a contact, the text behind it, and remarks about its form; `None` for other lines.
pub(super) fn contact(line: &str) -> Option<(&'static str, &str, Vec<&'static str>)> {
    let begin = line.trim_start();
    for tag in ["QSO", "X-QSO"] {
        let Some((given, rest)) = begin.split_at_checked(tag.len()) else {
            continue;
        };
        if !given.eq_ignore_ascii_case(tag) {
            continue;
        }
        let mut remarks = Vec::new();
        if given != tag {
            remarks.push("tag-case");
        }
        // Logs that were edited by hand lack the colon or the space behind it. Such a line is still
        // a contact, with a remark.
        let rest = match rest.trim_start().strip_prefix(':') {
            Some(rest) => rest,
            None if rest.starts_with(char::is_whitespace) => {
                remarks.push("no-colon");
                rest
            }
            None => return None,
        };
        if !rest.starts_with(char::is_whitespace) && !rest.is_empty() {
            remarks.push("glued-tag");
        }
        return Some((tag, rest, remarks));
    }
    None
}

/// The tag of any other line in capitals, and what stands behind its colon.
pub(super) fn header(line: &str) -> Option<(String, &str)> {
    let (tag, value) = line.split_once(':')?;
    let tag = tag.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = (1..=40).contains(&tag.len()) && tag.bytes().all(plain);
    fits.then(|| (tag.to_ascii_uppercase(), value.trim()))
}

/// Whether a word can be a callsign: a part of it, between slashes, has letters, then a digit, then
/// letters to the end, where digits may stand before and among the first letters (`3A2XY`,
/// `DL100AB`).
pub(super) fn is_callsign(word: &str) -> bool {
    word.len() >= 3 && word.len() <= 20 && word.split('/').any(is_plain_callsign)
}

fn is_plain_callsign(part: &str) -> bool {
    let bytes = part.as_bytes();
    if !bytes.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    // The last digit separates prefix and suffix. Reports such as 599 have no letters, and serial
    // numbers neither.
    let Some(last_digit) = bytes.iter().rposition(u8::is_ascii_digit) else {
        return false;
    };
    let (head, suffix) = (&bytes[..last_digit], &bytes[last_digit + 1..]);
    !suffix.is_empty() && head.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a word is a Maidenhead locator of six characters, which looks like a callsign
/// (`FN31PR`).
pub(super) fn is_locator(word: &str) -> bool {
    let bytes = word.as_bytes();
    let among = |at: usize, last: u8| {
        let letter = bytes[at].to_ascii_uppercase();
        (b'A'..=last).contains(&letter)
    };
    bytes.len() == 6
        && among(0, b'R')
        && among(1, b'R')
        && bytes[2].is_ascii_digit()
        && bytes[3].is_ascii_digit()
        && among(4, b'X')
        && among(5, b'X')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callsigns() {
        for call in [
            "K1A",
            "AA1ZZZ",
            "3A2XY",
            "2E0ABC",
            "DL100AB",
            "4U1ITU",
            "9A1A",
            "DL/K1ABC",
            "VP2E/K1ABC/QRP",
            "K1ABC/7",
            "JT1Z",
            "p29as",
        ] {
            assert!(is_callsign(call), "{call}");
        }
        for word in [
            "599", "05", "EMA", "2A", "13L", "001A", "A05", "12KIEL", "FN31", "IO91", "TREY", "K",
            "", "DX", "1/2", "W1", "K1",
        ] {
            assert!(!is_callsign(word), "{word}");
        }
        assert!(is_locator("FN31pr") && !is_locator("DL1ABC") && !is_locator("FN31"));
    }

    #[test]
    fn tags() {
        assert_eq!(contact("QSO: 1"), Some(("QSO", " 1", vec![])));
        assert_eq!(
            contact("QSO:7005 CW"),
            Some(("QSO", "7005 CW", vec!["glued-tag"]))
        );
        assert_eq!(contact("qso: 1"), Some(("QSO", " 1", vec!["tag-case"])));
        assert_eq!(contact("X-QSO: 1"), Some(("X-QSO", " 1", vec![])));
        assert_eq!(
            contact("QSO 7005"),
            Some(("QSO", " 7005", vec!["no-colon"]))
        );
        assert_eq!(contact("QSOS: 3"), None);
        assert_eq!(header("club: A: B "), Some(("CLUB".to_owned(), "A: B")));
        assert_eq!(header("see http here"), None);
        assert_eq!(header(": x"), None);
    }
}
