//! Writes into an object store that speaks S3.
//!
//! [`Location`] is `s3://BUCKET/PREFIX` or a path, [`Access`] has the AWS_* variables, [`Store`] is
//! a bucket, and [`ObjectSink`] is a [`dyno_io::Output`] whose object appears complete or not at
//! all. It blocks, and uploads parts on threads of its own. It neither reads nor lists objects, and
//! searches for no credentials. It is a crate of its own so that HTTP and TLS stay out of the rest.

mod access;
mod error;
mod location;
mod part;
mod retry;
mod sink;
mod store;
mod upload;
mod workers;

pub use access::Access;
pub use error::ObjectError;
pub use location::Location;
pub use retry::Retry;
pub use sink::{ObjectSink, Sending};
pub use store::Store;
