//! Frames in TLS, with certificates that OpenSSL made.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dyno_net::rustls::ClientConfig;
use dyno_net::{
    Address, CallOptions, Caller, Closed, Connection, Frame, Listener, Outbox, ServeOptions,
    Server, Service,
};

struct Echo;

impl Service for Echo {
    type Session = Arc<Outbox>;

    fn open(&self, connection: &Connection) -> Arc<Outbox> {
        Arc::clone(&connection.outbox)
    }

    fn request(&self, outbox: &mut Arc<Outbox>, frame: Frame) -> bool {
        outbox.push(frame.head, &[frame.body]).is_ok()
    }

    fn close(&self, _: Arc<Outbox>, _: Closed) {}
}

/// A root, and a certificate for `localhost` signed by it.
fn certificates(dir: &Path) -> bool {
    let names = std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n");
    names.is_ok()
        && [
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=root -keyout root.key -out root.pem",
            "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out server.csr",
            "x509 -req -in server.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile names -out cert.pem",
        ]
        .iter()
        .all(|line| {
            let words = line.split_whitespace();
            let output = Command::new("openssl").args(words).current_dir(dir).output();
            output.is_ok_and(|output| output.status.success())
        })
}

fn caller(
    port: u16,
    host: &str,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Caller, dyno_net::NetError> {
    let address = Address::Tcp {
        host: host.to_owned(),
        port,
    };
    let options = CallOptions {
        tls,
        connect_wait: Duration::from_secs(5),
        ..CallOptions::default()
    };
    Caller::connect(&address, options)
}

#[test]
fn frames_pass_in_tls_both_ways_at_once_and_only_to_the_named_host() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    if !certificates(dir) {
        println!("skipped: TLS: there is no openssl to make certificates");
        return;
    }
    let config = dyno_serve::tls::server(&dir.join("cert.pem"), &dir.join("key.pem")).unwrap();
    let listener = Listener::bind(&"localhost:0".parse().unwrap())
        .unwrap()
        .with_tls(config);
    let Address::Tcp { port, .. } = listener.address().clone() else {
        panic!("TCP was asked for");
    };
    let mut server = Server::start(listener, Arc::new(Echo), ServeOptions::default()).unwrap();
    let trusting = dyno_serve::tls::client(&dir.join("root.pem")).unwrap();
    let encrypted = caller(port, "localhost", Some(Arc::clone(&trusting))).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let encrypted = &encrypted;
            scope.spawn(move || {
                for size in [0, 1, 100, 5000, 70_000, 1_000_000] {
                    let sent = Bytes::from(vec![thread as u8; size + thread]);
                    let answer = encrypted.call(1, 0, std::slice::from_ref(&sent)).unwrap();
                    assert_eq!(answer.body, sent);
                }
            });
        }
    });
    let error = caller(port, "127.0.0.1", Some(trusting))
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let plain = caller(port, "localhost", None).unwrap();
    assert!(plain.call(1, 0, &[]).is_err());
    assert!(encrypted.call(1, 0, &[]).is_ok());
    server.stop();
    assert!(encrypted.call(1, 0, &[]).is_err());
}
