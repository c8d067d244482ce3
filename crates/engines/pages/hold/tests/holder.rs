//! A store in the hands of a holder while the processes that use it are killed. Both are this
//! program again, in the role that a variable names.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_hold::{Client, HoldError, Holder, MOST_HELD, start};

const ROLE: &str = "DYNO_PAGES_HOLD_ROLE";
const SOCKET: &str = "DYNO_PAGES_HOLD_SOCKET";
const PAGES: u64 = 64;

fn again(role: &str, socket: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .env(SOCKET, socket);
    command
}

/// Not a test of its own: the holder, or a daemon that writes until it is killed.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let socket = std::env::var(SOCKET).expect("a path");
    let socket = Path::new(&socket);
    if role == "holder" {
        return Holder::bind(socket)
            .expect("a place")
            .run()
            .expect("a socket");
    }
    let held = Client::connect(socket)
        .expect("a holder")
        .get("store")
        .expect("held");
    let (store, found) = Store::reopen(held.file, Settings::new(1, 1)).expect("a store");
    assert_eq!(found.damaged, 0);
    let mut handle = store.handle().expect("memory");
    let first: u64 = role.parse().expect("a number");
    for number in first.. {
        handle
            .write(number % PAGES, &page_of(number))
            .expect("space");
        std::io::stderr()
            .write_all(&number.to_le_bytes())
            .expect("a listener");
    }
}

fn page_of(number: u64) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    for (at, word) in page.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = number.wrapping_mul(at as u64 | 1).to_le_bytes();
    }
    page
}

/// The holder's process goes with the test.
struct Ends(Client);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone_is_fine = self.0.end();
    }
}

fn holder(socket: &Path) -> Ends {
    Ends(start(again("holder", socket), socket, Duration::from_secs(60)).expect("a holder"))
}

/// Lets a daemon write from `first` on, kills it, and returns the last number that it was done
/// with.
fn write_and_kill(socket: &Path, first: u64, after: Duration) -> u64 {
    let mut daemon: Child = again(&first.to_string(), socket)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut said = daemon.stderr.take().expect("a pipe");
    let mut word = [0; 8];
    said.read_exact(&mut word).expect("it writes");
    std::thread::sleep(after);
    daemon.kill().expect("SIGKILL");
    daemon.wait().expect("its end");
    let mut rest = word.to_vec();
    said.read_to_end(&mut rest).expect("a pipe");
    let (words, torn) = rest.as_chunks();
    assert!(torn.is_empty());
    words
        .iter()
        .map(|&word| u64::from_le_bytes(word))
        .max()
        .expect("one at least")
}

#[test]
fn a_killed_daemon_loses_nothing_that_it_had_stored() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("hold");
    let holder = holder(&socket);
    let store = Store::create(Settings::new(PAGES, 1 << 20)).expect("memory");
    holder
        .0
        .put("store", b"64 pages", store.memory_file())
        .expect("room");
    drop(store);
    let mut last = PAGES;
    for kill in 0..6 {
        last = write_and_kill(&socket, last + 2, Duration::from_millis(17 * kill));
        let held = holder.0.get("store").expect("held");
        assert_eq!(held.note, b"64 pages");
        let (store, found) = Store::reopen(held.file, Settings::new(1, 1)).expect("a store");
        assert_eq!(found.damaged, 0);
        let mut handle = store.handle().expect("memory");
        let mut page = [0; PAGE_BYTES];
        handle.read(last % PAGES, &mut page).expect("whole");
        assert!(page == page_of(last), "{last} was said");
        // The next one may have gone through without a word.
        handle.read((last + 1) % PAGES, &mut page).expect("whole");
        let number = u64::from_le_bytes(*page.first_chunk().expect("a word"));
        assert!(page == page_of(number), "page of {} is torn", last + 1);
    }
}

