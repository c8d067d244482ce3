//! Patterns of keys as Redis has them: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a byte that stands
//! for itself.

/// The longest pattern of a client, in bytes. A class is read again for every byte of every key, so
/// a long one would keep the engine busy for minutes.
const PATTERN_BYTES_MAX: usize = 4 << 10;

/// Refuses a pattern that would take too long, before it is compared with anything.
///
/// # Errors
/// What the client is told.
pub fn check(pattern: &[u8]) -> Result<(), String> {
    if pattern.len() <= PATTERN_BYTES_MAX {
        Ok(())
    } else {
        Err(format!(
            "ERR a pattern is longer than {PATTERN_BYTES_MAX} bytes"
        ))
    }
}

/// Whether the whole text matches the pattern.
///
/// Each `*` but the last is decided when the next one is met, because a later one can match
/// everything that an earlier one could. So the time is at most the product of both lengths, and a
/// client cannot keep the engine busy with a pattern of many stars.
pub fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    // Where the last star was, with the text that is left if it takes one byte more.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        match pattern.split_first() {
            Some((b'*', rest)) => {
                pattern = rest;
                star = Some((pattern, text));
                continue;
            }
            None if text.is_empty() => return true,
            Some(_) if !text.is_empty() => {
                let (is_match, rest) = one(pattern, text[0]);
                if is_match {
                    (pattern, text) = (rest, &text[1..]);
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((after, [_, rest @ ..])) => {
                (pattern, text) = (after, rest);
                star = Some((after, rest));
            }
            _ => return false,
        }
    }
}

/// Whether the first element of the pattern, which is not a star, matches a byte; and the pattern
/// behind that element.
fn one(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    match pattern {
        [b'?', rest @ ..] => (true, rest),
        [b'\\', literal, rest @ ..] => (*literal == byte, rest),
        [b'[', rest @ ..] => class(rest, byte),
        [literal, rest @ ..] => (*literal == byte, rest),
        [] => (false, pattern),
    }
}

/// The same for a class, behind its opening bracket. One that is not closed ends with the pattern.
fn class(mut pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let negated = pattern.first() == Some(&b'^');
    if negated {
        pattern = &pattern[1..];
    }
    let mut found = false;
    loop {
        pattern = match pattern {
            [] => return (found != negated, pattern),
            [b']', rest @ ..] => return (found != negated, rest),
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [low, b'-', high, rest @ ..] => {
                // Redis takes the ends of a range in either order.
                let (low, high) = (low.min(high), low.max(high));
                found |= (*low..=*high).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, is_match) in [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("[\\]]", "]", true),
            ("[ab", "a", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b", "xaybab", true),
            ("*a*b", "xayba", false),
            ("a**", "a", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                is_match,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_one() {
        let pattern = "*a".repeat(500);
        assert!(!matches(pattern.as_bytes(), "a".repeat(400).as_bytes()));
        let text = "a".repeat(20_000);
        assert!(!matches(
            format!("{}b", "*a".repeat(100)).as_bytes(),
            text.as_bytes()
        ));
    }
}
