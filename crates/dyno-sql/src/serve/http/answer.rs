//! What is sent back: a text, or the rows of a statement while it runs.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::forms::{Form, FormWriter};
use crate::serve::engine::{Engine, Question, Running};
use crate::serve::refusal::{Kind, Refusal};
use std::sync::Arc;

/// "Exposition formats" of the Prometheus documentation, text format 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";
const JSON_TYPE: &str = "application/json";
/// What a page may load and do: only what it brings itself.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

/// An answer to a request.
pub(super) enum Answer {
    Whole {
        status: u16,
        media_type: &'static str,
        body: String,
    },
    Rows(Box<Rows>),
}

/// The rows of a statement, of which the first bytes are there.
pub(super) struct Rows {
    form: Form,
    first: Vec<u8>,
    writer: FormWriter,
    /// `None` if the first bytes are all.
    running: Option<Running>,
}

impl Answer {
    pub(super) fn text(body: String) -> Self {
        Self::whole(200, TEXT_TYPE, body)
    }

    pub(super) fn page(body: String) -> Self {
        Self::whole(200, "text/html; charset=utf-8", body)
    }

    pub(super) fn metrics(body: String) -> Self {
        Self::whole(200, METRICS_TYPE, body)
    }

    /// An error as JSON, with what it is and why.
    pub(super) fn error(status: u16, what: &str, why: &str) -> Self {
        let body = serde_json::json!({ "error": what, "why": why });
        Self::whole(status, JSON_TYPE, format!("{body}\n"))
    }

    pub(super) fn refused(refusal: &Refusal) -> Self {
        let kind = refusal.kind;
        let body = serde_json::json!({
            "error": what(kind),
            "why": refusal.message,
            // The code that a client of PostgreSQL is told for the same statement.
            "sqlstate": kind.sqlstate(),
        });
        Self::whole(kind.status(), JSON_TYPE, format!("{body}\n"))
    }

    fn whole(status: u16, media_type: &'static str, body: String) -> Self {
        Self::Whole {
            status,
            media_type,
            body,
        }
    }

    /// Starts a statement, and waits for its first batch, so that a statement that fails early is
    /// answered by its status and not by a broken body.
    pub(super) async fn rows(engine: &Arc<Engine>, question: Question, form: Form) -> Self {
        match Self::started(engine, question, form).await {
            Ok(rows) => Self::Rows(Box::new(rows)),
            Err(refusal) => Self::refused(&refusal),
        }
    }

    async fn started(
        engine: &Arc<Engine>,
        question: Question,
        form: Form,
    ) -> Result<Rows, Refusal> {
        let (columns, mut running) = engine.start(question).await?;
        let unwritable = |error: anyhow::Error| Refusal::new(Kind::Value, error.to_string());
        let mut writer = FormWriter::new(form, &columns).map_err(unwritable)?;
        let mut first = Vec::new();
        // Several batches may stay in a writer of row groups before there are bytes to send.
        while first.is_empty() {
            match running.next().await {
                Some(batch) => first = writer.batch(batch?).map_err(unwritable)?,
                None => {
                    let running = None;
                    return Ok(Rows {
                        form,
                        first,
                        writer,
                        running,
                    });
                }
            }
        }
        Ok(Rows {
            form,
            first,
            writer,
            running: Some(running),
        })
    }

    pub(super) async fn send(
        self,
        stream: &mut (impl AsyncWrite + Unpin),
        head_only: bool,
    ) -> io::Result<()> {
        match self {
            Answer::Whole {
                status,
                media_type,
                body,
            } => {
                let length = format!("Content-Length: {}", body.len());
                let mut text = head(status, media_type, &length);
                if !head_only {
                    text.push_str(&body);
                }
                stream.write_all(text.as_bytes()).await?;
            }
            Answer::Rows(rows) => {
                let media_type = rows.form.media_type();
                let text = head(200, media_type, "Transfer-Encoding: chunked");
                stream.write_all(text.as_bytes()).await?;
                if !head_only {
                    rows.send(stream).await?;
                }
            }
        }
        stream.flush().await
    }
}

impl Rows {
    async fn send(mut self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        chunk(stream, &self.first).await?;
        if let Some(mut running) = self.running.take() {
            while let Some(batch) = running.next().await {
                // The status is sent already. The connection is closed in the middle of the body,
                // which a client cannot take for the end of it, because the last chunk is missing.
                let batch = batch.map_err(io::Error::other)?;
                let bytes = self.writer.batch(batch).map_err(io::Error::other)?;
                chunk(stream, &bytes).await?;
            }
        }
        let end = self.writer.finish().map_err(io::Error::other)?;
        chunk(stream, &end).await?;
        stream.write_all(b"0\r\n\r\n").await
    }
}

/// Sends a part of a body (RFC 9112, section 7.1). An empty one would be taken for the end.
async fn chunk(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let head = format!("{:x}\r\n", bytes.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await
}

fn head(status: u16, media_type: &str, length: &str) -> String {
    let name = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    };
    let mut text = format!(
        "HTTP/1.1 {status} {name}\r\nContent-Type: {media_type}\r\n{length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: {POLICY}\r\nConnection: close\r\n"
    );
    if status == 401 {
        text.push_str("WWW-Authenticate: Basic realm=\"dyno\"\r\n");
    }
    if status == 405 {
        text.push_str("Allow: GET, HEAD\r\n");
    }
    text.push_str("\r\n");
    text
}

/// What a refusal is, in the words of the interface.
fn what(kind: Kind) -> &'static str {
    match kind {
        Kind::Syntax => "the statement cannot be planned",
        Kind::NoTable => "no such table",
        Kind::NoColumn => "no such column",
        Kind::NoSetting => "no such setting",
        Kind::ReadOnly => "the table is only read here",
        Kind::NotSupported => "not supported",
        Kind::Value => "a value does not fit",
        Kind::Cancelled => "cancelled",
        Kind::TimedOut => "too slow",
        Kind::Memory => "too much memory",
        Kind::TooManyRows => "too many rows",
        Kind::TooComplex => "too complex",
        Kind::Protocol => "not the protocol",
        Kind::Unencrypted => "not encrypted",
        Kind::TooManyConnections => "too many connections",
        Kind::FailedTransaction => "the transaction has failed",
        Kind::Failed => "the server failed",
    }
}
