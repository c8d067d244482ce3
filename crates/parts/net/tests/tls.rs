//! Frames in TLS, with certificates that OpenSSL made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dyno_certificates::Certificates;
use dyno_net::rustls::ClientConfig;
use dyno_net::{
    Address, CallOptions, Caller, Charge, Closed, Connection, Frame, Listener, Outbox,
    ServeOptions, Server, Service,
};

struct Echo;

impl Service for Echo {
    type Session = Arc<Outbox>;

    fn open(&self, connection: &Connection) -> Arc<Outbox> {
        Arc::clone(&connection.outbox)
    }

    fn request(&self, outbox: &mut Arc<Outbox>, frame: Frame, _: Option<Charge>) -> bool {
        outbox.push(frame.head, &[frame.body]).is_ok()
    }

    fn close(&self, _: Arc<Outbox>, _: Closed) {}
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
    let Some(made) = Certificates::make(folder.path(), "frames in TLS") else {
        return;
    };
    let config = dyno_serve::tls::server(&made.server(), &made.server_key()).unwrap();
    let listener = Listener::bind(&"localhost:0".parse().unwrap())
        .unwrap()
        .with_tls(config);
    let Address::Tcp { port, .. } = listener.address().clone() else {
        panic!("TCP was asked for");
    };
    let mut server = Server::start(listener, Arc::new(Echo), ServeOptions::default()).unwrap();
    let trusting = dyno_serve::tls::client(&made.root()).unwrap();
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
