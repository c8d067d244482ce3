//! Clients that we did not write: qemu-img, qemu-io, nbdcopy, nbdinfo and libnbd for Python; and
//! the server's own bounds.

mod script;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_certificates::Certificates;
use dyno_net::Address;
use dyno_pages_disk::Disk;
use dyno_pages_nbd::{Clients, NbdError, Options, Server, Tls};
use dyno_serve::tls;
use script::{disk, exports};

const PAGES: u64 = 8192;
const LIMIT_BYTES: u64 = 64 << 20;

fn start(at: &str, disk: &Arc<Disk>, options: Options) -> Server {
    let address: Address = at.parse().expect("an address");
    Server::start(&address, exports(disk), options).expect("a free address")
}

/// Whether the programs are here; says so if not.
fn present(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new(program).arg("--version").output();
        !found.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        println!(
            "skipped: NBD clients: {program} is not installed (qemu-utils, libnbd-bin, python3-libnbd)"
        );
    }
    missing.is_none()
}

/// The system's own Python, which another one on the path may hide, with libnbd's module.
fn python_client() -> bool {
    let asked = Command::new("/usr/bin/python3")
        .args(["-c", "import nbd"])
        .output();
    let found = asked.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: NBD clients: python3-libnbd is not installed");
    }
    found
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect(program);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {said}{wrong}"
    );
    said
}

/// A megabyte of text, a hole, noise, and an odd end.
fn some_file(path: &Path) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0u32..200_000)
        .flat_map(|n| n.to_string().into_bytes())
        .collect();
    bytes.resize(bytes.len() + (3 << 20), 0);
    let mut state = 7u64;
    bytes.extend((0..2 << 20).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    }));
    bytes.resize(bytes.len().next_multiple_of(512) + 512, 1);
    std::fs::write(path, &bytes).expect("a file");
    bytes
}

