//! Reads commands as clients of Redis send them: arrays of bulk strings, and lines of words.
//!
//! The parser keeps its place between two reads, so a client that sends a command byte by byte does
//! not make it begin again with each byte. No memory is taken for a length that a client announces,
//! only for bytes that have arrived.

use crate::arguments::ArgumentsBuilder;

/// The longest line: an inline command, or the length of an array or a string.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest argument: a value of a row, as the engine limits it.
pub const BULK_BYTES_MAX: usize = dyno_txn_api::limits::VALUE_BYTES_MAX;
/// The most bytes of all arguments of a command, so that it fits into one call of the engine.
pub const COMMAND_BYTES_MAX: usize = 3 << 20;
/// The most arguments of one command.
const ARGUMENTS_MAX: usize = 1 << 18;

/// What one client may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    arguments: usize,
    bulk_bytes: usize,
    /// Whether the client has shown the token, or needs none.
    admitted: bool,
}

impl Limits {
    /// For a client that may use the database.
    pub const ADMITTED: Limits = Limits {
        arguments: ARGUMENTS_MAX,
        bulk_bytes: BULK_BYTES_MAX,
        admitted: true,
    };
    /// For a client that has yet to show the token, as Redis limits one.
    pub const UNADMITTED: Limits = Limits {
        arguments: 10,
        bulk_bytes: 16 << 10,
        admitted: false,
    };
}

/// Why the bytes are not a command. The client is told, and then its connection ends, because
/// nothing says where the next command begins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Protocol error: {0}")]
pub struct ProtocolError(String);

fn broken<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

/// Bytes from a client that are not parsed yet.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    from: usize,
}

impl Input {
    /// Appends bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        // Bytes that were parsed are dropped here, once they are most of the buffer, and not after
        // each command: a pipeline of small ones would be moved once for each.
        if self.from > self.bytes.len() / 2 {
            self.bytes.drain(..self.from);
            self.from = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of bytes that are not parsed yet.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.from
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    fn consume(&mut self, bytes: usize) {
        self.from += bytes;
        if self.from == self.bytes.len() {
            self.bytes.clear();
            self.from = 0;
            // One large command must not keep its memory for as long as the connection lives.
            self.bytes.shrink_to(LINE_BYTES_MAX);
        }
    }
}

/// The parser of one connection.
#[derive(Debug)]
pub struct Parser {
    /// Arguments of an array that are still to come; 0 between two commands.
    missing: usize,
    /// The length of the argument that comes next, once it is known.
    bulk: Option<usize>,
    command: ArgumentsBuilder,
    /// Bytes of a line that were looked at and have no end in them.
    searched: usize,
}

impl Parser {
    /// A parser at the beginning of a command.
    pub fn new() -> Self {
        Self {
            missing: 0,
            bulk: None,
            command: ArgumentsBuilder::default(),
            searched: 0,
        }
    }

    /// Whether a command has begun and is not complete.
    pub fn is_within(&self, input: &Input) -> bool {
        self.missing > 0 || input.len() > 0
    }

    /// The next command, encoded as [`crate::arguments`] has it; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes are not a command. The parser must not be used again then.
    pub fn next(
        &mut self,
        input: &mut Input,
        limits: Limits,
    ) -> Result<Option<Vec<u8>>, ProtocolError> {
        while self.missing == 0 {
            match input.rest().first() {
                None => return Ok(None),
                Some(b'*') => {
                    if !self.array(input, limits)? {
                        return Ok(None);
                    }
                }
                Some(_) => match self.inline(input)? {
                    Line::Command(command) => return Ok(Some(command)),
                    Line::Empty => {}
                    Line::Incomplete => return Ok(None),
                },
            }
        }
        while self.missing > 0 {
            if !self.argument(input, limits)? {
                return Ok(None);
            }
        }
        Ok(Some(self.command.finish()))
    }

