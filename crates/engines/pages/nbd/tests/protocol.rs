//! Conversations byte by byte.

mod any_bytes;
mod script;

use std::sync::Arc;

use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_nbd::Ended;
use proptest::prelude::*;
use script::{
    FLAGS, GO, LIST, START_TLS, STRUCTURED, disk, exports, go, option, request, run, run_measured,
};

const READ: u16 = 0;
const WRITE: u16 = 1;
const LEAVE: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const ZEROES: u16 = 6;

/// Option replies as (option, type, data), from behind the greeting.
fn option_replies(mut said: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    assert_eq!(said[..18], *b"NBDMAGICIHAVEOPT\0\x03");
    said = &said[18..];
    let mut replies = Vec::new();
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four"));
    while said.len() >= 20 && said[..8] == 0x0003_e889_0455_65a9u64.to_be_bytes() {
        let bytes = word(&said[16..20]) as usize;
        replies.push((
            word(&said[8..12]),
            word(&said[12..16]),
            said[20..20 + bytes].to_vec(),
        ));
        said = &said[20 + bytes..];
    }
    assert!(said.is_empty(), "more than replies: {said:?}");
    replies
}

/// What the server says to requests behind a handshake.
fn replies(name: &str, structured: bool, requests: &[Vec<u8>]) -> (Ended, Vec<u8>) {
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    let mut client = FLAGS.to_vec();
    if structured {
        client.extend(option(STRUCTURED, &[]));
    }
    client.extend(go(name));
    let (_, handshake) = run(&exports, &client, false);
    client.extend(requests.concat());
    let (ended, said) = run(&exports, &client, false);
    (ended.expect("no failure"), said[handshake.len()..].to_vec())
}

fn simple(error: u32) -> Vec<u8> {
    let mut bytes = 0x6744_6698u32.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(*b"a cookie");
    bytes
}

