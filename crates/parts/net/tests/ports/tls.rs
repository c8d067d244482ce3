//! TLS over TCP on connections that do not block, and from there to a ring.

use std::sync::Arc;

use dyno_certificates::Certificates;
use dyno_net::{
    Address, Client, ClientOptions, Listener, PortOptions, ReactorOptions, TransportKind,
};

use crate::polled::{ECHO, Polled};

#[test]
fn frames_travel_in_tls_and_the_name_must_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = Certificates::make(folder.path(), "ports in TLS") else {
        return;
    };
    let of_server = dyno_serve::tls::server(&made.server(), &made.server_key()).unwrap();
    let of_client = dyno_serve::tls::client(&made.root()).unwrap();
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap())
        .unwrap()
        .with_tls(of_server);
    let server = Polled::over(listener, ReactorOptions::default());
    let Address::Tcp { port, .. } = server.address else {
        panic!("it listens on TCP");
    };
    let connect = |host: &str, ring, tls| {
        let address = Address::Tcp {
            host: host.to_owned(),
            port,
        };
        let options = ClientOptions {
            port: PortOptions {
                ring,
                tls,
                ..PortOptions::default()
            },
            ..ClientOptions::default()
        };
        Client::connect(&address, &options)
    };
    let tls = || Some(Arc::clone(&of_client));
    for (ring, kind) in [(false, TransportKind::Tls), (true, TransportKind::Ring)] {
        let mut client = connect("localhost", ring, tls()).unwrap();
        assert_eq!(client.transport().kind, kind, "{}", client.transport());
        let mut answer = Vec::new();
        for length in [0, 10, 3_000_000] {
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            client.call(ECHO, 0, &[&sent], &mut answer).unwrap();
            assert!(answer == sent, "{length}");
        }
    }
    assert!(connect("127.0.0.1", false, tls()).is_err());
    let plain = connect("localhost", false, None)
        .and_then(|mut client| client.call(ECHO, 0, &[b"x"], &mut Vec::new()));
    assert!(plain.is_err());
}
