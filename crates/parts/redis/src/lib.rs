//! A client of Redis' protocol (RESP2) that waits for its replies: for loads and for checks, which
//! share no code with the server.
//!
//! ```no_run
//! use dyno_redis::{Client, Value};
//! let mut client = Client::connect("127.0.0.1:6380", std::time::Duration::from_secs(10))?;
//! assert_eq!(client.ask(&["incr", "visits"])?, Value::Integer(1));
//! # Ok::<(), dyno_redis::RedisError>(())
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Why a command has no reply.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The connection could not be made, or is broken. The commands before it may have been carried
    /// out.
    #[error("a connection to the server: {0}")]
    Io(#[from] io::Error),
    /// The server's own error, in its words.
    #[error("the server answered: {0}")]
    Refused(String),
    /// The server sent something that is not a reply.
    #[error("the server sent {0:?}, which is not a reply")]
    Strange(String),
}

/// A connection. Commands gather until they are sent, so several can share a round trip.
pub struct Client {
    stream: BufReader<TcpStream>,
    unsent: Vec<u8>,
    line: Vec<u8>,
}

/// A reply, of the types that servers use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A word such as `OK`.
    Simple(String),
    /// A number with a sign, such as the count that `INCR` answers with.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// A string or a list that is absent.
    Null,
    /// An error as an element of a list: in the reply to an `EXEC`, the commands beside it were
    /// carried out.
    Error(String),
    /// A list, whose elements may be of different types and lists themselves.
    Array(Vec<Value>),
}

impl Client {
    /// Connects. A reply that takes longer than `patience` is an error.
    ///
    /// # Errors
    /// [`RedisError::Io`].
    pub fn connect(at: impl ToSocketAddrs, patience: Duration) -> Result<Client, RedisError> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(patience))?;
        // Without this the second of two small messages would wait for an acknowledgement.
        stream.set_nodelay(true)?;
        Ok(Client {
            stream: BufReader::with_capacity(64 << 10, stream),
            unsent: Vec::new(),
            line: Vec::new(),
        })
    }

    /// Appends a command to those that are to be sent.
    pub fn push<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        let head = |out: &mut Vec<u8>, kind: char, count: usize| {
            out.extend_from_slice(format!("{kind}{count}\r\n").as_bytes());
        };
        head(&mut self.unsent, '*', words.len());
        for word in words {
            head(&mut self.unsent, '$', word.as_ref().len());
            self.unsent.extend_from_slice(word.as_ref());
            self.unsent.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was pushed, without waiting for the replies.
    ///
    /// # Errors
    /// [`RedisError::Io`].
    pub fn send(&mut self) -> Result<(), RedisError> {
        let sent = self.stream.get_mut().write_all(&self.unsent);
        self.unsent.clear();
        Ok(sent?)
    }

    /// Sends a command and returns its reply.
    ///
    /// # Errors
    /// [`RedisError`]; the server's own error is one, too.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, RedisError> {
        self.push(words);
        self.send()?;
        self.reply()
    }

    /// Waits for the next reply, of which there is one for each command.
    ///
    /// # Errors
    /// [`RedisError`]; the server's own error is one, too.
    pub fn reply(&mut self) -> Result<Value, RedisError> {
        match self.value()? {
            Value::Error(text) => Err(RedisError::Refused(text)),
            value => Ok(value),
        }
    }

    fn value(&mut self) -> Result<Value, RedisError> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end();
        let strange = || RedisError::Strange(line.to_owned());
        let Some((kind, text)) = line.split_at_checked(1) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        let number = || text.parse::<i64>().map_err(|_| strange());
        match kind {
            "+" => Ok(Value::Simple(text.to_owned())),
            "-" => Ok(Value::Error(text.to_owned())),
            ":" => Ok(Value::Integer(number()?)),
            "$" | "*" if number()? < 0 => Ok(Value::Null),
            "$" => {
                let length = number()? as usize;
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Value::Bulk(bytes))
            }
            "*" => {
                let each = (0..number()?).map(|_| self.value());
                Ok(Value::Array(each.collect::<Result<_, _>>()?))
            }
            _ => Err(strange()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn replies_are_read_as_they_were_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let mut asked = [0; 22];
            socket.read_exact(&mut asked).expect("a command");
            let said = b"*5\r\n:7\r\n$2\r\n\r\n\r\n$-1\r\n+OK\r\n-ERR in it\r\n-ERR no\r\n?\r\n";
            socket.write_all(said).expect("a client");
            asked
        });
        let mut client = Client::connect(address, Duration::from_secs(20)).expect("a server");
        let values = vec![
            Value::Integer(7),
            Value::Bulk(b"\r\n".to_vec()),
            Value::Null,
            Value::Simple("OK".to_owned()),
            Value::Error("ERR in it".to_owned()),
        ];
        let reply = client.ask(&["get", "key"]).expect("a list");
        assert_eq!(reply, Value::Array(values));
        for expected in [
            "the server answered: ERR no",
            "the server sent \"?\", which is not a reply",
            "a connection to the server: unexpected end of file",
        ] {
            let error = client.reply().expect_err(expected).to_string();
            assert_eq!(error, expected);
        }
        let asked = server.join().expect("it ended");
        assert_eq!(&asked, b"*2\r\n$3\r\nget\r\n$3\r\nkey\r\n");
    }
}
