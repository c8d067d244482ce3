//! Records as lines on standard output.

use std::io::{self, BufWriter, Write};

use anyhow::Context;
use dyno_pubsub::Message;

use super::super::message_json;
use crate::args::PubsubConsumeArgs;

pub struct Output {
    json: bool,
    /// What stands between a key and its value; `None` to print values alone.
    key_separator: Option<String>,
    /// Records that may still be written.
    left: u64,
}

impl Output {
    pub fn new(args: &PubsubConsumeArgs) -> Output {
        Output {
            json: args.json,
            key_separator: args.key_separator.clone(),
            left: args.count.unwrap_or(u64::MAX),
        }
    }

    /// Whether as many records were written as were wanted.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Writes as many records as are still wanted, and returns them. They have left this program
    /// when it returns.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn write<'m>(&mut self, messages: &'m [Message]) -> anyhow::Result<&'m [Message]> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let messages = &messages[..messages.len().min(most)];
        let mut stdout = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        for message in messages {
            self.line(&mut stdout, message)
                .context("cannot write to stdout")?;
        }
        stdout.flush().context("cannot write to stdout")?;
        self.left -= messages.len() as u64;
        Ok(messages)
    }

    fn line(&self, to: &mut impl Write, message: &Message) -> io::Result<()> {
        if self.json {
            serde_json::to_writer(&mut *to, &message_json::print(message))?;
        } else {
            if let Some(separator) = &self.key_separator {
                to.write_all(message.key.as_deref().unwrap_or_default())?;
                to.write_all(separator.as_bytes())?;
            }
            to.write_all(&message.value)?;
        }
        to.write_all(b"\n")
    }
}
