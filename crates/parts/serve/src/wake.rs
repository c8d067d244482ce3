//! Waking a thread that waits for connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Connects to a listener of this process, so that its thread returns from `accept`, which has no
/// time limit, and sees that it is to end. False if no connection can be made `within` that time:
/// the thread then has to be left behind, because waiting for it might never end.
pub fn wake_accept(listener: SocketAddr, within: Duration) -> bool {
    // An address that stands for all of this machine's cannot be connected to everywhere.
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    TcpStream::connect_timeout(&SocketAddr::new(ip, listener.port()), within).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_in_accept_wakes_wherever_it_listens() {
        for all in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(all) else {
                println!("skipped: {all}: this machine has no such address");
                continue;
            };
            let address = listener.local_addr().expect("an address");
            let waiting = thread::spawn(move || listener.accept().is_ok());
            assert!(wake_accept(address, Duration::from_secs(5)), "{all}");
            assert!(waiting.join().expect("no panic"), "{all}");
        }
    }

    #[test]
    fn nothing_wakes_where_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        assert!(!wake_accept(address, Duration::from_secs(5)));
    }
}
