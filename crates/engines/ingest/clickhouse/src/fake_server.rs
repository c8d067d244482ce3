//! A server on loopback whose answers a test decides: answers that come late or never, which a real
//! one cannot be made to give.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::address::Address;
use crate::http::{Client, Password};
use crate::patience::Patience;

/// The answer to one statement.
pub(crate) enum Reply {
    /// Status 200 with this text.
    Text(String),
    /// ClickHouse's exception of this code.
    Code(i32),
    /// The connection closes without an answer.
    HangUp,
}

/// Starts a server for the table `db.t`; `reply` gets each statement. It lasts as long as the test.
pub(crate) fn start(reply: impl Fn(&str) -> Reply + Send + 'static) -> (Address, Arc<Client>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("clickhouse://{}/db.t", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            serve(&socket.unwrap(), &reply);
        }
    });
    let address: Address = text.parse().unwrap();
    let clients = Client::for_all_servers(&address, &Password::default()).unwrap();
    (address, Arc::new(clients.into_iter().next().unwrap()))
}

fn serve(mut socket: &TcpStream, reply: &impl Fn(&str) -> Reply) {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (head, body) = match reply(&String::from_utf8(body).unwrap()) {
        Reply::Text(text) => ("200 OK\r\n".to_owned(), text),
        Reply::Code(code) => (
            format!("500 Error\r\nX-ClickHouse-Exception-Code: {code}\r\n"),
            format!("Code: {code}. DB::Exception: as told"),
        ),
        Reply::HangUp => return,
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    socket.write_all(answer.as_bytes()).unwrap();
}

/// Retries for this long.
pub(crate) fn patience(limit: Duration) -> Patience {
    Patience {
        limit,
        stops: Vec::new(),
    }
}
