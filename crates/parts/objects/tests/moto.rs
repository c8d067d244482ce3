//! Against moto, an object store that we did not write.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

mod server;

use std::sync::Arc;
use std::time::Duration;

use dyno_io::{Durability, Existing, IoError, Output, Sink};
use dyno_objects::{Access, ObjectError, ObjectSink, Retry, Sending, Store};
use server::{Server, interpreter};

const SECRET: &str = "a-secret-that-must-not-be-shown";

struct Moto(Server);

impl Moto {
    /// With a bucket; `None` where moto is not installed.
    fn start() -> Option<Self> {
        let moto = Self(Server::start(&interpreter("object store")?));
        assert_eq!(moto.ask("PUT", "lake"), "");
        Some(moto)
    }

    /// A request by another client than ours.
    fn ask(&self, method: &str, what: &str) -> String {
        let address = format!("{}/{what}", self.0.address);
        // moto wants to see a signature, and takes any.
        let signature = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, \
                         SignedHeaders=host, Signature=x";
        let request = dyno_http::ureq::http::Request::builder()
            .method(method)
            .uri(address)
            .header("authorization", signature);
        let agent = dyno_http::ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .new_agent();
        let mut reply = match method {
            "PUT" => agent.run(request.body(&b""[..]).unwrap()).unwrap(),
            _ => agent.run(request.body(()).unwrap()).unwrap(),
        };
        let bytes = reply.body_mut().with_config().limit(1 << 30).read_to_vec();
        String::from_utf8_lossy(&bytes.unwrap()).into_owned()
    }

    fn store(&self, bucket: &str) -> Arc<Store> {
        let access = Access::from_settings(|name| match name {
            "AWS_ENDPOINT_URL" => Some(self.0.address.clone()),
            "AWS_ACCESS_KEY_ID" => Some("a-key".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
            _ => None,
        });
        let retry = Retry {
            attempts: 3,
            first_wait: Duration::from_millis(5),
            ..Retry::default()
        };
        Store::new(access.unwrap(), bucket, retry).unwrap()
    }

    fn uploads(&self) -> usize {
        self.ask("GET", "lake?uploads")
            .matches("<UploadId>")
            .count()
    }
}

fn data(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| b'a' + (i / 1000 % 7 + i % 19) as u8)
        .collect()
}

fn remote(error: &IoError) -> &ObjectError {
    match error {
        IoError::Remote(inner) => inner.downcast_ref().unwrap(),
        other => panic!("{other}"),
    }
}

fn assert_discreet(error: &IoError) {
    let text = format!("{error} {error:?}");
    assert!(
        !text.contains(SECRET) && !text.contains("Signature="),
        "{text}"
    );
}

#[test]
fn objects_of_all_lengths_come_back_and_nothing_stays_behind() {
    let Some(moto) = Moto::start() else { return };
    let store = moto.store("lake");
    for len in [0, 1, 8 << 20, (8 << 20) + 1, (40 << 20) + 12_345] {
        let key = format!("tpch/a b+{len}.parquet");
        let mut sink = ObjectSink::create(&store, &key, &Sending::default()).unwrap();
        let data = data(len);
        for part in data.chunks(3_000_001) {
            sink.write(part).unwrap();
        }
        assert_eq!(moto.ask("HEAD", "lake/tpch"), "");
        assert_eq!(Box::new(sink).publish().unwrap(), len as u64);
        let found = moto.ask("GET", &format!("lake/tpch/a%20b%2B{len}.parquet"));
        assert!(found.as_bytes() == data, "{len}: {} bytes", found.len());
    }
    assert_eq!(moto.uploads(), 0);
}

#[test]
fn an_existing_object_is_refused_unless_it_may_be_replaced() {
    let Some(moto) = Moto::start() else { return };
    let store = moto.store("lake");
    let write = |bytes: &[u8], existing| -> Result<u64, IoError> {
        let sending = Sending {
            existing,
            ..Sending::default()
        };
        let sink = ObjectSink::create(&store, "a", &sending);
        let mut sink = sink.map_err(|e| IoError::Remote(Box::new(e)))?;
        sink.write(bytes)?;
        sink.finish(Durability::Stable)
    };
    write(b"old", Existing::Refuse).unwrap();
    let error = write(b"new", Existing::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        "s3://lake/a exists, and may not be replaced"
    );
    assert_eq!(moto.ask("GET", "lake/a"), "old");
    write(b"new", Existing::Replace).unwrap();
    assert_eq!(moto.ask("GET", "lake/a"), "new");
}

/// Two writers that both found no object: the second to end is told.
#[test]
fn of_two_writers_at_once_one_is_refused() {
    let Some(moto) = Moto::start() else { return };
    let store = moto.store("lake");
    for len in [10, 20 << 20] {
        let key = format!("race-{len}");
        let mut one = ObjectSink::create(&store, &key, &Sending::default()).unwrap();
        let mut two = ObjectSink::create(&store, &key, &Sending::default()).unwrap();
        one.write(&vec![b'1'; len]).unwrap();
        two.write(&vec![b'2'; len]).unwrap();
        one.finish(Durability::Stable).unwrap();
        let error = two.finish(Durability::Stable).unwrap_err();
        assert!(
            matches!(remote(&error), ObjectError::Exists { .. }),
            "{error}"
        );
        assert!(moto.ask("GET", &format!("lake/{key}")).starts_with("11"));
    }
    assert_eq!(moto.uploads(), 0);
}

#[test]
fn what_is_dropped_is_aborted() {
    let Some(moto) = Moto::start() else { return };
    let mut sink = ObjectSink::create(&moto.store("lake"), "a", &Sending::default()).unwrap();
    sink.write(&data(30 << 20)).unwrap();
    assert_eq!(moto.uploads(), 1);
    drop(sink);
    assert_eq!(moto.uploads(), 0);
    assert!(moto.ask("GET", "lake/a").contains("NoSuchKey"));
}

#[test]
fn a_missing_bucket_is_named() {
    let Some(moto) = Moto::start() else { return };
    for len in [1, 20 << 20] {
        let store = moto.store("nowhere");
        let mut sink = ObjectSink::create(&store, "a", &Sending::default()).unwrap();
        let done = sink
            .write(&data(len))
            .and_then(|()| sink.finish(Durability::Stable));
        let error = done.unwrap_err();
        assert!(
            matches!(remote(&error), ObjectError::NoBucket { .. }),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.ends_with("s3://nowhere/a: there is no such bucket"),
            "{text}"
        );
        assert_discreet(&error);
    }
}

#[test]
fn a_server_killed_in_mid_upload_is_named() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let mut sink = ObjectSink::create(&moto.store("lake"), "a", &Sending::default()).unwrap();
    sink.write(&data(20 << 20)).unwrap();
    moto.0.child.kill().unwrap();
    moto.0.child.wait().unwrap();
    let more = data(9 << 20);
    let failed = (0..20).try_for_each(|_| sink.write(&more));
    let error = failed
        .and_then(|()| sink.finish(Durability::Stable).map(drop))
        .unwrap_err();
    // The upload could not be aborted either, and that is said.
    let ObjectError::Orphan { cause, .. } = remote(&error) else {
        panic!("{error}");
    };
    assert!(
        matches!(**cause, ObjectError::Unreachable { attempts: 3, .. }),
        "{error}"
    );
    assert_discreet(&error);
    let error = sink.write(b"more").unwrap_err();
    assert!(
        matches!(remote(&error), ObjectError::Closed { .. }),
        "{error}"
    );
}