    /// Reads the head of an array. Returns false if more bytes are needed.
    fn array(&mut self, input: &mut Input, limits: Limits) -> Result<bool, ProtocolError> {
        let Some(line) = self.line(input, "too big mbulk count string")? else {
            return Ok(false);
        };
        let count = integer(&input.rest()[1..line]);
        input.consume(line + 2);
        // An array of nothing is skipped, as Redis skips it.
        let count = match count {
            Some(count) if count <= 0 => 0,
            Some(count) if count <= ARGUMENTS_MAX as i64 => count as usize,
            _ => return broken("invalid multibulk length"),
        };
        if count > limits.arguments && !limits.admitted {
            return broken("unauthenticated multibulk length");
        }
        self.missing = count;
        Ok(true)
    }

    /// Reads one argument, or as much of it as has arrived. Returns false if more bytes are needed.
    fn argument(&mut self, input: &mut Input, limits: Limits) -> Result<bool, ProtocolError> {
        let length = match self.bulk {
            Some(length) => length,
            None => match self.bulk_length(input, limits)? {
                Some(length) => *self.bulk.insert(length),
                None => return Ok(false),
            },
        };
        // With the CR and LF behind it. Redis does not look at these two bytes either.
        if input.len() < length + 2 {
            return Ok(false);
        }
        self.command.push(&input.rest()[..length]);
        input.consume(length + 2);
        self.bulk = None;
        self.missing -= 1;
        Ok(true)
    }

    fn bulk_length(
        &mut self,
        input: &mut Input,
        limits: Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(input, "too big bulk count string")? else {
            return Ok(None);
        };
        let first = input.rest()[0];
        if first != b'$' {
            return broken(format!("expected '$', got '{}'", first.escape_ascii()));
        }
        let length = integer(&input.rest()[1..line]);
        input.consume(line + 2);
        let length = match length {
            Some(length) if (0..=BULK_BYTES_MAX as i64).contains(&length) => length as usize,
            _ => return broken("invalid bulk length"),
        };
        if length > limits.bulk_bytes && !limits.admitted {
            return broken("unauthenticated bulk length");
        }
        if self.command.len() + length > COMMAND_BYTES_MAX {
            return broken(format!("a command of more than {COMMAND_BYTES_MAX} bytes"));
        }
        Ok(Some(length))
    }

    /// The length of the line at the front, without its CR and LF. `None` if its end has not
    /// arrived.
    fn line(&mut self, input: &Input, too_long: &str) -> Result<Option<usize>, ProtocolError> {
        let rest = input.rest();
        // The end is searched for from where the last search stopped, so that a line that arrives
        // byte by byte is not searched again and again.
        let found = rest[self.searched..].iter().position(|byte| *byte == b'\r');
        match found {
            // The LF is taken to follow, as Redis takes it to.
            Some(at) if self.searched + at + 1 < rest.len() => {
                let line = self.searched + at;
                self.searched = 0;
                Ok(Some(line))
            }
            Some(_) => Ok(None),
            None if rest.len() > LINE_BYTES_MAX => broken(too_long),
            None => {
                self.searched = rest.len();
                Ok(None)
            }
        }
    }