fn chunk(last: bool, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33efu32.to_be_bytes().to_vec();
    bytes.extend([0, u8::from(last)]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(*b"a cookie");
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn write(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut all = request(WRITE, 0, offset, bytes.len() as u32);
    all.extend(bytes);
    all
}

#[test]
fn exports_are_listed_and_described() {
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    let client = [&FLAGS[..], &option(LIST, &[]), &go("nowhere"), &go("fixed")].concat();
    let (_, said) = run(&exports, &client, false);
    let found = option_replies(&said);
    let kinds: Vec<u32> = found.iter().map(|reply| reply.1).collect();
    assert_eq!(kinds, [2, 2, 1, 0x8000_0006, 3, 3, 3, 3, 1]);
    assert_eq!(found[0].2, b"\0\0\0\x05pages200 pages");
    let mut export = vec![0, 0];
    export.extend((200 * 4096u64).to_be_bytes());
    // Read-only, flush, FUA, trim, write zeroes, many connections, fast zeroes.
    export.extend([0x09, 0x6f]);
    assert_eq!(found[4].2, export);
    assert_eq!(found[7].2, [0, 3, 0, 0, 0, 1, 0, 0, 16, 0, 2, 0, 0, 0]);
}

#[test]
fn nothing_goes_before_tls_where_it_is_wanted() {
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    let early = [
        &FLAGS[..],
        &option(STRUCTURED, &[]),
        &go(""),
        &option(LIST, &[]),
    ]
    .concat();
    let (_, said) = run(&exports, &early, true);
    let kinds: Vec<u32> = option_replies(&said).iter().map(|reply| reply.1).collect();
    assert_eq!(kinds, [0x8000_0005; 3]);
    let old_way = [&FLAGS[..], &option(1, b"pages")].concat();
    let (ended, said) = run(&exports, &old_way, true);
    assert_eq!(ended.expect("an end"), Ended::NoExport);
    assert_eq!(said.len(), 18);
    let client = [&FLAGS[..], &option(START_TLS, &[]), &option(LIST, &[])].concat();
    let (_, said) = run(&exports, &client, true);
    assert_eq!(option_replies(&said).last().map(|reply| reply.1), Some(1));
    let (_, said) = run(&exports, &client, false);
    assert_eq!(option_replies(&said)[0].1, 0x8000_0002);
}

#[test]
fn options_that_make_no_sense_are_refused_and_the_next_is_heard() {
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    let long = [&4097u32.to_be_bytes()[..], &[b'x'; 4097], &[0, 0]].concat();
    let client = [
        &FLAGS[..],
        &option(GO, &[0, 0, 0]),
        &option(GO, b"\xff\xff\xff\xff\0\0"),
        &option(GO, b"\0\0\0\0\0\x02\0\0"),
        &option(GO, &long),
        &option(LIST, b"x"),
        &option(99, b"abc"),
        &option(10, b"\0\0\0\0\0\0\0\0"),
        &option(2, &[]),
    ]
    .concat();
    let (ended, said) = run(&exports, &client, false);
    let kinds: Vec<u32> = option_replies(&said).iter().map(|reply| reply.1).collect();
    let error = |number| (1u32 << 31) + number;
    let wanted = [3, 3, 3, 9, 3, 1, 1].map(error);
    assert_eq!(kinds, [&wanted[..], &[1]].concat());
    assert_eq!(ended.expect("an end"), Ended::Left);
}

#[test]
fn the_old_way_pads_unless_asked_not_to() {
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    for (flags, bytes) in [([0, 0, 0, 1], 134), ([0, 0, 0, 3], 10)] {
        let (_, said) = run(&exports, &[&flags[..], &option(1, b"")].concat(), false);
        assert_eq!(said.len(), 18 + bytes);
    }
    let (ended, _) = run(&exports, &[0, 0, 1, 3], false);
    assert!(matches!(ended, Ok(Ended::Protocol(_))));
}

#[test]
fn bytes_written_anywhere_come_back() {
    let bytes: Vec<u8> = (0..10_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    let (ended, said) = replies(
        "pages",
        false,
        &[
            write(4090, &bytes),
            request(FLUSH, 0, 0, 0),
            request(READ, 0, 4090, 10_000),
            request(TRIM, 0, 4096, 4096),
            request(ZEROES, 2 | 1, 8200, 3),
            request(READ, 0, 4090, 5000),
            request(LEAVE, 0, 0, 0),
        ],
    );
    let mut after = bytes.clone();
    after[6..4102].fill(0);
    after[4110..4113].fill(0);
    after.truncate(5000);
    let ok = simple(0);
    let wanted = [&ok, &ok, &ok, &bytes, &ok, &ok, &ok, &after].map(Vec::as_slice);
    assert!(said == wanted.concat());
    assert_eq!(ended, Ended::Left);
}

#[test]
fn what_cannot_be_has_its_number_and_the_next_request_is_served() {
    let end = 200 * PAGE_BYTES as u64;
    let all = [
        (request(READ, 0, end, 1), 22),
        (request(READ, 0, u64::MAX, 2), 22),
        (request(READ, 0, 0, u32::MAX), 22),
        (request(READ, 4, 0, 1), 22),
        (request(READ, 64, 0, 1), 22),
        (write(end - 3, b"four"), 28),
        (write(u64::MAX - 1, b"four"), 28),
        (request(TRIM, 0, end, 1), 22),
        (request(TRIM, 2, 0, 1), 22),
        (request(ZEROES, 0, 1, u32::MAX), 28),
        (request(FLUSH, 8, 0, 0), 22),
        (request(5, 0, 0, 0), 22),
        (request(77, 0, 0, 0), 22),
        (request(FLUSH, 0, 0, 0), 0),
    ];
    let requests: Vec<Vec<u8>> = all.iter().map(|(request, _)| request.clone()).collect();
    let (ended, said) = replies("pages", false, &requests);
    assert_eq!(said, all.map(|(_, error)| simple(error)).concat());
    assert_eq!(ended, Ended::HungUp);
    let (_, said) = replies(
        "fixed",
        false,
        &[
            write(0, b"x"),
            request(TRIM, 0, 0, 1),
            request(ZEROES, 0, 0, 1),
        ],
    );
    assert_eq!(said, [simple(1), simple(1), simple(1)].concat());
}

#[test]
fn reads_in_pieces_send_zeros_as_holes() {
    let bytes = vec![0x77; 300 << 10];
    let (_, said) = replies(
        "pages",
        true,
        &[
            write(8, &bytes),
            request(READ, 0, 8, 300 << 10),
            request(READ, 4, 8, 300 << 10),
            request(READ, 4, 600 << 10, 100),
            request(READ, 0, 0, 0),
            request(READ, 0, u64::MAX, 1),
        ],
    );
    let first = (256 << 10) - 8;
    let data = |at: u64, len: usize| [&at.to_be_bytes()[..], &bytes[..len]].concat();
    let error =
        |number: u32, at: u64| [&number.to_be_bytes()[..], &[0, 0], &at.to_be_bytes()].concat();
    let hole = [&(600u64 << 10).to_be_bytes()[..], &100u32.to_be_bytes()].concat();
    let wanted = [
        simple(0),
        chunk(false, 1, &data(8, first)),
        chunk(true, 1, &data(256 << 10, (300 << 10) - first)),
        chunk(true, 0x8002, &error(75, 8)),
        chunk(true, 2, &hole),
        chunk(true, 0, &[]),
        chunk(true, 0x8002, &error(22, u64::MAX)),
    ]
    .concat();
    assert!(said == wanted);
}

#[test]
fn replies_to_many_reads_of_zeros_go_out_in_bounded_parts() {
    // A null disk, so that the test waits for no 32 MiB to be made for each read.
    let store = Store::create(Settings::new(8192, 1 << 20)).expect("memory");
    let exports = exports(&Arc::new(Disk::null(Arc::new(store))));
    let mut client = [&FLAGS[..], &option(STRUCTURED, &[]), &go("pages")].concat();
    let (_, handshake) = run(&exports, &client, false);
    for _ in 0..24 {
        client.extend(request(READ, 0, 0, 32 << 20));
    }
    let (_, said, longest) = run_measured(&exports, &client, false);
    // Each read has one chunk of 32 bytes for each piece of 256 KiB.
    let of_read = 128 * 32;
    assert_eq!(said.len() - handshake.len(), 24 * of_read);
    assert!(longest <= (64 << 10) + of_read, "{longest} bytes at once");
}

#[test]
fn a_full_store_says_so_and_goes_on() {
    let disk = disk(1000, 64 << 10);
    let exports = exports(&disk);
    let mut state = 1u64;
    let noise: Vec<u8> = (0..1 << 20)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let mut client = [&FLAGS[..], &go("pages")].concat();
    let (_, handshake) = run(&exports, &client, false);
    client.extend(write(0, &noise));
    client.extend(request(TRIM, 0, 0, 1 << 20));
    client.extend(write(0, &noise[..4096]));
    let (_, said) = run(&exports, &client, false);
    assert_eq!(
        said[handshake.len()..],
        [simple(28), simple(0), simple(0)].concat()
    );
}

#[test]
fn who_does_not_speak_the_protocol_is_hung_up_on() {
    let wrong = |ended| assert!(matches!(ended, Ended::Protocol(_)), "{ended:?}");
    let mut huge = request(WRITE, 0, 0, (32 << 20) + 1);
    huge.extend([0; 100]);
    wrong(replies("pages", false, &[huge]).0);
    wrong(replies("pages", false, &[vec![0; 28]]).0);
    let disk = disk(200, 1 << 20);
    let exports = exports(&disk);
    for client in [
        [&FLAGS[..], b"IHAVEOPS\0\0\0\x03\0\0\0\0"].concat(),
        [&FLAGS[..], b"IHAVEOPT\0\0\0\x03\xff\0\0\0"].concat(),
        [FLAGS.to_vec(), option(LIST, &[]).repeat(1001)].concat(),
    ] {
        wrong(run(&exports, &client, false).0.expect("an end"));
    }
    let torn = [&FLAGS[..], &option(GO, b"12345")[..18]].concat();
    assert!(run(&exports, &torn, false).0.is_err());
}

proptest! {
    #[test]
    fn any_bytes_end_without_a_panic(first in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        any_bytes::check(first, &bytes);
    }

    #[test]
    fn any_requests_end_without_a_panic(
        first in any::<u8>(),
        requests in proptest::collection::vec(
            (0u16..8, 0u16..32, prop_oneof![0u64..70_000, any::<u64>()], prop_oneof![0u32..70_000, any::<u32>()]),
            0..20,
        ),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes: Vec<u8> = requests
            .into_iter()
            .flat_map(|(command, flags, offset, length)| request(command, flags, offset, length))
            .collect();
        bytes.extend(tail);
        any_bytes::check(first | 5, &bytes);
    }
}
