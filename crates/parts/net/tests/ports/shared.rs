//! One connection for many threads.

use std::time::Duration;

use dyno_net::{ClientOptions, ReactorOptions, SharedClient};

use crate::options;
use crate::polled::{ECHO, NEVER, Polled, until};

#[test]
fn many_threads_share_a_client() {
    for ring in [true, false] {
        let server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let options = ClientOptions {
            window: 7,
            spin: Duration::from_micros(20),
            ..options(ring)
        };
        let client = SharedClient::connect(&server.address, &options).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..5_u32 {
                let client = client.clone();
                scope.spawn(move || {
                    for at in 0..200_u32 {
                        let sent = vec![thread as u8; (at * 131 % 9000) as usize];
                        let other = client.begin(ECHO, 0, &[b"other"]).unwrap();
                        assert_eq!(client.call(ECHO, 0, &[&sent]).unwrap().body, sent);
                        assert_eq!(other.wait().unwrap().body, "other");
                    }
                });
            }
        });
        assert_eq!(client.unanswered(), 0);
    }
}

#[test]
fn everybody_who_waits_is_told_of_the_end() {
    for ring in [true, false] {
        let mut server = Polled::start("127.0.0.1:0", ReactorOptions::default());
        let client = SharedClient::connect(&server.address, &options(ring)).unwrap();
        client.call(ECHO, 0, &[]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(client.call(NEVER, 0, &[]).is_err()));
            }
            until("requests under way", || client.unanswered() == 4);
            drop(server.stop());
        });
        assert!(client.ended().is_some());
        assert!(client.call(ECHO, 0, &[]).is_err());
    }
}
