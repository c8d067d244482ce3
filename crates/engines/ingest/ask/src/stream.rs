//! An answer as it is written: server-sent events (HTML standard, section 9.2), one for a piece of
//! text.

use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

use serde_json::Value;

use crate::endpoint::{Endpoint, Request, Usage};
use crate::error::AskError;

/// The longest line of an event.
const MOST_LINE_BYTES: u64 = 1 << 20;
/// The longest text of an answer, that of [`MOST_EVENTS`] tokens at four bytes each.
const MOST_TEXT_BYTES: usize = 4 << 20;
/// More events cannot be the answer to a request that bounds its tokens.
const MOST_EVENTS: usize = 1 << 20;

/// An answer, with the moment each piece of it came.
#[derive(Debug, Clone)]
pub struct Streamed {
    /// The text of the answer.
    pub text: String,
    /// When each piece with text arrived. Most servers send one token in each.
    pub pieces: Vec<Instant>,
    /// Tokens as the server counts them; `None` if it does not.
    pub usage: Option<Usage>,
}

impl Endpoint {
    /// Asks, and reads the answer as it is written.
    ///
    /// # Errors
    /// As of [`Endpoint::complete`]; an answer that breaks off is [`AskError::Answer`].
    pub fn stream(&self, request: &Request<'_>) -> Result<Streamed, AskError> {
        let body = self.ask(request, true)?;
        let mut lines = BufReader::new(body.into_reader());
        let mut streamed = Streamed {
            text: String::new(),
            pieces: Vec::new(),
            usage: None,
        };
        for _ in 0..MOST_EVENTS {
            let mut line = Vec::new();
            let read = (&mut lines)
                .take(MOST_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .map_err(|error| self.unreachable(&error.to_string()))?;
            if read == 0 {
                return Err(self.odd("the answer broke off"));
            }
            let came = Instant::now();
            // The limit on a line cuts it without an error, and so does a connection that ends.
            if line.last() != Some(&b'\n') {
                return Err(self.odd("an event that is too long, or cut"));
            }
            let line = String::from_utf8_lossy(&line);
            match line.trim_end().strip_prefix("data:").map(str::trim) {
                None => {}
                Some("[DONE]") => return Ok(streamed),
                Some(event) => self.apply(&self.json(event)?, came, &mut streamed)?,
            }
            // The limits on lines and on their number multiply to more than a machine has.
            if streamed.text.len() > MOST_TEXT_BYTES {
                return Err(self.odd("an answer that is too long"));
            }
        }
        Err(self.odd("an answer without an end"))
    }

    fn apply(&self, event: &Value, came: Instant, into: &mut Streamed) -> Result<(), AskError> {
        if let Some(error) = event.get("error") {
            return Err(self.odd(&format!("an error in mid-answer: {error}")));
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            into.usage = serde_json::from_value(usage.clone()).ok();
        }
        // Models that reason apart from their answer write tokens all the same.
        let of = |name: &str| event.pointer(&format!("/choices/0/delta/{name}"));
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let piece = of("content").map(words).unwrap_or_default();
        let reasoned = of("reasoning_content").map(words).unwrap_or_default();
        if !piece.is_empty() || !reasoned.is_empty() {
            into.pieces.push(came);
            into.text += &piece;
        }
        Ok(())
    }
}
