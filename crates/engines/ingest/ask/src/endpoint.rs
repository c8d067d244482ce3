//! An endpoint of the OpenAI interface (its reference, "Chat" and "Models"): llama.cpp's server,
//! vLLM, SGLang.

use std::fmt;
use std::time::Duration;

use dyno_http::ureq::{self, http};
use dyno_http::{Failure, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::error::{AskError, shown};

/// The longest answer that is read; a longer one is an error.
const MOST_ANSWER_BYTES: u64 = 4 << 20;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions for the whole conversation.
    System,
    /// The person who asks, here our program.
    User,
    /// The model that answers.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The text of the message.
    pub content: String,
}

impl Message {
    /// Makes a message whose author is `role`.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Message {
            role,
            content: content.into(),
        }
    }
}

/// A request for the next message of a conversation.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The conversation so far, the oldest message first.
    pub messages: &'a [Message],
    /// The most tokens that the model may write.
    pub most_tokens: u32,
    /// Makes the model write on after the end of its answer, for measurements. Servers that do not
    /// know the option ignore it.
    pub ignore_end: bool,
}

/// The answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text of the answer.
    pub text: String,
    /// Whether the answer was cut because it reached the most tokens.
    pub cut: bool,
    /// Tokens read and written, as the server counts them; 0 if it does not.
    pub usage: Usage,
}

/// Tokens read and written for a completion, as the server counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Tokens of the conversation, which the model read.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Tokens of the answer, which the model wrote.
    #[serde(default)]
    pub completion_tokens: u64,
}

impl Usage {
    /// Adds the tokens of another completion. The counts are what a server says, so their sum stops
    /// at the largest number instead of overflowing.
    pub(crate) fn add(&mut self, other: Usage) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
    }
}

