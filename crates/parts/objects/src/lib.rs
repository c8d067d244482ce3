//! Writes into an object store that speaks S3.
//!
//! What it is: [`Location`] (`s3://bucket/prefix` or a path), [`Access`] (the AWS_* variables),
//! [`Store`] (a bucket), and [`ObjectSink`], a [`dyno_io::Output`] whose object appears complete or
//! not at all. It blocks, and has threads of its own for parts in flight. What it is not: a reader,
//! a lister, a finder of credentials. It is a crate of its own so that HTTP and TLS stay out of the
//! rest.

mod access;
mod error;
mod lanes;
mod location;
mod part;
mod retry;
mod sink;
mod store;
mod upload;

pub use access::Access;
pub use error::ObjectError;
pub use location::Location;
pub use retry::Retry;
pub use sink::{ObjectSink, Sending};
pub use store::Store;
