//! Unary calls of gRPC over one HTTP/2 connection, which is all that etcd's key-value service
//! needs.
//!
//! A call is a POST whose body is one message after five bytes: a flag for compression, which is
//! never set here, and the length of the message. The answer has the same form, and its status
//! follows in the trailers. A call that the server refuses has the status in its headers, and no
//! body (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

use std::fmt;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::client::{Builder, SendRequest};
use http::{HeaderMap, Request, Uri};
use prost::Message;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// The longest answer that is accepted, which bounds the memory for it.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// How many bytes of one answer, and of all answers together, the server may send before we have
/// read them.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;
/// Length of what precedes each message: a flag, and a length of four bytes.
const PREFIX_BYTES: usize = 5;

/// The numbers of the gRPC statuses that have a meaning here.
pub(crate) mod code {
    pub(crate) const OK: u32 = 0;
    pub(crate) const INVALID_ARGUMENT: u32 = 3;
    pub(crate) const PERMISSION_DENIED: u32 = 7;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const OUT_OF_RANGE: u32 = 11;
    pub(crate) const UNAUTHENTICATED: u32 = 16;
}

/// The reason for which a call has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no connection, so nothing was sent.
    NotConnected(String),
    /// The server answered with a status that is not OK.
    Status { code: u32, message: String },
    /// The request may have been sent, and its effect is not known.
    Lost(String),
    /// The server answered with more than is accepted, and would do so again.
    TooLong(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotConnected(reason) => write!(f, "no connection: {reason}"),
            Failure::Status { message, .. } => f.write_str(message),
            Failure::Lost(reason) | Failure::TooLong(reason) => f.write_str(reason),
        }
    }
}

/// The connection to one server, `HOST:PORT`. The first call makes it, and later calls make it anew
/// after it has ended.
pub(crate) struct Channel {
    address: String,
    connect_wait: Duration,
    connection: Mutex<Option<SendRequest<Bytes>>>,
}

impl Channel {
    /// # Errors
    /// The reason why the address is not one of a server.
    pub(crate) fn new(address: &str, connect_wait: Duration) -> Result<Channel, String> {
        let uri: Uri = format!("http://{address}")
            .parse()
            .map_err(|error| format!("{address}: {error}"))?;
        if uri.port_u16().is_none() || uri.path() != "/" {
            return Err(format!("{address}: it is not HOST:PORT"));
        }
        Ok(Channel {
            address: address.to_owned(),
            connect_wait,
            connection: Mutex::new(None),
        })
    }

