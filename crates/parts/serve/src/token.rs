//! A shared secret, compared in a time that does not depend on how much of it was guessed.

use std::fmt;
use std::fs;
use std::path::Path;

use subtle::ConstantTimeEq;

use crate::error::ServeError;

const LEAST_BYTES: usize = 16;
const MOST_BYTES: usize = 4096;

/// A secret that a client must present. Neither `Debug` nor an error shows it.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// A token of 16 to 4096 visible ASCII characters, as a header can carry them (RFC 6750,
    /// section 2.1).
    ///
    /// # Errors
    /// [`ServeError::Token`].
    pub fn new(text: &str) -> Result<Self, ServeError> {
        Self::checked(text, "given")
    }

    /// Reads it from a file; white space around it does not count.
    ///
    /// # Errors
    /// [`ServeError::Token`].
    pub fn from_file(path: &Path) -> Result<Self, ServeError> {
        let from = format!("in {}", path.display());
        match fs::read_to_string(path) {
            Ok(text) => Self::checked(text.trim(), &from),
            Err(error) => Err(ServeError::Token {
                from,
                reason: error.to_string(),
            }),
        }
    }

    fn checked(text: &str, from: &str) -> Result<Self, ServeError> {
        let bad = |reason: String| ServeError::Token {
            from: from.to_owned(),
            reason,
        };
        if !(LEAST_BYTES..=MOST_BYTES).contains(&text.len()) {
            let length = text.len();
            return Err(bad(format!(
                "it has {length} bytes, and a token has {LEAST_BYTES} to {MOST_BYTES}"
            )));
        }
        // Other characters cannot be sent in a header, so no client could ever present the token.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("it has other than visible ASCII characters".to_owned()));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// Whether `offered` is the token. The time depends on the length of `offered` alone.
    pub fn is(&self, offered: &[u8]) -> bool {
        self.0.ct_eq(offered).into()
    }

    /// The secret itself, for a client to send.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        let longer = b"0123456789abcdef0123456789abcdef";
        for wrong in [&b""[..], b"0123456789abcdeF", b"0123456789abcde", longer] {
            assert!(!token.is(wrong));
        }
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }

    #[test]
    fn tokens_that_guard_nothing_are_refused() {
        for bad in ["", "short", "0123456789 abcdef", "0123456789abcdef\u{e9}"] {
            let error = Token::new(bad).unwrap_err().to_string();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
        let error = Token::from_file(Path::new("/no/file")).unwrap_err();
        assert!(error.to_string().contains("/no/file"));
    }
}
