//! A connection from its first byte on: whether it is encrypted, then message by message.
//!
//! `pgwire` can do the first half itself, but then brings a reader of certificates for a way of
//! authentication that is not offered here, whose licence is not one that this program takes.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::SinkExt;
use pgwire::api::{ClientInfo, DefaultClient, NoopHandler, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::codec::{Decoder, Framed};

use super::frames::{self, Stage};
use super::statements::Prepared;
use super::{Connection, fatal};
use crate::serve::refusal::{Kind, Refusal};

/// The longest time from the connection to the first statement.
const STARTUP_WITHIN: Duration = Duration::from_secs(60);
/// The room that is kept to read into.
const READ_BYTES: usize = 8 << 10;
/// The length and the number of a request for TLS, which come before all else.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// The same for encryption by Kerberos, which is not offered.
const KERBEROS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 48];

/// Serves a client until it or the server ends the connection.
pub(super) async fn converse(mut socket: TcpStream, connection: Connection) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let until = Instant::now() + STARTUP_WITHIN;
    let connection = Arc::new(connection);
    let mut first = [0; 8];
    loop {
        // Exactly these bytes are read: what a client sent behind them in the clear must not count
        // as if it had come encrypted.
        timeout_at(until, socket.read_exact(&mut first)).await??;
        match (&first, &connection.shared.tls) {
            (&TLS_REQUEST, Some(acceptor)) => {
                socket.write_all(b"S").await?;
                let accepted = acceptor.accept(socket);
                let stream = timeout_at(until, accepted).await??;
                return messages(stream, &[], true, &connection, until).await;
            }
            // The client may go on in the clear, or close the connection.
            (&TLS_REQUEST, None) | (&KERBEROS_REQUEST, _) => socket.write_all(b"N").await?,
            _ => return messages(socket, &first, false, &connection, until).await,
        }
    }
}

/// A client's stream, with what `pgwire` knows of it. Its own way to read is not used.
type Socket<S> = Framed<S, PgWireMessageServerCodec<Prepared>>;

/// Reads messages, of which the `first` bytes are there already, and answers each.
async fn messages<S>(
    stream: S,
    first: &[u8],
    secure: bool,
    connection: &Arc<Connection>,
    until: Instant,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let client = DefaultClient::new(connection.peer, secure);
    let mut socket: Socket<S> = Framed::new(stream, PgWireMessageServerCodec::new(client));
    socket.set_state(PgWireConnectionState::AwaitingStartup);
    let mut unread = mem::take(socket.read_buffer_mut());
    unread.extend_from_slice(first);
    loop {
        let stage = Stage::from_state(socket.state());
        let received = receive(&mut socket, &mut unread, stage);
        let received = if stage == Stage::LetIn {
            received.await
        } else {
            timeout_at(until, received).await?
        };
        let message = match received {
            Ok(Some(PgWireFrontendMessage::Terminate(_)) | None) => return Ok(()),
            Ok(Some(message)) => message,
            Err(PgWireError::IoError(error)) => return Err(error),
            // The stream cannot be read on: where the next message begins is not known.
            Err(error) => return end(&mut socket, error.into()).await,
        };
        // Such a connection is there for this one request.
        let is_cancel = matches!(message, PgWireFrontendMessage::CancelRequest(_));
        // After an error in the extended protocol, messages are skipped up to the next Sync.
        let extended = message.is_extended_query();
        let handler = || Arc::clone(connection);
        let done = process_message(
            message,
            &mut socket,
            handler(),
            handler(),
            handler(),
            Arc::new(NoopHandler),
            handler(),
        );
        let done = done.await;
        if is_cancel {
            return Ok(());
        }
        if let Err(error) = done {
            let error = ErrorInfo::from(error);
            // After any error `pgwire` takes the next message for one of a client that was let in,
            // even if the error was that its password is wrong.
            if stage != Stage::LetIn || error.is_fatal() {
                return end(&mut socket, error).await;
            }
            let error = PgWireError::UserError(Box::new(error));
            process_error(&mut socket, error, extended).await?;
        }
    }
}

/// The next message; `None` when the client has closed the connection.
async fn receive<S>(
    socket: &mut Socket<S>,
    unread: &mut BytesMut,
    stage: Stage,
) -> PgWireResult<Option<PgWireFrontendMessage>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let whole = frames::whole(unread, stage)
            .map_err(|message| fatal(Refusal::new(Kind::Protocol, message)))?;
        if let Some(length) = whole {
            // Alone, so that the decoder cannot go on into the message behind it.
            let mut message = unread.split_to(length);
            return socket.codec_mut().decode(&mut message);
        }
        unread.reserve(READ_BYTES);
        if socket.get_mut().read_buf(unread).await? == 0 {
            return Ok(None);
        }
    }
}

/// Tells a client why its connection ends, and ends it. What it has sent behind is not read.
async fn end<S>(socket: &mut Socket<S>, error: ErrorInfo) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let told = PgWireBackendMessage::ErrorResponse(error.into());
    socket.send(told).await?;
    socket.get_mut().shutdown().await
}