    /// Sends one message, and waits for the one that answers it.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        path: &str,
        message: &impl Message,
    ) -> Result<A, Failure> {
        let request = Request::post(format!("http://{}{path}", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .map_err(|error| Failure::NotConnected(error.to_string()))?;
        let mut sender = self.sender().await?;
        // From here on the server may have seen the request, so every failure leaves the outcome
        // unknown.
        let lost = |error: h2::Error| Failure::Lost(error.to_string());
        let (answer, mut body) = sender.send_request(request, false).map_err(lost)?;
        body.send_data(framed(message), true).map_err(lost)?;
        let (head, body) = answer.await.map_err(lost)?.into_parts();
        if !head.status.is_success() {
            return Err(Failure::Lost(format!("HTTP status {}", head.status)));
        }
        if let Some(refused) = refusal(&head.headers) {
            return Err(refused);
        }
        let bytes = received(body).await?;
        A::decode(bytes).map_err(|error| Failure::Lost(format!("its answer is damaged: {error}")))
    }

    /// Returns a handle on the connection that has room for one more call.
    ///
    /// If the connection has ended, that shows here, before anything is sent on it, and a new one
    /// is made. So a restart of the server fails no call of its clients. The lock is held while
    /// connecting, so that many callers at once make one connection. It is not held while waiting
    /// for room, because other calls must end to make room.
    async fn sender(&self) -> Result<SendRequest<Bytes>, Failure> {
        let known = self.connection.lock().await.clone();
        if let Some(sender) = known
            && let Ok(ready) = sender.ready().await
        {
            return Ok(ready);
        }
        let mut connection = self.connection.lock().await;
        // Another caller may have made a new connection in the meantime.
        if let Some(sender) = connection.clone()
            && !self.has_ended(sender.clone()).await
        {
            drop(connection);
            return ready(sender).await;
        }
        let sender = self.connect().await?;
        *connection = Some(sender.clone());
        drop(connection);
        ready(sender).await
    }

    /// Whether the handle's connection is known to have ended, without waiting.
    async fn has_ended(&self, mut sender: SendRequest<Bytes>) -> bool {
        std::future::poll_fn(|context| {
            let polled = sender.poll_ready(context);
            std::task::Poll::Ready(matches!(polled, std::task::Poll::Ready(Err(_))))
        })
        .await
    }

    async fn connect(&self) -> Result<SendRequest<Bytes>, Failure> {
        let failed = |reason: &dyn fmt::Display| {
            Failure::NotConnected(format!("tcp connect error: {reason}"))
        };
        let connecting = TcpStream::connect(&self.address);
        let tcp = match tokio::time::timeout(self.connect_wait, connecting).await {
            Ok(connected) => connected.map_err(|error| failed(&error))?,
            Err(_) => return Err(failed(&format!("none within {:?}", self.connect_wait))),
        };
        tcp.set_nodelay(true).map_err(|error| failed(&error))?;
        let (sender, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false)
            .handshake(tcp)
            .await
            .map_err(|error| failed(&error))?;
        // The task carries the frames of all calls, and ends with the connection. Calls that are
        // then open get the error themselves.
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn ready(sender: SendRequest<Bytes>) -> Result<SendRequest<Bytes>, Failure> {
    let ready = sender.ready().await;
    ready.map_err(|error| Failure::NotConnected(error.to_string()))
}

/// Encodes a message with its prefix.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + length);
    frame.put_u8(0);
    frame.put_u32(length as u32);
    // The buffer grows, so it has room for every message.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

/// Reads the one message of an answer, and the status after it.
async fn received(mut body: RecvStream) -> Result<Bytes, Failure> {
    let lost = |error: h2::Error| Failure::Lost(error.to_string());
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(lost)?;
        if bytes.len() + chunk.len() > PREFIX_BYTES + MESSAGE_BYTES_MAX {
            let reason = format!("its answer is longer than {MESSAGE_BYTES_MAX} bytes");
            return Err(Failure::TooLong(reason));
        }
        bytes.extend_from_slice(&chunk);
        // Without this the server would stop sending when the window is full.
        body.flow_control()
            .release_capacity(chunk.len())
            .map_err(lost)?;
    }
    let trailers = body.trailers().await.map_err(lost)?.unwrap_or_default();
    match refusal(&trailers) {
        Some(refused) => Err(refused),
        // An answer that was cut off, for example by a proxy, ends like this. It must not count as
        // a success.
        None if !trailers.contains_key("grpc-status") => {
            Err(Failure::Lost("its answer ends without a status".to_owned()))
        }
        None => message_in(bytes.freeze()),
    }
}

/// The message of an answer, without its prefix.
fn message_in(bytes: Bytes) -> Result<Bytes, Failure> {
    let damaged = |what: &str| Err(Failure::Lost(format!("its answer is damaged: {what}")));
    let Some((prefix, message)) = bytes.split_first_chunk::<PREFIX_BYTES>() else {
        return damaged("it has no message");
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return damaged("it is compressed, which was not offered");
    }
    if u32::from_be_bytes(length) as usize != message.len() {
        return damaged("its length is not the one it states");
    }
    Ok(bytes.slice(PREFIX_BYTES..))
}

/// The status in headers or trailers, if there is one that is not OK.
fn refusal(headers: &HeaderMap) -> Option<Failure> {
    let status = headers.get("grpc-status")?;
    let code: u32 = match status.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(code::OK) => return None,
        Some(code) => code,
        None => return Some(Failure::Lost(format!("its status is {status:?}"))),
    };
    let message = headers.get("grpc-message").map(|value| value.as_bytes());
    Some(Failure::Status {
        code,
        message: percent_decoded(message.unwrap_or_default()),
    })
}

/// Decodes a header in which `%` and two hex digits stand for a byte that headers cannot hold.
fn percent_decoded(text: &[u8]) -> String {
    let digit = |at: usize| {
        let digit = char::from(*text.get(at)?).to_digit(16)?;
        Some(digit as u8)
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_header_is_decoded() {
        assert_eq!(percent_decoded(b"a%20b%3a%C3%BC"), "a b:\u{fc}");
        assert_eq!(percent_decoded(b"50% off %2"), "50% off %2");
    }

    #[test]
    fn an_answer_of_another_length_than_it_states_is_damaged() {
        let answer = |bytes: &'static [u8]| message_in(Bytes::from_static(bytes));
        assert_eq!(
            answer(&[0, 0, 0, 0, 2, 7, 8]).expect("it is whole"),
            &[7u8, 8][..]
        );
        for damaged in [&[0u8, 0, 0][..], &[0, 0, 0, 0, 2, 7], &[1, 0, 0, 0, 1, 7]] {
            let said = answer(damaged).expect_err("it is damaged").to_string();
            assert!(said.contains("damaged"), "{said}");
        }
    }

    #[test]
    fn a_status_of_zero_refuses_nothing() {
        let with = |status: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", status.parse().expect("a header"));
            refusal(&headers)
        };
        assert!(with("0").is_none());
        assert!(matches!(with("11"), Some(Failure::Status { code: 11, .. })));
        assert!(matches!(with("x"), Some(Failure::Lost(_))));
        assert!(refusal(&HeaderMap::new()).is_none());
    }
}
