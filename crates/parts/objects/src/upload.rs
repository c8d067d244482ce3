//! The requests that write an object.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dyno_http::ureq::http::Method;
use dyno_io::Existing;
use md5::{Digest as _, Md5};
use rusty_s3::S3Action;
use rusty_s3::actions::{
    AbortMultipartUpload, CompleteMultipartUpload, CreateMultipartUpload, HeadObject, PutObject,
};

use crate::error::ObjectError;
use crate::part::{Digest, check_etag, hex};
use crate::store::{Call, Reply, SIGNED_FOR, Store, element};

/// A key in a bucket.
#[derive(Debug)]
pub(crate) struct Object {
    pub store: Arc<Store>,
    pub key: String,
    pub existing: Existing,
}

impl Object {
    pub fn name(&self) -> String {
        self.store.name(&self.key)
    }

    fn refusal(&self, action: &'static str, reply: &Reply) -> ObjectError {
        if reply.status == 412 {
            let object = self.name();
            return ObjectError::Exists { object };
        }
        self.store.refusal(action, &self.key, reply)
    }

    fn head(&self) -> Result<Reply, ObjectError> {
        let store = &*self.store;
        store.send("look at", &self.key, || Call {
            method: Method::HEAD,
            url: HeadObject::new(&store.bucket, Some(&store.credentials), &self.key)
                .sign(SIGNED_FOR),
            headers: Vec::new(),
            body: None,
        })
    }

    /// Fails if the object is known to exist, so that a long upload ends before it begins. Any
    /// other answer passes: credentials that may write but not look get 403, and the condition of
    /// the write itself decides later.
    pub fn refuse_existing(&self) -> Result<(), ObjectError> {
        let object = self.name();
        match self.head()?.status {
            200..300 => Err(ObjectError::Exists { object }),
            _ => Ok(()),
        }
    }

    /// Fails unless the store says that there is no such object.
    fn require_absent(&self) -> Result<(), ObjectError> {
        let object = self.name();
        let reply = self.head()?;
        match reply.status {
            404 => Ok(()),
            200..300 => Err(ObjectError::Exists { object }),
            _ => Err(self.refusal("look at", &reply)),
        }
    }

    /// Writes the whole object in one request, and compares what the store then has with `bytes`.
    pub fn write_whole(&self, bytes: &[u8]) -> Result<(), ObjectError> {
        const ACTION: &str = "write";
        let store = &*self.store;
        let md5: [u8; 16] = Md5::digest(bytes).into();
        let reply = self.conditionally(ACTION, |headers| {
            let mut headers = headers.to_vec();
            headers.push(("content-md5", BASE64_STANDARD.encode(md5)));
            Call {
                method: Method::PUT,
                url: PutObject::new(&store.bucket, Some(&store.credentials), &self.key)
                    .sign(SIGNED_FOR),
                headers,
                body: Some(bytes),
            }
        });
        let (etag, len_bytes) = (hex(&md5), bytes.len() as u64);
        match reply {
            Ok(reply) if reply.is_success() => {
                check_etag(&reply, &etag, self.name())?;
                self.check(&etag, len_bytes)
            }
            Ok(reply) => self.unless_done(self.refusal(ACTION, &reply), &etag, len_bytes),
            Err(error) => self.unless_done(error, &etag, len_bytes),
        }
    }

