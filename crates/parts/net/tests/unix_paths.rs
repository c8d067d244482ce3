//! What a listener does with a file that lies at its path already. Has `unsafe`: a backlog of one.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests fail the test"
)]

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use dyno_net::{Address, Listener};

fn bind(path: &Path) -> Result<Listener, String> {
    Listener::bind(&Address::Unix(path.to_owned())).map_err(|error| error.to_string())
}

/// Connects without waiting until the backlog of the listener at `path` takes no more.
fn fill_backlog(path: &Path) -> Vec<std::thread::JoinHandle<()>> {
    // A blocking connection that finds the backlog full waits in its thread until the listener
    // goes.
    let mut waiting = Vec::new();
    loop {
        let path = path.to_owned();
        let (connected, is_connected) = std::sync::mpsc::channel();
        waiting.push(std::thread::spawn(move || {
            if let Ok(stream) = UnixStream::connect(path) {
                let _ = connected.send(());
                std::mem::forget(stream);
            }
        }));
        let wait = std::time::Duration::from_millis(300);
        if is_connected.recv_timeout(wait).is_err() {
            return waiting;
        }
    }
}

/// A listener with room for one connection that waits.
fn listener_with_a_short_backlog(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    // SAFETY: the descriptor is open; listening again only changes the backlog.
    let answer = unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 0) };
    assert_eq!(answer, 0);
    listener
}

#[test]
fn an_ordinary_file_stays_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    fs::write(&path, "precious").unwrap();
    let error = bind(&path).unwrap_err();
    assert!(
        error.contains("precious") && error.contains("not a socket"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    // A link is a file of its own, whatever it leads to.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(bind(&link).unwrap_err().contains("not a socket"));
    assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
}

#[test]
fn the_socket_of_a_dead_listener_is_replaced_and_that_of_a_living_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    let living = bind(&path).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(error.contains("in use"), "{error}");
    drop(living);
    assert!(!path.exists());
}

#[test]
fn a_listener_whose_backlog_is_full_keeps_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let living = listener_with_a_short_backlog(&path);
    let waiting = fill_backlog(&path);
    let error = bind(&path).unwrap_err();
    assert!(error.contains("in use"), "{error}");
    living.accept().unwrap();
    assert!(path.exists());
    drop(living);
    for thread in waiting {
        thread.join().unwrap();
    }
}

#[test]
fn a_client_waits_for_a_full_backlog_no_longer_than_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let living = listener_with_a_short_backlog(&path);
    let waiting = fill_backlog(&path);
    let wait = std::time::Duration::from_millis(50);
    let error = dyno_net::Stream::connect(&Address::Unix(path), wait).unwrap_err();
    assert!(error.to_string().contains("connect to"), "{error}");
    drop(living);
    for thread in waiting {
        thread.join().unwrap();
    }
}

#[test]
fn a_path_that_another_listener_has_taken_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let first = bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let second = UnixListener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
    UnixStream::connect(&path).unwrap();
    second.accept().unwrap();
}

#[test]
fn many_that_bind_at_once_leave_one_listener_that_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    let bound: Vec<Listener> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| bind(&path))).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.filter_map(Result::ok).collect()
    });
    assert_eq!(bound.len(), 1);
    UnixStream::connect(&path).unwrap();
}
