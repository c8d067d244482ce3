//! Finds free TCP ports of loopback, for servers that must be told their port before they start. A
//! server of our own listens on port 0 and says what it got, so it does not need this.
//!
//! Ports that the kernel gives to outgoing connections are avoided, for two reasons. Another
//! process may take one before the server binds it. And a client that connects to such a port again
//! and again, until the server listens, may be given that very port for its own end: it is then
//! connected to itself (simultaneous open, RFC 9293 section 3.5) although there is no server.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The file in which the kernel says which ports outgoing connections get.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Ports below this one are those that services are known by.
const LOWEST: u16 = 10_000;
/// A range with fewer ports than this is not searched.
const ENOUGH: usize = 1000;

/// A port on which nothing listens. A process gets each port once, and every process begins its
/// search at another port. Nothing is reserved: another process may still bind the port first.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when all ports of the range are taken, and any error of the kernel
/// when it does not give a socket.
pub fn free() -> io::Result<u16> {
    static RANGE: OnceLock<Option<Range<u16>>> = OnceLock::new();
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let outgoing = || fs::read_to_string(OUTGOING).unwrap_or_default();
    let Some(range) = RANGE.get_or_init(|| outside(&outgoing())) else {
        // Every port is for outgoing connections on this machine, so it has to be one of those.
        return Ok(bound(0)?.local_addr()?.port());
    };
    let next = NEXT.get_or_init(|| AtomicU32::new(RandomState::new().hash_one(0) as u32));
    for _ in range.clone() {
        let turn = next.fetch_add(1, Ordering::Relaxed) % range.len() as u32;
        let port = range.start + turn as u16;
        match bound(port) {
            Ok(_) => return Ok(port),
            Err(taken) if taken.kind() == io::ErrorKind::AddrInUse => {}
            Err(other) => return Err(other),
        }
    }
    let all = format!("loopback has no free port in {range:?}");
    Err(io::Error::new(io::ErrorKind::AddrInUse, all))
}

fn bound(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// The ports below those for outgoing connections, or above them where there are too few below.
/// `outgoing` holds the lowest and the highest port for outgoing connections, as the kernel prints
/// them.
fn outside(outgoing: &str) -> Option<Range<u16>> {
    let mut ends = outgoing
        .split_whitespace()
        .map_while(|end| end.parse::<u16>().ok());
    let (low, high) = (ends.next()?, ends.next()?);
    let below = LOWEST..low;
    let above = high.saturating_add(1).max(LOWEST)..u16::MAX;
    [below, above]
        .into_iter()
        .find(|range| range.len() >= ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_free_given_once_and_not_for_outgoing_connections() {
        let given: Vec<u16> = (0..50).map(|_| free().unwrap()).collect();
        let mut sorted = given.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 50, "{given:?}");
        if let Some(range) = outside(&fs::read_to_string(OUTGOING).unwrap()) {
            assert!(given.iter().all(|port| range.contains(port)), "{given:?}");
        }
    }

    #[test]
    fn a_taken_port_is_passed_by() {
        let taken: Vec<TcpListener> = (0..20)
            .map(|_| bound(free().unwrap() + 1))
            .filter_map(Result::ok)
            .collect();
        let ports: Vec<u16> = taken
            .iter()
            .map(|socket| socket.local_addr().unwrap().port())
            .collect();
        for _ in 0..50 {
            assert!(!ports.contains(&free().unwrap()));
        }
    }

    #[test]
    fn the_range_lies_where_the_kernel_leaves_room() {
        assert_eq!(outside("32768\t60999\n"), Some(10_000..32_768));
        assert_eq!(outside("1024\t50000\n"), Some(50_001..65_535));
        assert_eq!(outside("1024 65535"), None);
        assert_eq!(outside(""), None);
    }
}
