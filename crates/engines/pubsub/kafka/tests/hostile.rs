//! Clients that send anything at all: their connections end, and others are served all the same.

#[path = "clients/served.rs"]
#[allow(dead_code, reason = "this program uses its part of it")]
mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use served::Served;

/// Far longer than anything here takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// ApiVersions in version 0, without a client id.
const HELLO: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];

fn connect(served: &Served) -> TcpStream {
    let socket = TcpStream::connect(served.kafka.address()).expect("a listener");
    socket.set_read_timeout(Some(SOON)).expect("a timeout");
    socket
}

/// Whether a connection is answered as a good one is.
fn is_served(socket: &mut TcpStream) -> bool {
    socket.write_all(HELLO).is_ok() && whole_answer(socket).is_some_and(|id| id == 7)
}

/// Reads a response to its end; the number of its request.
fn whole_answer(socket: &mut TcpStream) -> Option<u32> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).ok()?;
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer).ok()?;
    Some(u32::from_be_bytes(*answer.first_chunk()?))
}

/// Whether the server ends the connection.
fn is_ended(socket: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match socket.read_to_end(&mut rest) {
        Ok(_) => true,
        // A connection that is closed with bytes unread is reset.
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn requests_that_are_none_end_their_own_connection() {
    let Some(served) = Served::start("hostile clients of Kafka's protocol", None) else {
        return;
    };
    let mut good = connect(&served);
    assert!(is_served(&mut good));
    let frame = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let metadata = |topics: u32| {
        let mut bytes = vec![0, 3, 0, 4, 0, 0, 0, 1, 0xff, 0xff];
        bytes.extend(topics.to_be_bytes());
        bytes
    };
    for sent in [
        // A length below nothing, one of two gigabytes, and one that is too short for a header.
        vec![0xff; 4 + 16],
        [&[0x7f, 0xff, 0xff, 0xff], &[0; 16][..]].concat(),
        frame(&[0, 18]),
        // An API that is not there, and one in a version that is not offered.
        frame(&[0, 99, 0, 0, 0, 0, 0, 1, 0xff, 0xff]),
        frame(&[0, 1, 0, 99, 0, 0, 0, 1, 0xff, 0xff]),
        // An array of two billion topics in a frame of fourteen bytes.
        frame(&metadata(0x7fff_ffff)),
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n".to_vec(),
    ] {
        let mut socket = connect(&served);
        socket.write_all(&sent).expect("written");
        assert!(is_ended(&mut socket), "{sent:02x?}");
    }
    assert!(is_served(&mut good));
    assert!(is_served(&mut connect(&served)));
}

#[test]
fn a_client_without_the_token_gets_little_and_not_for_long() {
    let token = Some("a-secret-of-this-test");
    let Some(served) = Served::start("clients without the token of Kafka's server", token) else {
        return;
    };
    // It may ask for the versions, and for nothing else.
    let mut asking = connect(&served);
    assert!(is_served(&mut asking));
    let metadata = [0, 0, 0, 14, 0, 3, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0];
    asking.write_all(&metadata).expect("written");
    assert!(is_ended(&mut asking));
    // A long request is refused by its length, before it is read.
    let mut long = connect(&served);
    long.write_all(&[0, 0x0f, 0, 0, 0, 18]).expect("written");
    assert!(is_ended(&mut long));
    // A silent client is waited for, but not for ever.
    let begun = Instant::now();
    let mut silent = connect(&served);
    assert!(is_ended(&mut silent));
    assert!(begun.elapsed() < SOON);
    let handshake = [
        0, 0, 0, 17, 0, 17, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 5, b'P', b'L', b'A', b'I', b'N',
    ];
    let mut wrong = connect(&served);
    wrong.write_all(&handshake).expect("written");
    let mut answer = [0; 21];
    wrong.read_exact(&mut answer).expect("an answer");
    let shown = b"\0any\0another-secret-of-this";
    let mut request = vec![
        0,
        36,
        0,
        0,
        0,
        0,
        0,
        2,
        0xff,
        0xff,
        0,
        0,
        0,
        shown.len() as u8,
    ];
    request.extend(shown);
    let framed = [&(request.len() as u32).to_be_bytes(), &request[..]].concat();
    wrong.write_all(&framed).expect("written");
    let mut answer = [0; 10];
    wrong.read_exact(&mut answer).expect("an answer");
    assert_eq!(
        i16::from_be_bytes([answer[8], answer[9]]),
        58,
        "the password is refused"
    );
    wrong.write_all(&metadata).expect("written");
    assert!(is_ended(&mut wrong));
}

#[test]
fn connections_beyond_the_limit_are_closed_and_those_within_it_are_not() {
    let Some(served) = Served::start("many clients of Kafka's protocol", None) else {
        return;
    };
    let mut open: Vec<TcpStream> = (0..100).map(|_| connect(&served)).collect();
    assert!(open.iter_mut().all(is_served));
    assert!(is_ended(&mut connect(&served)));
    open.truncate(50);
    served::until(|| is_served(&mut connect(&served)));
    assert!(open.iter_mut().all(is_served));
}

/// A client that is told of another leader looks for it for ever, as one does that knew the topic
/// with more partitions.
#[test]
fn a_partition_that_is_not_there_has_no_other_leader() {
    let Some(served) = Served::start("a partition that is not there", None) else {
        return;
    };
    served.topic("two", 2);
    let unknown_topic_or_partition = 3;
    let code = |request: &[u8], answered: usize| -> i16 {
        let mut socket = connect(&served);
        let length = (request.len() as u32).to_be_bytes();
        socket
            .write_all(&[&length[..], request].concat())
            .expect("written");
        let mut answer = vec![0; answered];
        socket.read_exact(&mut answer).expect("an answer");
        let code = answer.last_chunk().expect("two bytes");
        i16::from_be_bytes(*code)
    };
    // Each request is about one topic and one partition of it, whose number follows.
    let head = |key: u8, version: u8| vec![0, key, 0, version, 0, 0, 0, 1, 0xff, 0xff];
    let of_topic = |request: &mut Vec<u8>, partition: i32| {
        request.extend([0, 0, 0, 1, 0, 3]);
        request.extend(b"two");
        request.extend(1_i32.to_be_bytes());
        request.extend(partition.to_be_bytes());
    };
    let fetched = |partition: i32| -> i16 {
        // Fetch in version 4: no wait, from the beginning of the partition.
        let mut bytes = head(1, 4);
        bytes.extend((-1_i32).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(1_i32.to_be_bytes());
        bytes.extend((1_i32 << 20).to_be_bytes());
        bytes.push(0);
        of_topic(&mut bytes, partition);
        bytes.extend(0_i64.to_be_bytes());
        bytes.extend((1_i32 << 20).to_be_bytes());
        code(&bytes, 4 + 4 + 4 + 4 + 5 + 4 + 4 + 2)
    };
    let listed = |partition: i32| -> i16 {
        // ListOffsets in version 1: the first record since 1970.
        let mut bytes = head(2, 1);
        bytes.extend((-1_i32).to_be_bytes());
        of_topic(&mut bytes, partition);
        bytes.extend(0_i64.to_be_bytes());
        code(&bytes, 4 + 4 + 4 + 5 + 4 + 4 + 2)
    };
    let deleted = |partition: i32| -> i16 {
        // DeleteRecords in version 0: nothing, within a second.
        let mut bytes = head(21, 0);
        of_topic(&mut bytes, partition);
        bytes.extend(0_i64.to_be_bytes());
        bytes.extend(1_000_i32.to_be_bytes());
        code(&bytes, 4 + 4 + 4 + 4 + 5 + 4 + 4 + 8 + 2)
    };
    let asked = |partition| [fetched(partition), listed(partition), deleted(partition)];
    assert_eq!(asked(1), [0; 3]);
    for partition in [2, 7, -1] {
        assert_eq!(
            asked(partition),
            [unknown_topic_or_partition; 3],
            "{partition}"
        );
    }
}