    /// Sends the request with the condition that no such object exists, if existing objects are to
    /// be refused. A store that does not implement conditions is asked for the object beforehand.
    /// Then another writer may still come in between, which such a store cannot prevent.
    fn conditionally<'a>(
        &self,
        action: &'static str,
        call: impl Fn(&[(&'static str, String)]) -> Call<'a>,
    ) -> Result<Reply, ObjectError> {
        let condition = match self.existing {
            Existing::Refuse => vec![("if-none-match", "*".to_owned())],
            Existing::Replace => Vec::new(),
        };
        let reply = self.store.send(action, &self.key, || call(&condition))?;
        let unknown = reply.status == 501 || reply.code() == "NotImplemented";
        if condition.is_empty() || !unknown {
            return Ok(reply);
        }
        // From here on nothing but this look protects an object that is there, so an answer other
        // than 404 must not count as its absence.
        self.require_absent()?;
        self.store.send(action, &self.key, || call(&[]))
    }

    /// Begins an upload in parts, and returns its identifier.
    pub fn begin(&self) -> Result<String, ObjectError> {
        const ACTION: &str = "begin";
        let store = &*self.store;
        // If the answer to an attempt is lost, its upload cannot be aborted, because its identifier
        // is not known. It has no parts and costs nothing.
        let reply = store.send(ACTION, &self.key, || Call {
            method: Method::POST,
            url: CreateMultipartUpload::new(&store.bucket, Some(&store.credentials), &self.key)
                .sign(SIGNED_FOR),
            headers: Vec::new(),
            body: Some(&[]),
        })?;
        match element(&reply.text, "UploadId") {
            Some(id) if reply.is_success() && !id.is_empty() => Ok(id.to_owned()),
            _ => Err(self.refusal(ACTION, &reply)),
        }
    }

    /// Makes the parts one object, and compares what the store then has with them.
    pub fn complete(
        &self,
        upload_id: &str,
        digests: &[Digest],
        len_bytes: u64,
    ) -> Result<(), ObjectError> {
        const ACTION: &str = "complete";
        let store = &*self.store;
        let action = || {
            let etags = digests.iter().map(|digest| digest.etag.as_str());
            let credentials = Some(&store.credentials);
            CompleteMultipartUpload::new(&store.bucket, credentials, &self.key, upload_id, etags)
        };
        let body = action().body();
        let reply = self.conditionally(ACTION, |headers| Call {
            method: Method::POST,
            url: action().sign(SIGNED_FOR),
            headers: headers.to_vec(),
            body: Some(body.as_bytes()),
        });
        // The tag of an object in parts is the MD5 of its parts' MD5s, and their number.
        let mut all = Md5::new();
        digests.iter().for_each(|digest| all.update(digest.md5));
        let etag = format!("{}-{}", hex(&all.finalize()), digests.len());
        match reply {
            Ok(reply) if reply.is_success() => self.check(&etag, len_bytes),
            Ok(reply) => self.unless_done(self.refusal(ACTION, &reply), &etag, len_bytes),
            Err(error) => self.unless_done(error, &etag, len_bytes),
        }
    }

    /// Returns `error` unless the store has exactly what was sent. An earlier attempt may have been
    /// carried out and its answer lost. Then the object is there, and the repeated request fails
    /// because of it.
    fn unless_done(
        &self,
        error: ObjectError,
        etag: &str,
        len_bytes: u64,
    ) -> Result<(), ObjectError> {
        let Ok(reply) = self.head() else {
            return Err(error);
        };
        // Here only the exact tag counts: an object of the same length may be of another writer.
        let same = reply.header("etag").unwrap_or("").trim_matches('"') == etag
            && reply.header("content-length") == Some(&*len_bytes.to_string());
        if reply.is_success() && same {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Fails unless the store has what was sent. Credentials that may write but not look cannot
    /// find out; the store has confirmed the write to them, and that has to do.
    fn check(&self, etag: &str, len_bytes: u64) -> Result<(), ObjectError> {
        const ACTION: &str = "look again at";
        let reply = self.head()?;
        if reply.status == 403 {
            return Ok(());
        }
        if !reply.is_success() {
            return Err(self.refusal(ACTION, &reply));
        }
        let found = reply.header("content-length").unwrap_or("unknown");
        if found != len_bytes.to_string() {
            return Err(ObjectError::Mismatch {
                object: self.name(),
                what: "length",
                found: found.to_owned(),
                expected: len_bytes.to_string(),
            });
        }
        check_etag(&reply, etag, self.name()).map(drop)
    }

    /// Aborts an upload, so that the store removes its parts. An upload that is gone counts as
    /// aborted.
    pub fn abort(&self, upload_id: &str) -> Result<(), ObjectError> {
        const ACTION: &str = "abort";
        let store = &*self.store;
        let reply = store.send(ACTION, &self.key, || Call {
            method: Method::DELETE,
            url: AbortMultipartUpload::new(
                &store.bucket,
                Some(&store.credentials),
                &self.key,
                upload_id,
            )
            .sign(SIGNED_FOR),
            headers: Vec::new(),
            body: None,
        })?;
        if reply.is_success() || reply.status == 404 {
            return Ok(());
        }
        Err(self.refusal(ACTION, &reply))
    }
}
