//! Reads lines and messages in the form in which they are nearly always written: without spaces,
//! and with known keys only. The general parser of JSON takes more than twice as long, because
//! nearly every third byte of a captured message is escaped. It reads whatever differs.

use std::borrow::Cow;

use memchr::memmem;

use super::message::{Message, Scalar, column_of};

/// A captured message, and what stands beside it in its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Captured<'a> {
    pub(super) rx: &'a str,
    pub(super) topic: Option<&'a str>,
    pub(super) raw: &'a str,
}

/// Reads `{"rx":"...","topic":"...","raw":"..."}`, in any order and with or without the topic.
/// `None` if the line has any other form. `buffer` is memory for the message, which may grow and
/// may hold anything.
pub(super) fn capture<'a>(line: &'a str, buffer: &'a mut Vec<u8>) -> Option<Captured<'a>> {
    let (mut rx, mut topic, mut raw_len) = (None, None, None);
    let mut rest = line.strip_prefix('{')?;
    loop {
        let is_repeated = if let Some(value) = rest.strip_prefix("\"raw\":\"") {
            let (len, after) = unescape(value, buffer)?;
            rest = after;
            raw_len.replace(len).is_some()
        } else if let Some(value) = rest.strip_prefix("\"rx\":\"") {
            let (text, after) = plain_text(value)?;
            rest = after;
            rx.replace(text).is_some()
        } else {
            let (text, after) = plain_text(rest.strip_prefix("\"topic\":\"")?)?;
            rest = after;
            topic.replace(text).is_some()
        };
        if is_repeated {
            return None;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let raw = str::from_utf8(&buffer[..raw_len?]).ok()?;
    let rx = rx?;
    (rest == "}").then_some(Captured { rx, topic, raw })
}

/// Reads a message that has only known keys, with integers and texts. `None` if it has any other
/// form.
pub(super) fn message(text: &str) -> Option<Message<'_>> {
    let mut message = Message::default();
    let mut rest = text.strip_prefix('{')?;
    loop {
        let (key, after) = plain_text(rest.strip_prefix('"')?)?;
        let column = column_of(key)?;
        let after = after.strip_prefix(':')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(value) => {
                let (text, after) = plain_text(value)?;
                (Scalar::Text(Cow::Borrowed(text)), after)
            }
            None => {
                let (number, after) = integer(after)?;
                (Scalar::Integer(number), after)
            }
        };
        if message.known[column].replace(value).is_some() {
            return None;
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (after == "}").then_some(message),
        }
    }
}

/// A text without escapes that goes on to a quotation mark, and what follows the mark.
fn plain_text(text: &str) -> Option<(&str, &str)> {
    let ends = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ';
    let end = text.bytes().position(ends)?;
    let after = text[end..].strip_prefix('"')?;
    Some((&text[..end], after))
}

/// An integer of at most 18 digits, which fits into 64 bits, and what follows it. JSON forbids
/// leading zeros, and its parsers take -0 for a fraction.
fn integer(text: &str) -> Option<(i64, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let begins_with_zero = digits.starts_with('0') && (count > 1 || digits.len() < text.len());
    if !(1..=18).contains(&count) || begins_with_zero {
        return None;
    }
    let (number, after) = text.split_at(text.len() - digits.len() + count);
    Some((number.parse().ok()?, after))
}