#[test]
fn qemu_and_nbdcopy_bring_files_in_and_out() {
    if !present(&["qemu-img", "qemu-io", "nbdcopy", "nbdinfo"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let text = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let file = some_file(&dir.path().join("in"));
    let disk = disk(PAGES, LIMIT_BYTES);
    let server = start(&format!("unix:{}", text("nbd")), &disk, Options::default());
    let uri = format!("nbd+unix:///pages?socket={}", text("nbd"));
    output_of(
        "qemu-img",
        &["convert", "-n", "-f", "raw", "-O", "raw", &text("in"), &uri],
    );
    output_of("nbdcopy", &["--connections=4", &uri, &text("out")]);
    let copied = std::fs::read(text("out")).expect("a file");
    assert_eq!(copied.len() as u64, disk.bytes());
    assert!(copied[..file.len()] == file && copied[file.len()..].iter().all(|&byte| byte == 0));

    output_of(
        "nbdcopy",
        &[
            "--connections=2",
            "--destination-is-zero",
            &text("in"),
            &uri,
        ],
    );
    output_of(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &text("out"), &uri],
    );
    let io =
        |command: &str| output_of("qemu-io", &["-t", "none", "-f", "raw", "-c", command, &uri]);
    for command in [
        "write -P 0x5a 1000 70001",
        "write -f -P 0xa5 5000 3",
        "write -z 8192 4097",
        "write -z -u 20000 9000",
        "discard 40960 8192",
        "flush",
    ] {
        let said = io(command);
        assert!(!said.contains("failed"), "{command}: {said}");
    }
    for (at, bytes, value) in [
        (1000, 4000, 0x5a),
        (5000, 3, 0xa5),
        (8192, 4097, 0),
        (12289, 7000, 0x5a),
        (20000, 9000, 0),
        (40960, 8192, 0),
        (49152, 1000, 0x5a),
    ] {
        let said = io(&format!("read -P {value} {at} {bytes}"));
        assert!(!said.contains("verification failed"), "{said}");
    }
    let list = output_of("nbdinfo", &["--list", &uri]);
    assert!(
        list.contains("export=\"pages\"") && list.contains("export=\"fixed\""),
        "{list}"
    );
    assert!(
        list.contains("can_multi_conn: true") && list.contains("can_fua: true"),
        "{list}"
    );
    // Each program hangs up in its own way, some with bytes unread.
    assert_eq!(server.refused(), 0);
}

const NBDSH: &str = r#"
import errno, os, random, sys
import nbd

uri, fixed = sys.argv[1], sys.argv[2]
ends = []
for _ in range(3):
    h = nbd.NBD()
    h.set_strict_mode(0)
    h.set_uri_allow_local_file(True)
    h.connect_uri(uri)
    assert h.can_multi_conn() and h.can_trim() and h.can_zero() and h.can_flush() and h.can_df()
    ends.append(h)
size = ends[0].get_size()
model = bytearray(size)
draw = random.Random(5)
for step in range(1500):
    h = draw.choice(ends)
    at = draw.randrange(size)
    length = min(size - at, draw.choice([1, 511, 512, 4096, 4097, 65536, 300000]))
    kind = draw.randrange(6)
    if kind < 2:
        data = draw.choice([draw.randbytes(length), bytes([step % 256]) * length])
        h.pwrite(data, at, nbd.CMD_FLAG_FUA if kind else 0)
        model[at:at + length] = data
    elif kind == 2:
        h.zero(length, at, draw.choice([0, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_FAST_ZERO]))
        model[at:at + length] = bytes(length)
    elif kind == 3:
        h.trim(length, at)
        model[at:at + length] = bytes(length)
    else:
        got = h.pread(length, at, nbd.CMD_FLAG_DF if kind == 4 and length <= 65536 else 0)
        assert got == model[at:at + length], (step, at, length)
ends[1].flush()
assert b"".join(ends[2].pread(min(1 << 20, size - at), at) for at in range(0, size, 1 << 20)) == model

# Many requests under way on one connection.
cookies = []
for at in range(0, 1 << 20, 4096):
    buf = nbd.Buffer.from_bytearray(bytearray([at >> 12 & 255]) * 4096)
    cookies.append((ends[0].aio_pwrite(buf, at), buf))
while ends[0].aio_in_flight():
    ends[0].poll(-1)
for cookie, _ in cookies:
    assert ends[0].aio_command_completed(cookie)
for at in range(0, 1 << 20, 4096):
    assert ends[1].pread(4096, at) == bytes([at >> 12 & 255]) * 4096

def refused(number, call):
    try:
        call()
    except nbd.Error as error:
        assert error.errno == number, error
    else:
        raise AssertionError("no error")

refused("EINVAL", lambda: ends[0].pread(1, size))
refused("ENOSPC", lambda: ends[0].pwrite(b"x", size))
refused("EINVAL", lambda: ends[0].cache(1, 0))
h = nbd.NBD()
h.set_strict_mode(0)
h.set_uri_allow_local_file(True)
h.connect_uri(fixed)
assert h.is_read_only()
refused("EPERM", lambda: h.pwrite(b"x", 0))
print("agreed", len(cookies))
"#;

#[test]
fn libnbd_finds_what_a_model_says_over_tcp() {
    if !python_client() {
        return;
    }
    let disk = disk(512, 16 << 20);
    let server = start("127.0.0.1:0", &disk, Options::default());
    let uri = |name| format!("nbd://{}/{name}", server.address());
    let said = output_of(
        "/usr/bin/python3",
        &["-c", NBDSH, &uri("pages"), &uri("fixed")],
    );
    assert!(said.contains("agreed 256"), "{said}");
    let bad = disk.store().check().expect("memory");
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn tls_comes_first_and_asks_clients_who_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let (known, strange) = (dir.path().join("known"), dir.path().join("strange"));
    for place in [&known, &strange] {
        std::fs::create_dir(place).expect("a directory");
        if Certificates::make(place, "NBD over TLS").is_none() {
            return;
        }
    }
    if !present(&["nbdinfo"]) {
        return;
    }
    // Trusts the server, and comes with somebody else's certificate.
    std::fs::copy(known.join("ca-cert.pem"), strange.join("ca-cert.pem")).expect("a file");
    let file = |name: &str| known.join(name);
    let (roots, cert, key) = (
        file("ca-cert.pem"),
        file("server-cert.pem"),
        file("server-key.pem"),
    );
    let config = tls::server_for(&roots, &cert, &key).expect("certificates");
    let options = Options {
        tls: Some(Tls {
            config,
            clients: Clients::Certified,
        }),
        ..Options::default()
    };
    let disk = disk(512, 16 << 20);
    let server = start("localhost:0", &disk, options);
    let Address::Tcp { port, .. } = server.address() else {
        panic!("TCP");
    };
    let uri = |scheme: &str, place: &Path| {
        let place = place.display();
        format!("{scheme}://localhost:{port}/pages?tls-certificates={place}")
    };
    let size = output_of("nbdinfo", &["--size", &uri("nbds", &known)]);
    assert_eq!(size.trim(), disk.bytes().to_string());
    if python_client() {
        let fixed = uri("nbds", &known).replace("/pages", "/fixed");
        let said = output_of(
            "/usr/bin/python3",
            &["-c", NBDSH, &uri("nbds", &known), &fixed],
        );
        assert!(said.contains("agreed"), "{said}");
    }
    for uri in [uri("nbd", &known), uri("nbds", &strange)] {
        let refused = Command::new("nbdinfo").args(["--size", &uri]).output();
        assert!(!refused.expect("nbdinfo").status.success(), "{uri}");
    }
}

#[test]
fn an_open_address_needs_a_word_or_certificates() {
    let disk = disk(16, 1 << 20);
    let address: Address = "0.0.0.0:0".parse().expect("an address");
    let started = Server::start(&address, exports(&disk), Options::default());
    assert!(
        matches!(started, Err(NbdError::Unguarded { .. })),
        "{started:?}"
    );
    let options = Options {
        open_to_all: true,
        ..Options::default()
    };
    Server::start(&address, exports(&disk), options).expect("a port");
}

fn greeted(server: &Server) -> TcpStream {
    let mut client = TcpStream::connect(server.address().to_string()).expect("the server");
    client.read_exact(&mut [0; 18]).expect("a greeting");
    client
}

#[test]
fn silent_clients_are_hung_up_on_and_users_are_not() {
    let disk = disk(16, 1 << 20);
    let options = Options {
        handshake_wait: Duration::from_millis(1500),
        ..Options::default()
    };
    let server = start("127.0.0.1:0", &disk, options);
    let mut user = greeted(&server);
    let hello = [&script::FLAGS[..], &script::go("pages")].concat();
    user.write_all(&hello).expect("heard");
    let mut silent = greeted(&server);
    let end = silent.read(&mut [0; 1]);
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    // Who uses an export may take longer than a handshake.
    user.write_all(&script::request(3, 0, 0, 0)).expect("heard");
    let mut reply = Vec::new();
    while !reply.ends_with(b"a cookie") {
        let mut byte = [0];
        user.read_exact(&mut byte).expect("a reply");
        reply.push(byte[0]);
    }
}

/// A client that is behind its handshake and, when it is told to, has sent a request.
fn settled(server: &Server, asks: bool) -> TcpStream {
    let mut client = greeted(server);
    let mut said = [&script::FLAGS[..], &script::go("pages")].concat();
    if asks {
        said.extend(script::request(3, 0, 0, 0));
    }
    client.write_all(&said).expect("heard");
    // The handshake's last reply is an acknowledgement of Go; a request's ends with its cookie.
    let end: &[u8] = if asks {
        b"a cookie"
    } else {
        &[0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0]
    };
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a reply");
        heard.push(byte[0]);
    }
    client
}

