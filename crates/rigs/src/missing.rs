//! What a workload needs of the machine besides this program.

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dyno_ingest_clickhouse::private_server::PrivateServer;
use serde_json::Value;

use crate::{kafka, pages, pubsub, resp, sage};

/// How long an endpoint may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Why a case of this workload cannot run here; `None` if it can, as far as can be told without
/// running it. A run of several suites leaves out one that could do nothing but fail.
pub fn workload_missing(workload: &str, params: &BTreeMap<String, Value>) -> Option<String> {
    match workload {
        "clickhouse-load" => PrivateServer::missing(),
        "kafka-produce" | "kafka-consume" => kafka::missing().or_else(pubsub::server_missing),
        "resp-run" => resp::missing(),
        "pages-device" => device_missing(),
        "pages-restore" => pages::restore_missing(),
        "sage-train" => sage::missing(),
        "llm-beside" => {
            let endpoint = params.get("endpoint").and_then(Value::as_str)?;
            endpoint_missing(endpoint)
        }
        _ => None,
    }
}

fn device_missing() -> Option<String> {
    for program in ["fio", "nbdcopy"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Some(format!("{program}: it is not installed"));
        }
    }
    // Opening it needs the rights that a device needs as well.
    let fuse = Path::new("/dev/fuse");
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(fuse);
    opened
        .err()
        .map(|error| format!("{}: {error}", fuse.display()))
}

fn endpoint_missing(endpoint: &str) -> Option<String> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let place = rest.split('/').next().unwrap_or(rest);
    let place = match (place.rsplit_once(':'), scheme) {
        (Some(_), _) => place.to_owned(),
        (None, "https") => format!("{place}:443"),
        (None, _) => format!("{place}:80"),
    };
    let connected = place.to_socket_addrs().and_then(|mut found| {
        let first = found.next().ok_or(std::io::ErrorKind::NotFound)?;
        TcpStream::connect_timeout(&first, CONNECT)
    });
    let reason =
        |error| format!("no model answers at {endpoint}: {error}; --set endpoint=... names one");
    connected.err().map(reason)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_endpoint_is_missing_until_something_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let endpoint = Value::from(format!("http://127.0.0.1:{port}/v1"));
        let params = BTreeMap::from([("endpoint".to_owned(), endpoint)]);
        assert_eq!(workload_missing("llm-beside", &params), None);
        drop(listener);
        let said = workload_missing("llm-beside", &params).expect("it is gone");
        assert!(
            said.starts_with("no model answers at http://127.0.0.1:"),
            "{said}"
        );
        assert_eq!(workload_missing("ingest-load", &params), None);
    }
}
