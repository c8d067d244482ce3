//! Calls of 1 KiB with answers of 10 bytes between two processes, over a ring, a Unix socket and
//! TCP, in windows of 1, 8 and 64. Prints one line of JSON for each. Every answer is verified.
//!
//! ```text
//! cargo run --release -p dyno-net --example rpc -- [SECONDS] [CARRIER...]
//! ```
//!
//! CARRIER: `ring`, `unix`, `tcp`, or `ring:BYTES` for rings of another size than the usual one.
//!
//! The client runs on core 0 and the server, a child process, on core 1; both spin. The load of the
//! machine is printed with each figure: with something else on those cores the figures are of that.

#![allow(clippy::disallowed_macros, reason = "an example on a terminal")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dyno_net::exchange::{Echo, Exchange, exchange};
use dyno_net::{Address, Client, ClientOptions, Listener, PortOptions, Reactor, ReactorOptions};

type Failure = Box<dyn std::error::Error>;

const REQUEST_BYTES: usize = 1024;
const ANSWER_BYTES: usize = 10;
const WINDOWS: [usize; 3] = [1, 8, 64];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, address, ring_bytes] = &args[..]
        && role == "serve"
    {
        return serve(address, ring_bytes.parse()?);
    }
    let seconds: f64 = args.first().map_or(Ok(2.0), |text| text.parse())?;
    let transports = match args.get(1..) {
        None | Some([]) => vec!["ring", "unix", "tcp"],
        Some(named) => named.iter().map(String::as_str).collect(),
    };
    pin(0);
    for transport in transports {
        for window in WINDOWS {
            measure(transport, window, Duration::from_secs_f64(seconds))?;
        }
    }
    Ok(())
}

/// The server's process: spins until its standard input ends.
fn serve(address: &str, ring_bytes: u32) -> Result<(), Failure> {
    pin(1);
    let options = ReactorOptions {
        spin: Duration::from_secs(3600),
        ring_bytes,
        ..ReactorOptions::default()
    };
    let mut reactor = Reactor::new(options)?;
    let address = reactor.listen(Listener::bind(&address.parse()?)?)?;
    println!("{address}");
    std::thread::spawn(|| {
        // The end of the input is the end of the parent.
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let mut echo = Echo::new(ANSWER_BYTES)?;
    loop {
        let count = reactor.poll(&mut echo)?;
        reactor.idle(count > 0, Duration::from_millis(100))?;
    }
}

fn measure(transport: &str, window: usize, duration: Duration) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (transport, ring_bytes) = match transport.split_once(':') {
        Some((transport, bytes)) => (transport, bytes.parse()?),
        None => (transport, ReactorOptions::default().ring_bytes),
    };
    let place = match transport {
        "unix" => format!("unix:{}", folder.path().join("s").display()),
        _ => "127.0.0.1:0".to_owned(),
    };
    let (mut server, address) = start(&place, ring_bytes)?;
    let options = ClientOptions {
        port: PortOptions {
            ring: transport == "ring",
            most_ring_bytes: 64 << 20,
            ..PortOptions::default()
        },
        spin: Duration::from_secs(3600),
        ..ClientOptions::default()
    };
    let mut client = Client::connect(&address, &options)?;
    let plan = |duration| Exchange {
        request_bytes: REQUEST_BYTES,
        answer_bytes: ANSWER_BYTES,
        window,
        duration,
    };
    exchange(&mut client, &plan(duration / 5), |_| {})?;
    let mut latencies = Vec::with_capacity(1 << 24);
    let done = exchange(&mut client, &plan(duration), |ns| {
        // Enough for the percentiles, and no allocation while it runs.
        if latencies.len() < latencies.capacity() {
            latencies.push(ns);
        }
    })?;
    server.kill()?;
    server.wait()?;
    latencies.sort_unstable();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize] as f64 / 1000.0;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!(
        "{{\"carrier\":\"{}\",\"ring_bytes\":{ring_bytes},\"window\":{window},\"calls\":{},\"calls_per_s\":{:.0},\
         \"p50_us\":{:.3},\"p99_us\":{:.3},\"p999_us\":{:.3},\"load\":\"{}\"}}",
        client.transport().kind,
        done.answers,
        done.answers as f64 / done.elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        load.split(' ').next().unwrap_or("unknown"),
    );
    Ok(())
}

fn start(place: &str, ring_bytes: u32) -> Result<(Child, Address), Failure> {
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", place, &ring_bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let output = server.stdout.take().ok_or("the server has no output")?;
    BufReader::new(output).read_line(&mut line)?;
    Ok((server, line.trim().parse()?))
}

/// Asks for one core, by the tool that every Linux has; without it the process runs where it may.
fn pin(core: usize) {
    let pinned = Command::new("taskset")
        .args(["-pc", &core.to_string(), &std::process::id().to_string()])
        .stdout(Stdio::null())
        .status();
    if !pinned.is_ok_and(|status| status.success()) {
        eprintln!("not pinned to core {core}");
    }
}