fn is_closed(client: &mut TcpStream) -> bool {
    matches!(client.read(&mut [0; 1]), Ok(0) | Err(_))
}

#[test]
fn there_are_no_more_connections_than_allowed() {
    let disk = disk(16, 1 << 20);
    let options = Options {
        most_connections: 2,
        ..Options::default()
    };
    let server = start("127.0.0.1:0", &disk, options);
    let _users = [settled(&server, true), settled(&server, true)];
    let mut surplus = TcpStream::connect(server.address().to_string()).expect("the server");
    assert_eq!(surplus.read(&mut [0; 18]).unwrap_or(0), 0, "no place");
    assert_eq!((server.connections(), server.refused()), (2, 1));
}

#[test]
fn clients_that_never_ask_for_anything_keep_no_one_out() {
    let disk = disk(16, 1 << 20);
    let options = Options {
        most_connections: 3,
        ..Options::default()
    };
    let server = start("127.0.0.1:0", &disk, options);
    let mut user = settled(&server, true);
    let (mut first, mut second) = (settled(&server, false), greeted(&server));
    // Each newcomer takes the place of the one that has been silent longest, and none of a user's.
    let mut third = settled(&server, false);
    assert!(is_closed(&mut first));
    let _fourth = settled(&server, true);
    assert!(is_closed(&mut second));
    let _fifth = settled(&server, true);
    assert!(is_closed(&mut third));
    assert_eq!(
        (server.displaced(), server.refused(), server.broken()),
        (3, 0, 0)
    );
    user.write_all(&script::request(3, 0, 0, 0)).expect("heard");
    user.read_exact(&mut [0; 16]).expect("a reply");
}