/// Writes the text that goes on to a quotation mark to the beginning of `out`, and returns its
/// length and what follows the mark. `None` if it has escapes other than those of quotation marks.
fn unescape<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<(usize, &'a str)> {
    let bytes = text.as_bytes();
    // Either the next key follows, or the end of the line. Where that is not so, the text up to
    // here has a mark that is not escaped, and is refused for it.
    let end =
        memmem::find(bytes, b"\",\"").or_else(|| bytes.strip_suffix(b"\"}").map(<[u8]>::len))?;
    let inside = &bytes[..end];
    // Where escapes stand is as good as random to the processor. So neither loop has a branch for
    // them: the first one, which looks at each two neighbours, becomes vector instructions, and the
    // second one writes each byte, and the next one over a backslash.
    let is_odd = |before: u8, byte: u8| {
        u8::from((before == b'\\') != (byte == b'"')) | u8::from(byte < b' ')
    };
    let (&first, &last) = (inside.first()?, inside.last()?);
    let pairs = inside.iter().zip(&inside[1..]);
    let inner = pairs.fold(0, |odd, (&before, &byte)| odd | is_odd(before, byte));
    if inner | is_odd(b' ', first) | is_odd(last, b' ') != 0 {
        return None;
    }
    if out.len() < end {
        out.resize(end, 0);
    }
    let mut written = 0;
    for &byte in inside {
        out[written] = byte;
        written += usize::from(byte != b'\\');
    }
    Some((written, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::capture::Capture;
    use super::*;

    /// The line as the general parser reads it, which must agree.
    fn check_capture(line: &str) -> bool {
        let mut buffer = b"of an earlier line".to_vec();
        let Some(fast) = capture(line, &mut buffer) else {
            return false;
        };
        let general: Capture = serde_json::from_str(line).expect(line);
        let expected = Capture {
            rx: fast.rx.to_owned(),
            topic: fast.topic.map(str::to_owned),
            raw: Some(fast.raw.to_owned()),
            ..Capture::default()
        };
        assert_eq!(general, expected, "{line}");
        true
    }

    fn check_message(text: &str) -> bool {
        let Some(fast) = message(text) else {
            return false;
        };
        let general: Message<'_> = serde_json::from_str(text).expect(text);
        assert_eq!(format!("{fast:?}"), format!("{general:?}"), "{text}");
        true
    }

    #[test]
    fn the_usual_forms_are_read_and_others_are_left_to_the_general_parser() {
        for line in [
            r#"{"rx":"2026","topic":"pskr/é","raw":"{\"sq\":1,\"b\":\"é\"}"}"#,
            r#"{"raw":"a","rx":""}"#,
        ] {
            assert!(check_capture(line), "{line}");
        }
        for line in [
            r#"{"rx":"2026"}"#,
            r#"{"rx":"2026","raw":""}"#,
            r#"{"rx":"2026","raw":"a" }"#,
            r#"{"rx":"2026","raw":"a","raw":"b"}"#,
            r#"{"rx":"2026","raw":"a","event":"b"}"#,
            r#"{"rx":"2026","raw":"a\n"}"#,
            r#"{"rx":"2026","raw":"a\\"}"#,
            r#"{"rx":"2026","raw":"a\u0041"}"#,
            r#"{"rx":"20\"26","raw":"a"}"#,
            r#"{"rx":"2026","raw":"a"#,
            r#"{"rx":"2026","raw":"a"}}"#,
            "{\"rx\":\"2026\",\"raw\":\"a\tb\"}",
        ] {
            assert!(!check_capture(line), "{line}");
        }
        for text in [
            r#"{"sq":-12,"f":0,"t":123456789012345678,"b":"40m"}"#,
            r#"{"b":""}"#,
        ] {
            assert!(check_message(text), "{text}");
        }
        for text in [
            "{}",
            r#"{"sq":-0}"#,
            r#"{"sq":01}"#,
            r#"{"sq":1.0}"#,
            r#"{"sq":1e3}"#,
            r#"{"sq":1,}"#,
            r#"{"sq":1,"sq":1}"#,
            r#"{"sq":1234567890123456789}"#,
            r#"{"sq":null}"#,
            r#"{"zz":1}"#,
            r#"{"b":"4\u0030m"}"#,
            r#"{"b": "40m"}"#,
            r#"[1]"#,
        ] {
            assert!(!check_message(text), "{text}");
        }
    }

    proptest! {
        /// Pieces of lines and messages in any order: whatever the fast path reads, the general
        /// parser reads the same.
        #[test]
        fn it_agrees_with_the_general_parser(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "\"", "\\\"", "\\", "\\\\", "\\n", ",", ":", "raw", "rx", "topic", "sq",
                    "t_tx", "b", "-", "0", "7", "123456789", ".", "e", " ", "\t", "é", "null", "[",
                ]),
                0..24,
            ),
        ) {
            let text = pieces.concat();
            check_message(&text);
            check_message(&format!("{{\"sq\":{text}}}"));
            check_message(&format!("{{\"b\":\"{text}\",\"f\":7}}"));
            check_capture(&text);
            check_capture(&format!("{{\"rx\":\"{text}\",\"raw\":\"a\"}}"));
            check_capture(&format!("{{\"rx\":\"2026\",\"raw\":\"{text}\"}}"));
        }
    }
}
