//! `dyno ingest collect`: a live feed into files.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use dyno_ingest_collect::{Broker, Collector, Metrics, Settings};
use dyno_report::counted;
use dyno_serve::{Endpoint, Registry, Settings as EndpointSettings, tls};
use dyno_suite::Stop;
use serde_json::json;
use tracing::info;

use super::now_ms;
use crate::args::CollectArgs;
use crate::exit::Exit;
use crate::logging;
use crate::terminal;

/// Holds the broker's password, which no argument and no address holds.
const PASSWORD: &str = "DYNO_MQTT_PASSWORD";
/// Waits before the next attempt: a broker that restarts is back in a second, one that is gone is
/// not pestered.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

pub fn run(args: &CollectArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    // Read here, since the parser of arguments shows what it cannot read, and that may hold a
    // password.
    let broker: Broker = args.broker.parse()?;
    let registry = Registry::new();
    let metrics = Metrics::new(&registry)?;
    // The endpoint is started before the broker is reached. A monitor then sees a collector that
    // cannot connect, instead of none.
    let endpoint = args
        .metrics
        .map(|at| Endpoint::start(at, registry.clone(), EndpointSettings::default()))
        .transpose()?;
    let client = args.client.clone();
    let collector = Collector::new(
        Settings {
            broker: Broker {
                password: env::var(PASSWORD).ok(),
                ..broker.clone()
            },
            tls: args.tls_ca.as_deref().map(tls::client).transpose()?,
            folder: args.out.clone(),
            client_id: client.unwrap_or_else(|| format!("dyno-{}", std::process::id())),
            keep_alive: args.keep_alive.max(Duration::from_secs(1)),
            waits: WAITS,
            clock: Arc::new(now_ms),
        },
        metrics,
    )?;
    info!("collecting from {broker} into {}", args.out.display());
    if let Some(endpoint) = &endpoint {
        info!("metrics at http://{}/metrics", endpoint.address());
    }
    let summary = collector.run(stop.flag())?;
    if args.json {
        terminal::print(&serde_json::to_string_pretty(&json!({
            "messages": summary.messages,
            "connections": summary.connections,
            "missing": summary.missing,
        }))?)?;
    } else {
        terminal::print(&format!(
            "{} over {}, {} left out",
            counted(summary.messages, "message"),
            counted(summary.connections, "connection"),
            counted(summary.missing, "number"),
        ))?;
    }
    Ok(Exit::Done)
}
