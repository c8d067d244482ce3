//! An endpoint that says what a test wrote down, and keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What it does with one request.
pub enum Reply {
    /// Status and body.
    Says(u16, String),
    /// A completion with these words.
    Writes(&'static str),
    /// Raw bytes, after which it hangs up.
    Raw(Vec<u8>),
    /// Nothing, for so long.
    Waits(Duration),
}

/// The endpoint. It does not accept connections after the last request of its script.
pub struct Scripted {
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for reply in script {
                let Ok((stream, _)) = listener.accept() else {
                    return;
                };
                serve(stream, reply, &kept);
            }
        });
        Self { address, asked }
    }

    /// Requests so far: head and body of each.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, reply: Reply, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    asked.lock().unwrap().push(format!("{head}\n{body}"));
    let (status, body) = match reply {
        Reply::Says(status, body) => (status, body),
        Reply::Writes(words) => (200, completion(words)),
        Reply::Raw(bytes) => return drop((&stream).write_all(&bytes)),
        Reply::Waits(time) => return thread::sleep(time),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // A client that has gone does not want it.
    drop((&stream).write_all(answer.as_bytes()));
}

fn completion(words: &str) -> String {
    let message = serde_json::json!({"role": "assistant", "content": words});
    serde_json::json!({
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7},
    })
    .to_string()
}
