//! The packets of MQTT 3.1.1 that a subscriber with QoS 0 sends and receives.

/// The largest packet that is accepted. Messages have about 200 bytes, but another program may send
/// any number.
pub const PACKET_BYTES_MAX: usize = 256 * 1024;

/// A packet from the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// CONNACK with its return code, 0 for yes.
    Connected {
        /// The return code, see MQTT 3.1.1, section 3.2.2.3.
        code: u8,
    },
    /// SUBACK for the one subscription.
    Subscribed {
        /// Whether the broker accepted the subscription.
        accepted: bool,
    },
    /// PUBLISH with QoS 0.
    Message {
        /// The topic it was published to.
        topic: &'a str,
        /// The message itself, which may be any bytes.
        payload: &'a [u8],
    },
    /// PINGRESP, the answer to [`PING`].
    Pong,
}

/// Parses the packet at the front of `bytes`, and returns it with its length in bytes; `None` while
/// it is not complete.
///
/// # Errors
/// Bytes that no broker sends to such a subscriber. The connection cannot be used any more.
pub fn read(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, &'static str> {
    let Some((&first, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let Some((length, front)) = remaining_length(rest)? else {
        return Ok(None);
    };
    let end = 1 + front + length;
    // The length is checked before the packet is waited for, so that a broker cannot make us gather
    // up to 256 MiB.
    if end > PACKET_BYTES_MAX {
        return Err("a packet is too large");
    }
    let Some(body) = bytes.get(1 + front..end) else {
        return Ok(None);
    };
    let packet = match (first, body) {
        (0x20, &[_, code]) => Packet::Connected { code },
        (0x90, &[_, _, code]) => Packet::Subscribed {
            accepted: code <= 2,
        },
        (0xd0, &[]) => Packet::Pong,
        // A message's flags: DUP, two bits of QoS, RETAIN.
        (0x30..=0x3f, body) if first & 0b110 == 0 => message(body)?,
        (0x30..=0x3f, _) => return Err("a message has another QoS than was asked for"),
        _ => return Err("a packet is not one that a broker sends to its clients"),
    };
    Ok(Some((packet, end)))
}

/// The length behind the first byte: seven bits in each of four bytes at most.
fn remaining_length(bytes: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
    let mut length = 0;
    for (at, &byte) in bytes.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((length, at + 1)));
        }
    }
    if bytes.len() < 4 {
        return Ok(None);
    }
    Err("the length of a packet does not end")
}

fn message(body: &[u8]) -> Result<Packet<'_>, &'static str> {
    let (length, rest) = body.split_first_chunk().ok_or("a message has no topic")?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (topic, payload) = rest
        .split_at_checked(length)
        .ok_or("a topic does not end")?;
    let topic = std::str::from_utf8(topic).map_err(|_| "a topic is not UTF-8")?;
    Ok(Packet::Message { topic, payload })
}

/// CONNECT with a clean session.
pub fn connect(
    client: &str,
    keep_alive_s: u16,
    user: Option<&str>,
    password: Option<&str>,
) -> Vec<u8> {
    const CLEAN: u8 = 0x02;
    const PASSWORD: u8 = 0x40;
    const USER: u8 = 0x80;
    let mut body = Vec::new();
    text(&mut body, "MQTT");
    body.push(4);
    // A password without a user is not allowed by MQTT 3.1.1.
    let password = user.and(password);
    body.push(CLEAN | user.map_or(0, |_| USER) | password.map_or(0, |_| PASSWORD));
    body.extend(keep_alive_s.to_be_bytes());
    text(&mut body, client);
    for given in [user, password].into_iter().flatten() {
        text(&mut body, given);
    }
    packet(0x10, &body)
}

/// SUBSCRIBE to one filter with QoS 0.
pub fn subscribe(filter: &str) -> Vec<u8> {
    let mut body = vec![0, 1];
    text(&mut body, filter);
    body.push(0);
    packet(0x82, &body)
}

/// PINGREQ, which the broker answers with PINGRESP.
pub const PING: [u8; 2] = [0xc0, 0];
/// DISCONNECT, the last packet of a client that leaves in order.
pub const DISCONNECT: [u8; 2] = [0xe0, 0];

/// The meaning of a return code of CONNACK other than 0, in words.
pub fn refusal(code: u8) -> &'static str {
    match code {
        1 => "it does not speak MQTT 3.1.1",
        2 => "it does not accept our client identifier",
        3 => "it is not available",
        4 => "user or password are wrong",
        5 => "it does not let us in",
        _ => "it gives a reason that is not known",
    }
}

/// Appends a text with its length in two bytes. Longer texts than that would be cut; callers
/// exclude them.
fn text(out: &mut Vec<u8>, text: &str) {
    let length = text.len().min(usize::from(u16::MAX));
    out.extend((length as u16).to_be_bytes());
    out.extend(&text.as_bytes()[..length]);
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut length = body.len();
    loop {
        let seven = (length & 0x7f) as u8;
        length >>= 7;
        packet.push(if length > 0 { seven | 0x80 } else { seven });
        if length == 0 {
            break;
        }
    }
    packet.extend(body);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as MQTT 3.1.1 spells them out.
    #[test]
    fn packets_as_the_standard_has_them() {
        assert_eq!(
            connect("a", 60, None, None),
            b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a"
        );
        let named = connect("a", 60, Some("u"), Some("p"));
        assert_eq!(
            named,
            b"\x10\x13\x00\x04MQTT\x04\xc2\x00\x3c\x00\x01a\x00\x01u\x00\x01p"
        );
        assert_eq!(
            connect("a", 60, None, Some("p")),
            connect("a", 60, None, None)
        );
        assert_eq!(subscribe("a/b"), b"\x82\x08\x00\x01\x00\x03a/b\x00");
        assert_eq!(
            read(b"\x20\x02\x00\x05rest"),
            Ok(Some((Packet::Connected { code: 5 }, 4)))
        );
        assert_eq!(
            read(b"\x90\x03\x00\x01\x80"),
            Ok(Some((Packet::Subscribed { accepted: false }, 5)))
        );
        assert_eq!(read(b"\xd0\x00"), Ok(Some((Packet::Pong, 2))));
        let message = Packet::Message {
            topic: "a/b",
            payload: b"hi",
        };
        assert_eq!(read(b"\x31\x07\x00\x03a/bhi"), Ok(Some((message, 9))));
    }

    #[test]
    fn a_packet_is_read_once_it_is_all_there() {
        let topic = "t".repeat(200);
        let mut whole = vec![0x30, 0xca, 0x01, 0, 200];
        whole.extend(topic.as_bytes());
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Ok(None));
        }
        let message = Packet::Message {
            topic: &topic,
            payload: b"",
        };
        assert_eq!(read(&whole), Ok(Some((message, whole.len()))));
    }

    #[test]
    fn what_no_broker_sends_is_refused() {
        for bytes in [
            &b"\x10\x00"[..],
            b"\x20\x01\x00",
            b"\x32\x05\x00\x01a\x00\x01",
            b"\x30\x01\x00",
            b"\x30\x03\x00\x05a",
            b"\x30\x03\x00\x01\xff",
            b"\x30\xff\xff\xff\xff",
            b"\x30\xff\xff\xff\x7f",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
