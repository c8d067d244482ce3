//! Takes the options about certificates out of a connection string, because the driver does not
//! know them.

use crate::error::PgError;

const OURS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];
/// Options by name, in the order of the string.
type Options = Vec<(String, String)>;

/// Returns the string without our options, and the options.
pub(super) fn ssl_options(text: &str) -> Result<(String, Options), PgError> {
    if text.starts_with("postgresql://") || text.starts_with("postgres://") {
        return Ok(of_url(text));
    }
    let (ours, others): (Options, Options) = words(text)?
        .into_iter()
        .partition(|(name, _)| OURS.contains(&name.as_str()));
    let others = others
        .iter()
        .map(|(name, value)| format!("{name}={}", quote(value)));
    Ok((others.collect::<Vec<_>>().join(" "), ours))
}

/// Quotes a value for a `name=value` string.
pub(super) fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn of_url(text: &str) -> (String, Options) {
    let credentials = text.find('@').unwrap_or(0);
    let Some(mark) = text[credentials..].find('?') else {
        return (text.to_owned(), Vec::new());
    };
    let (head, query) = text.split_at(credentials + mark);
    let mut ours = Vec::new();
    let mut others = Vec::new();
    for pair in query[1..].split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if OURS.contains(&name) {
            ours.push((name.to_owned(), percent_decoded(value)));
        } else {
            others.push(pair);
        }
    }
    let others = others.join("&");
    let mark = if others.is_empty() { "" } else { "?" };
    (format!("{head}{mark}{others}"), ours)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses the pairs of a `name=value` string. Spaces may surround the sign, a value may be quoted,
/// and a backslash escapes the next character.
fn words(text: &str) -> Result<Options, PgError> {
    let bad = |reason: String| PgError::Dsn { reason };
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, tail) = rest
            .split_once('=')
            .ok_or_else(|| bad(format!("there is no '=' after {rest:?}")))?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(bad(format!("{name:?} is not a name of an option")));
        }
        let tail = tail.trim_start();
        let (value, tail) = value(tail).ok_or_else(|| {
            bad(format!(
                "the value of {name} is an unterminated quoted text"
            ))
        })?;
        pairs.push((name.to_owned(), value));
        rest = tail.trim_start();
    }
    Ok(pairs)
}

/// Parses a value and returns what follows it; `None` if a quote is not closed.
fn value(text: &str) -> Option<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut signs = text.char_indices().skip(usize::from(quoted));
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => value.extend(signs.next().map(|(_, next)| next)),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            _ if !quoted && sign.is_whitespace() => return Some((value, &text[at..])),
            _ => value.push(sign),
        }
    }
    (!quoted).then_some((value, ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_quoted_is_read_back(values in proptest::collection::vec(any::<String>(), 0..5)) {
            let pairs = values.iter().enumerate();
            let text: Vec<String> = pairs.map(|(at, value)| format!("o{at}={}", quote(value))).collect();
            let read = words(&text.join(" ")).unwrap();
            prop_assert!(read.iter().map(|(_, value)| value).eq(&values));
        }

        #[test]
        fn any_text_is_taken_or_refused(text in any::<String>(), url in any::<bool>()) {
            let text = if url { format!("postgresql://{text}") } else { text };
            let _ = crate::Dsn::parse(&text);
        }
    }

    #[test]
    fn ours_are_taken_out_of_a_url() {
        let text = "postgres://a:b%3F@h/d?sslmode=require&connect_timeout=3&sslrootcert=%2Fa";
        let (rest, ours) = ssl_options(text).unwrap();
        assert_eq!(rest, "postgres://a:b%3F@h/d?connect_timeout=3");
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(ours, [own("sslmode", "require"), own("sslrootcert", "/a")]);
    }
}
