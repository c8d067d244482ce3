//! Sends signed requests to one bucket, and retries those that may succeed later.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use dyno_http::ureq::{self, http};
use dyno_http::{Failure, Settings};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use url::Url;

use crate::access::Access;
use crate::error::ObjectError;
use crate::retry::Retry;

/// How long a signed URL is valid. Each attempt has a new one.
pub(crate) const SIGNED_FOR: Duration = Duration::from_secs(900);

/// The longest answer that is read. Those that matter have a few hundred bytes.
const MOST_ANSWER_BYTES: u64 = 1 << 20;

/// A bucket that objects are written to. All objects of a job share it, and it keeps connections
/// open.
pub struct Store {
    agent: ureq::Agent,
    access: Access,
    retry: Retry,
    pub(crate) bucket: Bucket,
    pub(crate) credentials: Credentials,
}

/// A request, apart from its signature.
pub(crate) struct Call<'a> {
    pub method: http::Method,
    pub url: Url,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<&'a [u8]>,
}

/// An answer of the store, of any status.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub text: String,
    headers: http::HeaderMap,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn is_success(&self) -> bool {
        // An error may come with status 200, after the store had begun to answer.
        (200..300).contains(&self.status) && self.code() == ""
    }

    /// The code of the store's error; empty if there is no error.
    pub fn code(&self) -> &str {
        if self.text.contains("<Error>") {
            element(&self.text, "Code").unwrap_or("Unknown")
        } else {
            ""
        }
    }

    fn is_passing(&self) -> bool {
        let code = self.code();
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(
                code,
                "InternalError"
                    | "SlowDown"
                    | "RequestTimeout"
                    | "ServiceUnavailable"
                    // Another writer was changing the object at this moment.
                    | "ConditionalRequestConflict"
            )
    }
}

impl Store {
    /// The bucket at the endpoint of `access`, or at Amazon's for its region. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ObjectError::Setting`] when no address can be made of endpoint, region and bucket.
    pub fn new(access: Access, bucket: &str, retry: Retry) -> Result<Arc<Self>, ObjectError> {
        let region = access.region.clone();
        let fail = |name, reason: String| ObjectError::Setting { name, reason };
        let (endpoint, style) = match &access.endpoint {
            Some(endpoint) => (endpoint.clone(), UrlStyle::Path),
            None => {
                let text = format!("https://s3.{region}.amazonaws.com");
                let url = Url::parse(&text).map_err(|e| fail("AWS_REGION", e.to_string()))?;
                // The certificate for the hosts of buckets covers one label, so not a name with
                // dots.
                let style = if bucket.contains('.') {
                    UrlStyle::Path
                } else {
                    UrlStyle::VirtualHost
                };
                (url, style)
            }
        };
        let bucket = Bucket::new(endpoint, style, bucket.to_owned(), region)
            .map_err(|e| fail("AWS_ENDPOINT_URL", e.to_string()))?;
        let credentials = match &access.token {
            Some(token) => {
                Credentials::new_with_token(&*access.key, &*access.secret, token.as_str())
            }
            None => Credentials::new(&*access.key, &*access.secret),
        };
        Ok(Arc::new(Self {
            // Redirects are not followed. They mean that the region is wrong, which the answer
            // says, and a signature is valid for one host only.
            agent: dyno_http::agent(&Settings {
                whole: retry.attempt_timeout,
                ..Settings::default()
            }),
            access,
            retry,
            bucket,
            credentials,
        }))
    }

    /// The name of the object in messages: `s3://BUCKET/KEY`.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket.name())
    }

    /// Sends the request that `call` makes, anew for each attempt, until the store answers anything
    /// but a passing error. So the store may get a request several times.
    pub(crate) fn send<'a>(
        &self,
        action: &'static str,
        key: &str,
        call: impl Fn() -> Call<'a>,
    ) -> Result<Reply, ObjectError> {
        let mut attempt = 1;
        loop {
            let last = attempt >= self.retry.attempts;
            match self.attempt(call()) {
                // After the last attempt the answer is returned as it is, because it says more than
                // a count of attempts.
                Ok(reply) if last || !reply.is_passing() => return Ok(reply),
                Err(Failure { lasting, reason }) if last || lasting => {
                    return Err(ObjectError::Unreachable {
                        action,
                        object: self.name(key),
                        attempts: attempt,
                        reason: self.access.redact(&reason),
                    });
                }
                Ok(_) | Err(_) => {}
            }
            // The waits grow, so that a store that asks for less is not asked more often.
            sleep(self.retry.wait(attempt));
            attempt += 1;
        }
    }

    fn attempt(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(call.url.as_str());
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let answer = match call.body {
            Some(body) => request
                .body(body)
                .map_err(ureq::Error::Http)
                .and_then(|request| self.agent.run(request)),
            None => request
                .body(())
                .map_err(ureq::Error::Http)
                .and_then(|request| self.agent.run(request)),
        };
        let (head, mut body) = answer.map_err(|e| Failure::from_error(&e))?.into_parts();
        let text = body.with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        let text = text.map_err(|e| Failure::from_error(&e))?;
        Ok(Reply {
            status: head.status.as_u16(),
            text: String::from_utf8_lossy(&text).into_owned(),
            headers: head.headers,
        })
    }

    /// The error that an unsuccessful `reply` stands for.
    pub(crate) fn refusal(&self, action: &'static str, key: &str, reply: &Reply) -> ObjectError {
        let object = self.name(key);
        let status = reply.status;
        let code = match reply.code() {
            "" => "no code".to_owned(),
            code => self.shown(code),
        };
        let message = self.shown(element(&reply.text, "Message").unwrap_or("no message"));
        match (&*code, status) {
            ("NoSuchBucket", _) => ObjectError::NoBucket { action, object },
            (_, 401 | 403) => ObjectError::Denied {
                action,
                object,
                code,
                message,
            },
            _ => ObjectError::Refused {
                action,
                object,
                status,
                code,
                message,
            },
        }
    }

    /// Text of the store, shortened and without secrets.
    fn shown(&self, text: &str) -> String {
        let short: String = text.chars().filter(|c| !c.is_control()).take(300).collect();
        self.access.redact(&short)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("bucket", &self.bucket.name())
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

/// The text of the first XML element of that name. The answers of a store are flat and small, so
/// they need no parser.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.trim())
}