#[test]
fn an_idle_client_is_hung_up_on_when_that_was_asked_for() {
    let disk = disk(16, 1 << 20);
    let options = Options {
        client_idle: Some(Duration::from_millis(300)),
        ..Options::default()
    };
    let server = start("127.0.0.1:0", &disk, options);
    let mut idle = settled(&server, true);
    assert!(is_closed(&mut idle));
    assert_eq!((server.late(), server.broken()), (1, 0));
}

#[test]
fn a_handshake_within_tls_has_the_same_limit_however_its_bytes_trickle_in() {
    let dir = tempfile::tempdir().expect("a directory");
    if Certificates::make(dir.path(), "NBD over TLS").is_none() {
        return;
    }
    let file = |name: &str| dir.path().join(name);
    let (roots, cert, key) = (
        file("ca-cert.pem"),
        file("server-cert.pem"),
        file("server-key.pem"),
    );
    let options = Options {
        handshake_wait: Duration::from_millis(800),
        tls: Some(Tls {
            config: tls::server_for(&roots, &cert, &key).expect("certificates"),
            clients: Clients::Certified,
        }),
        ..Options::default()
    };
    let disk = disk(16, 1 << 20);
    let server = start("127.0.0.1:0", &disk, options);
    let mut client = greeted(&server);
    let began = Instant::now();
    let start_tls = [&script::FLAGS[..], &script::option(script::START_TLS, &[])].concat();
    client.write_all(&start_tls).expect("heard");
    client.read_exact(&mut [0; 20]).expect("an acknowledgement");
    // A record of 16 KiB has room for this at every pace. Reading waits between two bytes.
    client
        .set_read_timeout(Some(Duration::from_millis(100)))
        .expect("a limit");
    client.write_all(&[0x16, 3, 1, 0x3f, 0xff]).expect("heard");
    let cut = (0..600).any(|_| {
        let sent = client.write_all(&[0]);
        let read = client.read(&mut [0; 1]);
        sent.is_err()
            || !matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    });
    assert!(cut, "still connected after {:?}", began.elapsed());
    assert!(began.elapsed() >= Duration::from_millis(700));
    assert_eq!(server.late(), 1);
}

#[test]
fn a_stopped_server_has_ended_its_connections_and_its_file_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("nbd");
    let disk = disk(16, 1 << 20);
    let mut server = start(
        &format!("unix:{}", path.display()),
        &disk,
        Options::default(),
    );
    let mut client = UnixStream::connect(&path).expect("the server");
    client
        .write_all(&[&script::FLAGS[..], &script::go("")].concat())
        .expect("heard");
    client.read_exact(&mut [0; 18]).expect("a greeting");
    server.stop();
    let mut rest = Vec::new();
    let began = Instant::now();
    let _end_or_reset = client.read_to_end(&mut rest);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(!path.exists());
    assert_eq!(server.connections(), 0);
}