#[test]
fn files_are_kept_by_name_until_they_are_let_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("hold");
    let holder = holder(&socket);
    let client = &holder.0;
    let file = |text: &str| {
        let path = dir.path().join(text);
        std::fs::write(&path, text).expect("a file");
        std::fs::File::open(path).expect("a file")
    };
    use std::os::fd::AsFd;
    client.put("a", b"", file("one").as_fd()).expect("room");
    client
        .put("b", &[7; 4096], file("two").as_fd())
        .expect("room");
    client
        .put("a", b"again", file("three").as_fd())
        .expect("room");
    assert_eq!(client.list().expect("names"), ["a", "b"]);
    let held = client.get("a").expect("held");
    let mut text = String::new();
    std::fs::File::from(held.file)
        .read_to_string(&mut text)
        .expect("a file");
    assert_eq!((text.as_str(), &held.note[..]), ("three", &b"again"[..]));
    assert_eq!(client.get("b").expect("held").note, [7; 4096]);
    client.drop_held("b").expect("held");
    assert!(matches!(client.get("b"), Err(HoldError::Unknown { .. })));
    assert!(matches!(
        client.drop_held("b"),
        Err(HoldError::Unknown { .. })
    ));
    // One is held already.
    for number in 1..MOST_HELD {
        client
            .put(&format!("{number}"), b"", file("x").as_fd())
            .expect("room");
    }
    let full = client.put("one more", b"", file("x").as_fd());
    assert!(matches!(full, Err(HoldError::Full { .. })), "{full:?}");
    assert!(Holder::bind(&socket).is_err(), "somebody listens there");
}

#[test]
fn strange_bytes_end_their_own_connection_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("hold");
    let holder = holder(&socket);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"dyph\x02\x02\x00\0\0\0\0\0\0\0\0\0",
        b"dyph\x01\x01\x01\0\0\0\0\0\0\0\0\0x",
        b"dyph\x01\x02\x01\0\0\0\0\0\0\0\0\0\xff",
        b"dyph\x01\x02\x01\0\xff\xff\xff\xff\0\0\0\0x",
        b"",
    ] {
        let mut client = UnixStream::connect(&socket).expect("a holder");
        client.write_all(bytes).expect("heard");
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
        let mut said = Vec::new();
        // A reset is an answer too.
        let _ = client.read_to_end(&mut said);
        assert!(said.is_empty() || said[5] == 131, "{bytes:?}: {said:?}");
    }
    assert!(holder.0.list().expect("it lives").is_empty());
}

#[test]
fn a_process_of_its_own_keeps_no_file_and_no_directory_of_its_maker() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("lock");
    let lock = std::fs::File::create(&path).expect("a file");
    // As a shell hands it on: open across exec.
    let inherited = std::process::Command::new("sh")
        .args(["-c", "exec 9<>\"$0\"; exec \"$@\""])
        .arg(&path)
        .args([std::env::current_exe().expect("this program")])
        .args(["--exact", "detaching", "--nocapture"])
        .env(DETACHES, &path)
        .current_dir(dir.path())
        .status();
    assert!(inherited.expect("sh").success());
    drop(lock);
}

const DETACHES: &str = "DYNO_PAGES_HOLD_DETACHES";

/// What the test before this one starts: a process that starts a detached one and looks at what it
/// has.
#[test]
fn detaching() {
    let Ok(path) = std::env::var(DETACHES) else {
        return;
    };
    let mut sleep = std::process::Command::new("sleep");
    let mut sleep = dyno_pages_hold::detached(sleep.arg("600"))
        .spawn()
        .expect("sleep");
    let of = format!("/proc/{}", sleep.id());
    let open = std::fs::read_dir(format!("{of}/fd")).expect("its files");
    let names: Vec<String> = open
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|name| name.display().to_string())
        .collect();
    let at = std::fs::read_link(format!("{of}/cwd")).expect("its directory");
    let stat = std::fs::read_to_string(format!("{of}/stat")).expect("its state");
    let session = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.split(' ').nth(3).map(str::to_owned));
    let own = sleep.id().to_string();
    sleep.kill().expect("ours");
    sleep.wait().expect("its end");
    assert!(!names.contains(&path), "{names:?}");
    assert_eq!(at, Path::new("/"));
    assert_eq!(session, Some(own));
}

#[test]
fn a_holder_takes_the_place_of_no_file_and_of_no_living_holder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "a user's").expect("a file");
    let refused = Holder::bind(&path).expect_err("no socket").to_string();
    assert!(refused.contains("not a socket"), "{refused}");
    let kept = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(kept, "a user's");
    let socket = folder.path().join("hold");
    let first = Holder::bind(&socket).expect("a place");
    assert!(Holder::bind(&socket).is_err(), "it lives");
    assert!(socket.exists());
    drop(first);
    assert!(!socket.exists(), "its file goes with it");
}