/// A server, the model to use there, and the key that the server requires. Threads share it.
pub struct Endpoint {
    agent: ureq::Agent,
    base: Url,
    server: String,
    key: Option<String>,
    model: Option<String>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Endpoint");
        shown.field("server", &self.server).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint at `address`, such as `http://127.0.0.1:8080/v1`, whose answers may take `wait`.
    /// Without a model it is the first that the server lists. Nothing is sent yet.
    ///
    /// # Errors
    /// [`AskError::Address`]: not http or https, or with a password in it.
    pub fn new(
        address: &str,
        model: Option<&str>,
        key: Option<String>,
        wait: Duration,
    ) -> Result<Self, AskError> {
        let bad = |shown: &str, reason: String| AskError::Address {
            address: shown.to_owned(),
            reason,
        };
        // An address that cannot be parsed may have a password in it all the same.
        let plain = if address.contains('@') {
            "the address"
        } else {
            address
        };
        let base = Url::parse(address).map_err(|error| bad(plain, error.to_string()))?;
        // The address is shown in messages, so it must not have a secret in it.
        if !base.username().is_empty() || base.password().is_some() {
            let text = "a key is not part of the address".to_owned();
            return Err(bad("the address", text));
        }
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(bad(address, "neither http nor https".to_owned()));
        }
        let host = base.host_str().unwrap_or_default();
        let server = match base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Endpoint {
            agent: dyno_http::agent(&Settings {
                whole: wait,
                ..Settings::default()
            }),
            base,
            server,
            key,
            model: model.map(str::to_owned),
        })
    }

    /// The model's name; the server is asked for it once.
    ///
    /// # Errors
    /// The server cannot be asked, or lists none.
    pub fn settle_model(&mut self) -> Result<String, AskError> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let listed = self.send(http::Method::GET, "models", None)?;
        let listed = self.json(&self.text(listed)?)?;
        let first = listed.pointer("/data/0/id").and_then(Value::as_str);
        let first = first.ok_or_else(|| self.odd("it lists no model"))?;
        self.model = Some(first.to_owned());
        Ok(first.to_owned())
    }

    /// Sends the conversation and returns the whole answer at once.
    ///
    /// # Errors
    /// [`AskError::Unreachable`], [`AskError::Refused`], [`AskError::Answer`].
    pub fn complete(&self, request: &Request<'_>) -> Result<Completion, AskError> {
        let answer = self.ask(request, false)?;
        let answer = self.json(&self.text(answer)?)?;
        let text = answer.pointer("/choices/0/message/content");
        let text = text.and_then(Value::as_str);
        let usage = answer.get("usage").cloned().unwrap_or_default();
        let end = answer.pointer("/choices/0/finish_reason");
        Ok(Completion {
            text: text
                .ok_or_else(|| self.odd("an answer without words"))?
                .to_owned(),
            cut: end.and_then(Value::as_str) == Some("length"),
            usage: serde_json::from_value(usage).unwrap_or_default(),
        })
    }

    /// Sends the conversation; the answer's body is still to be read.
    pub(crate) fn ask(&self, request: &Request<'_>, stream: bool) -> Result<ureq::Body, AskError> {
        let mut body = json!({
            "messages": request.messages,
            "max_tokens": request.most_tokens,
            "temperature": 0,
            "stream": stream,
        });
        let more = [
            ("model", self.model.as_ref().map(|model| json!(model))),
            (
                "ignore_eos",
                request.ignore_end.then_some(Value::Bool(true)),
            ),
            (
                "stream_options",
                stream.then(|| json!({"include_usage": true})),
            ),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        self.send(http::Method::POST, "chat/completions", Some(body))
    }

    fn send(
        &self,
        method: http::Method,
        what: &str,
        body: Option<Value>,
    ) -> Result<ureq::Body, AskError> {
        let url = format!("{}/{what}", self.base.as_str().trim_end_matches('/'));
        let mut request = http::Request::builder().method(method).uri(url);
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let answer = match body {
            Some(body) => request
                .header("Content-Type", "application/json")
                .body(body.to_string())
                .map_err(ureq::Error::Http)
                .and_then(|request| self.agent.run(request)),
            None => request
                .body(())
                .map_err(ureq::Error::Http)
                .and_then(|request| self.agent.run(request)),
        };
        let (head, body) = answer.map_err(|error| self.lost(&error))?.into_parts();
        if head.status == http::StatusCode::OK {
            return Ok(body);
        }
        // An error while the error is read would hide the status, which says more.
        let text = self.text(body).unwrap_or_default();
        let parsed = serde_json::from_str::<Value>(&text).ok();
        let message = parsed.as_ref().and_then(|parsed| {
            let of = |path: &str| parsed.pointer(path).and_then(Value::as_str);
            of("/error/message").or_else(|| of("/message"))
        });
        Err(AskError::Refused {
            server: self.server.clone(),
            status: head.status.as_u16(),
            message: self.shown(message.unwrap_or(&text)),
        })
    }

    /// Reads a whole answer, up to [`MOST_ANSWER_BYTES`].
    fn text(&self, mut body: ureq::Body) -> Result<String, AskError> {
        // The server may be any program, so the memory for its answer has a limit.
        let bytes = body.with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        let bytes = bytes.map_err(|error| self.lost(&error))?;
        String::from_utf8(bytes).map_err(|_| self.odd("bytes that are not UTF-8"))
    }

    pub(crate) fn json(&self, text: &str) -> Result<Value, AskError> {
        let parsed = serde_json::from_str(text);
        parsed.map_err(|error| self.odd(&format!("{error} in {}", self.shown(text))))
    }

    pub(crate) fn lost(&self, error: &ureq::Error) -> AskError {
        self.unreachable(&Failure::from_error(error).reason)
    }

    pub(crate) fn unreachable(&self, reason: &str) -> AskError {
        AskError::Unreachable {
            server: self.server.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn odd(&self, reason: &str) -> AskError {
        AskError::Answer {
            server: self.server.clone(),
            reason: reason.to_owned(),
        }
    }

    /// Text of the server, shortened, and without the key, which some servers repeat.
    fn shown(&self, text: &str) -> String {
        match &self.key {
            Some(key) if !key.is_empty() => shown(&text.replace(key.as_str(), "[key]")),
            _ => shown(text),
        }
    }
}
