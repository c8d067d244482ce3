//! A connection from its first byte on: whether it is encrypted, then message by message.
//!
//! `pgwire` can do the first half itself, but then brings a reader of certificates for a way of
//! authentication that is not offered here, whose licence is not one that this program takes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pgwire::api::{ClientInfo, DefaultClient, NoopHandler, PgWireConnectionState};
use pgwire::messages::PgWireFrontendMessage;
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::codec::{Framed, FramedParts};

use super::Connection;

/// The longest time from the connection to the first statement.
const STARTUP_WITHIN: Duration = Duration::from_secs(60);
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
    let mut parts = FramedParts::new(stream, PgWireMessageServerCodec::new(client));
    parts.read_buf.extend_from_slice(first);
    let mut socket = Framed::from_parts(parts);
    socket.set_state(PgWireConnectionState::AwaitingStartup);
    loop {
        let starting = matches!(
            socket.state(),
            PgWireConnectionState::AwaitingStartup
                | PgWireConnectionState::AuthenticationInProgress
        );
        let next = if starting {
            timeout_at(until, socket.next()).await?
        } else {
            socket.next().await
        };
        let message = match next {
            Some(Ok(PgWireFrontendMessage::Terminate(_))) | None => return Ok(()),
            Some(Ok(message)) => message,
            // The stream cannot be read on: where the next message begins is not known.
            Some(Err(error)) => return Err(io::Error::other(error)),
        };
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
        if let Err(error) = done.await {
            process_error(&mut socket, error, extended).await?;
        }
    }
}
