//! Real processes killed in the middle of a frame, over a ring and over TCP.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dyno_net::{
    Address, Client, Closed, FrameRef, Handler, Head, Listener, NetError, Outbound, Port, PortId,
    Reactor, ReactorOptions,
};

use crate::options;
use crate::polled::{ECHO, NEVER, Polled, until};

const PLACE: &str = "DYNO_NET_CHILD";

/// Starts this test program again as the other process, which prints a line when it is where it
/// should be.
fn child(test: &str, place: &str) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("its own path"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let output = child.stdout.take().expect("it is piped");
    let line = BufReader::new(output)
        .lines()
        .map(|line| line.expect("text"))
        .find_map(|line| Some(line.split_once("ready ")?.1.to_owned()));
    (child, line.expect("the other process gets there"))
}

fn kill(mut child: Child) {
    child.kill().expect("it lives");
    child.wait().expect("it has ended");
}

fn place() -> Option<(bool, Address)> {
    let text = std::env::var(PLACE).ok()?;
    let (transport, address) = text.split_once(' ').expect("a transport and an address");
    Some((transport == "ring", address.parse().expect("an address")))
}

#[test]
#[ignore = "the other process of another test"]
fn a_client_in_the_middle_of_a_frame() {
    let Some((ring, address)) = place() else {
        println!("skipped: a client to be killed: no test has started it");
        return;
    };
    let mut port = Port::connect(&address, &options(ring).port).expect("a server");
    let head = Head {
        verb: ECHO,
        flags: 0,
        request: 1,
    };
    port.send(head, &[b"whole"]).expect("room");
    // Longer than any ring and any socket's buffer.
    port.send(head, &[&vec![1; 32 << 20]]).expect("room");
    while !port.flush().expect("a server") {
        if port.waiting_bytes() < 32 << 20 {
            break;
        }
    }
    println!("ready now");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Remembers how each connection ended, and how many frames came.
#[derive(Default)]
struct Ends {
    frames: usize,
    ends: Vec<Closed>,
}

impl Handler for Ends {
    fn frame(&mut self, _: PortId, _: FrameRef<'_>, _: &mut Outbound) -> ControlFlow<()> {
        self.frames += 1;
        ControlFlow::Continue(())
    }

    fn close(&mut self, _: PortId, why: Closed) {
        self.ends.push(why);
    }
}

#[test]
fn a_client_killed_in_the_middle_of_a_frame_ends_its_own_connection() {
    for transport in ["ring", "tcp"] {
        let mut reactor = Reactor::new(ReactorOptions::default()).unwrap();
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let address = reactor.listen(listener).unwrap();
        let mut ends = Ends::default();
        let starting = std::thread::spawn(move || {
            let place = format!("{transport} {address}");
            child("dead_peer::a_client_in_the_middle_of_a_frame", &place).0
        });
        while !starting.is_finished() {
            // It reads what comes until the long frame has begun, and not to its end.
            match ends.frames {
                0 => drop(reactor.poll(&mut ends).unwrap()),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        kill(starting.join().unwrap());
        until("the end of the connection", || {
            reactor.poll(&mut ends).unwrap();
            let wait = Duration::from_millis(5);
            reactor.sleep(wait).unwrap();
            !ends.ends.is_empty()
        });
        assert_eq!(ends.frames, 1, "{transport}");
        // A reset may overtake the bytes on TCP; on a ring all that was shown is there.
        let torn = matches!(ends.ends[0], Closed::Frame(_));
        assert!(torn || (transport == "tcp" && matches!(ends.ends[0], Closed::Io(_))));
        assert_eq!(reactor.connections(), (0, 0), "{transport}");
    }
}

#[test]
#[ignore = "the other process of another test"]
fn a_server_to_be_killed() {
    let Some((_, address)) = place() else {
        println!("skipped: a server to be killed: no test has started it");
        return;
    };
    let server = Polled::start(&address.to_string(), ReactorOptions::default());
    println!("ready {}", server.address);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_server_killed_under_its_clients_is_connected_to_again() {
    let (server, address) = child("dead_peer::a_server_to_be_killed", "any 127.0.0.1:0");
    let address: Address = address.parse().unwrap();
    let client = |ring| Client::connect(&address, &options(ring)).unwrap();
    let mut clients = [client(true), client(false)];
    let mut answer = Vec::new();
    for client in &mut clients {
        client.call(ECHO, 0, &[b"a"], &mut answer).unwrap();
        client.send(NEVER, 0, &[], 1).unwrap();
        client.flush().unwrap();
    }
    kill(server);
    for client in &mut clients {
        let mut failed = 0;
        let end = loop {
            match client.wait(Duration::from_secs(20), |answer| {
                assert!(answer.result.is_err());
                failed += 1;
            }) {
                Ok(count) => assert!(count > 0, "the end must be noticed"),
                Err(end) => break end,
            }
        };
        assert_eq!(failed, 1);
        let known = matches!(end, NetError::Closed { .. } | NetError::Io { .. });
        assert!(known, "{end}");
    }
    let (server, _) = child(
        "dead_peer::a_server_to_be_killed",
        &format!("any {address}"),
    );
    for ring in [true, false] {
        client(ring).call(ECHO, 0, &[b"b"], &mut answer).unwrap();
        assert_eq!(answer, b"b");
    }
    kill(server);
}
