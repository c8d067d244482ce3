//! Uploads one part of an object.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dyno_http::ureq::http::Method;
use md5::{Digest as _, Md5};
use rusty_s3::S3Action;
use rusty_s3::actions::UploadPart;

use crate::error::ObjectError;
use crate::store::{Call, Reply, SIGNED_FOR, Store};

/// Bytes of an object, with their position among its parts.
#[derive(Debug)]
pub(crate) struct Part {
    /// Position among the parts, from 1.
    pub number: u16,
    pub bytes: Vec<u8>,
}

/// The digests of a part, ours and the store's.
#[derive(Debug, Clone)]
pub(crate) struct Digest {
    pub md5: [u8; 16],
    /// The ETag that the store returned, without quotes.
    pub etag: String,
}

/// Uploads parts of one object.
#[derive(Debug)]
pub(crate) struct Uploader {
    pub store: Arc<Store>,
    pub key: String,
    pub upload_id: String,
}

impl Uploader {
    pub fn upload(&self, part: &Part) -> Result<Digest, ObjectError> {
        const ACTION: &str = "upload a part of";
        let store = &*self.store;
        let md5: [u8; 16] = Md5::digest(&part.bytes).into();
        // The store compares the digest before it keeps the part. A repeated part replaces the one
        // of its number, so a lost answer does no harm.
        let reply = store.send(ACTION, &self.key, || {
            let action = UploadPart::new(
                &store.bucket,
                Some(&store.credentials),
                &self.key,
                part.number,
                &self.upload_id,
            );
            Call {
                method: Method::PUT,
                url: action.sign(SIGNED_FOR),
                headers: vec![("content-md5", BASE64_STANDARD.encode(md5))],
                body: Some(&part.bytes),
            }
        })?;
        if !reply.is_success() {
            return Err(store.refusal(ACTION, &self.key, &reply));
        }
        let object = format!("part {} of {}", part.number, store.name(&self.key));
        let etag = check_etag(&reply, &hex(&md5), object)?;
        Ok(Digest { md5, etag })
    }

    pub fn closed(&self) -> ObjectError {
        ObjectError::Closed {
            object: self.store.name(&self.key),
        }
    }
}

/// Returns the ETag of an answer. It must be the MD5 of what was sent, unless the store encrypts
/// with a key of its own or computes its tags in another way.
pub(crate) fn check_etag(
    reply: &Reply,
    expected: &str,
    object: String,
) -> Result<String, ObjectError> {
    let etag = reply.header("etag").unwrap_or("").trim_matches('"');
    let foreign = reply
        .header("x-amz-server-side-encryption")
        .is_some_and(|how| how.starts_with("aws:"))
        || reply
            .header("x-amz-server-side-encryption-customer-algorithm")
            .is_some();
    // A tag of another length is not an MD5 and cannot be compared.
    let is_md5 =
        etag.len() == expected.len() && etag.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if etag.is_empty() || (is_md5 && !foreign && etag != expected) {
        return Err(ObjectError::Mismatch {
            object,
            what: "ETag",
            found: format!("{etag:?}"),
            expected: format!("{expected:?}"),
        });
    }
    Ok(etag.to_owned())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