    /// Reads a command that is a line of words, as people type it.
    fn inline(&mut self, input: &mut Input) -> Result<Line, ProtocolError> {
        let rest = input.rest();
        let found = rest[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(at) = found else {
            if rest.len() > LINE_BYTES_MAX {
                return broken("too big inline request");
            }
            self.searched = rest.len();
            return Ok(Line::Incomplete);
        };
        let end = std::mem::take(&mut self.searched) + at;
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(words) = words(line) else {
            return broken("unbalanced quotes in request");
        };
        input.consume(end + 1);
        if words.is_empty() {
            return Ok(Line::Empty);
        }
        for word in &words {
            self.command.push(word);
        }
        Ok(Line::Command(self.command.finish()))
    }
}

/// What an inline command came to, which may be nothing yet.
enum Line {
    Command(Vec<u8>),
    Empty,
    Incomplete,
}

/// Splits a line into words at white space. Words may be quoted: in double quotes with escapes, in
/// single quotes with `\'` alone. `None` if a quote is not closed, or is followed by anything but
/// white space.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut bytes = line.iter().copied().peekable();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        if bytes.peek().is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        loop {
            match bytes.next() {
                None => break,
                Some(byte) if byte.is_ascii_whitespace() => break,
                Some(quote @ (b'"' | b'\'')) => {
                    quoted(quote, &mut bytes, &mut word)?;
                    // A quote ends its word.
                    match bytes.next() {
                        Some(byte) if !byte.is_ascii_whitespace() => return None,
                        _ => break,
                    }
                }
                Some(byte) => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// Reads up to the closing quote. `None` if it is missing.
fn quoted(
    quote: u8,
    bytes: &mut std::iter::Peekable<impl Iterator<Item = u8> + Clone>,
    word: &mut Vec<u8>,
) -> Option<()> {
    loop {
        match bytes.next()? {
            byte if byte == quote => return Some(()),
            b'\\' if quote == b'\'' => match bytes.next_if_eq(&b'\'') {
                Some(byte) => word.push(byte),
                None => word.push(b'\\'),
            },
            b'\\' => word.push(escaped(bytes)?),
            byte => word.push(byte),
        }
    }
}

/// The byte that an escape in double quotes stands for.
fn escaped(bytes: &mut std::iter::Peekable<impl Iterator<Item = u8> + Clone>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    Some(match bytes.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        b'x' => {
            let mut ahead = bytes.clone();
            match (digit(ahead.next()), digit(ahead.next())) {
                (Some(high), Some(low)) => {
                    *bytes = ahead;
                    (high * 16 + low) as u8
                }
                // Without two digits it is the letter itself.
                _ => b'x',
            }
        }
        byte => byte,
    })
}

/// Parses an integer as Redis does in its protocol and its values: no sign but `-`, no leading
/// zeros, no white space.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arguments::arguments;

    fn all(parser: &mut Parser, input: &mut Input) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let mut commands = Vec::new();
        while let Some(command) = parser.next(input, Limits::ADMITTED)? {
            let list = arguments(&command).expect("its own encoding");
            commands.push(list.into_iter().map(<[u8]>::to_vec).collect());
        }
        Ok(commands)
    }

    fn parse(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let mut input = Input::default();
        input.push(bytes);
        all(&mut Parser::new(), &mut input)
    }

    fn encoded(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend(format!("*{}\r\n", command.len()).bytes());
            for argument in command {
                bytes.extend(format!("${}\r\n", argument.len()).bytes());
                bytes.extend(argument);
                bytes.extend(b"\r\n");
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn commands_are_read_however_they_are_cut(
            commands in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6), 0..6),
            cuts in prop::collection::vec(1..9usize, 1..40),
        ) {
            let bytes = encoded(&commands);
            let (mut parser, mut input) = (Parser::new(), Input::default());
            let (mut read, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                input.push(now);
                read.extend(all(&mut parser, &mut input).expect("they are commands"));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(read, commands);
            prop_assert_eq!(input.len(), 0);
        }

        #[test]
        fn any_bytes_are_commands_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn lines_are_words_with_quotes() {
        for (line, words) in [
            ("PING\r\n", vec!["PING"]),
            ("  set  k  v \n", vec!["set", "k", "v"]),
            ("set k \"a b\\x41\\n\\q\"\r\n", vec!["set", "k", "a bA\nq"]),
            ("set k 'a\\'b\\n'\r\n", vec!["set", "k", "a'b\\n"]),
            ("\r\n\r\nget k\r\n", vec!["get", "k"]),
        ] {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(parse(line.as_bytes()), Ok(vec![words]), "{line:?}");
        }
    }

    #[test]
    fn broken_frames_are_named_as_redis_names_them() {
        let long = [&b"*"[..], &[b'1'; 70_000]].concat();
        for (bytes, error) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*2000000\r\n", "invalid multibulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$99999999\r\n", "invalid bulk length"),
            (b"get \"k\r\n", "unbalanced quotes in request"),
            (b"get \"k\"x\r\n", "unbalanced quotes in request"),
            (&long, "too big mbulk count string"),
            (&long[1..], "too big inline request"),
        ] {
            let error = format!("Protocol error: {error}");
            assert_eq!(parse(bytes).expect_err("broken").to_string(), error);
        }
    }

    #[test]
    fn numbers_are_canonical() {
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer(b"0"), Some(0));
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "9223372036854775808"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
