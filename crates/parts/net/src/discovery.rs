//! How two ends that speak over a socket find out that they are on one host, and move to a ring.
//! The verbs from [`FIRST_RESERVED`] on belong to this crate (docs/formats/rings.md).
//!
//! The server sends, over the connection that exists, the name of an abstract Unix socket and a
//! nonce. Such a socket can be reached only within one host (and one network namespace), so a
//! client that brings the nonce to it is the same client and is on this host. It is answered with
//! the memory of a ring.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use crate::port::{CoarseInstant, coarse_now};

/// The first verb that users of the crate must not take.
pub const FIRST_RESERVED: u8 = 240;
/// Asks whether the server offers a ring, and where.
pub const DISCOVER: u8 = 240;
/// Asks for the memory of the ring, over the abstract socket.
pub const JOIN: u8 = 241;
/// The flag that marks an answer.
pub const ANSWER: u8 = 1;

/// The version of these messages.
const VERSION: u16 = 1;
/// How every name begins. A client accepts no other, so that a server cannot send it to the socket
/// of another program.
const NAME_START: &str = "dyno-ring-";
/// Random bytes in a name and in a nonce.
const RANDOM_BYTES: usize = 16;
/// Offers that no client has taken up yet; beyond this the oldest is dropped.
const MOST_OFFERS: usize = 1024;
/// The longest reason that is accepted from a server, in bytes.
const MOST_REASON: usize = 200;

/// Where a client may get a ring, and the proof that it was told so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The name of the abstract Unix socket.
    pub name: String,
    /// To be shown at the socket, once.
    pub nonce: [u8; RANDOM_BYTES],
}

/// The body of a request to discover.
pub fn discover_request() -> [u8; 2] {
    VERSION.to_le_bytes()
}

/// The body of the answer: an offer, or the reason why there is none.
pub fn discover_answer(offer: Result<&Offer, &str>) -> Vec<u8> {
    match offer {
        Ok(offer) => [&[0][..], &offer.nonce, offer.name.as_bytes()].concat(),
        Err(reason) => refusal(reason),
    }
}

/// Decodes such an answer. The error is the server's reason, or says that the answer is malformed.
pub fn read_discover_answer(body: &[u8]) -> Result<Offer, String> {
    let wrong = || "the server's answer about rings is malformed".to_owned();
    let (status, rest) = body.split_first().ok_or_else(wrong)?;
    if *status != 0 {
        return Err(reason(rest));
    }
    let (nonce, name) = rest.split_first_chunk().ok_or_else(wrong)?;
    let name = str::from_utf8(name).map_err(|_| wrong())?;
    let random = name.strip_prefix(NAME_START).ok_or_else(wrong)?;
    if random.len() != 2 * RANDOM_BYTES || !random.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    Ok(Offer {
        name: name.to_owned(),
        nonce: *nonce,
    })
}

/// The body of an answer to a request to join: a ring comes with it, or the reason why none does.
pub fn join_answer(result: Result<(), &str>) -> Vec<u8> {
    result.map_or_else(refusal, |()| vec![0])
}

/// Decodes such an answer; the error is the reason.
pub fn read_join_answer(body: &[u8]) -> Result<(), String> {
    match body {
        [0] => Ok(()),
        [_, rest @ ..] => Err(reason(rest)),
        [] => Err("the server's answer about rings is empty".to_owned()),
    }
}

fn refusal(reason: &str) -> Vec<u8> {
    [&[1][..], reason.as_bytes()].concat()
}

/// A reason as it may be printed: it comes from the other side, so it is cut and stripped of
/// control characters.
fn reason(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_REASON)]);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A server's offers that no client has taken up yet.
#[derive(Debug)]
pub struct Offers {
    name: String,
    open: VecDeque<([u8; RANDOM_BYTES], CoarseInstant)>,
    wait: Duration,
}

impl Offers {
    /// No offers yet, under a new random name. Each will be valid for `wait`.
    pub fn new(wait: Duration) -> io::Result<Offers> {
        let hex: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Offers {
            name: format!("{NAME_START}{hex}"),
            open: VecDeque::new(),
            wait,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes an offer with a fresh nonce, and drops those that have expired.
    pub fn make(&mut self) -> io::Result<Offer> {
        let nonce = random()?;
        let now = coarse_now();
        while self.open.len() >= MOST_OFFERS
            || self.open.front().is_some_and(|(_, until)| *until < now)
        {
            self.open.pop_front();
        }
        self.open.push_back((nonce, now.after(self.wait)));
        Ok(Offer {
            name: self.name.clone(),
            nonce,
        })
    }

    /// Whether this is the nonce of a valid offer, which then counts as taken.
    pub fn redeem(&mut self, nonce: &[u8]) -> bool {
        let now = coarse_now();
        let found = self
            .open
            .iter()
            .position(|(open, until)| open == nonce && *until >= now);
        found.and_then(|at| self.open.remove(at)).is_some()
    }
}

fn random() -> io::Result<[u8; RANDOM_BYTES]> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_good_once_and_for_a_while() {
        let mut offers = Offers::new(Duration::from_secs(60)).unwrap();
        let offer = offers.make().unwrap();
        assert_eq!(
            read_discover_answer(&discover_answer(Ok(&offer))),
            Ok(offer.clone())
        );
        assert!(!offers.redeem(&offer.nonce[1..]));
        assert!(offers.redeem(&offer.nonce));
        assert!(!offers.redeem(&offer.nonce));
        let first = offers.make().unwrap();
        for _ in 0..MOST_OFFERS {
            offers.make().unwrap();
        }
        assert!(!offers.redeem(&first.nonce));
        assert_eq!(offers.open.len(), MOST_OFFERS);
    }

    #[test]
    fn a_server_cannot_send_its_client_to_another_socket() {
        let good = Offers::new(Duration::from_secs(1)).unwrap().make().unwrap();
        for name in [
            "",
            "/run/x",
            "dyno-ring-",
            &good.name[..41],
            &format!("{}0", good.name),
        ] {
            let offer = Offer {
                name: name.to_owned(),
                ..good.clone()
            };
            assert!(
                read_discover_answer(&discover_answer(Ok(&offer))).is_err(),
                "{name}"
            );
        }
        for body in [&b""[..], b"\0", b"\0short"] {
            assert!(read_discover_answer(body).is_err());
        }
        let refused = read_discover_answer(&discover_answer(Err("none\x1b[1m")));
        assert_eq!(refused, Err("none[1m".to_owned()));
        assert!(read_join_answer(b"").is_err() && read_join_answer(b"\0\0").is_err());
    }
}
