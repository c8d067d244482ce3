//! The parameters of `tpcc-run`.

use std::time::Duration;

use dyno_tpcc::drive::{Form, Plan, Until};
use dyno_tpcc::input::{Draw, Mix};
use dyno_tpcc::random::Skew;
use dyno_tpcc::{Population, Scale};

use super::engine::{Ours, Which};
use crate::peers::unknown;
use crate::{Params, RigError};
use dyno_txn_postgres::Isolation;

const SEED: u64 = 1;
/// So many that no transaction is given up. The cost of retries is in the latency and the rate.
const ATTEMPTS: u32 = 10_000;

/// The parsed parameters of an invocation.
#[derive(Debug, Clone)]
pub(super) struct TpccParams {
    /// The measured time; a fifth of it runs before as a warm-up and is not counted.
    pub duration: Duration,
    /// Transactions that run before the measurement, so that its tables have grown; 0 for the
    /// warm-up only.
    pub before: u64,
    pub which: Which,
    pub ours: Ours,
    pub population: Population,
    pub plan: Plan,
}

/// Reads the parameters; `peer` names the engine that runs instead of ours.
pub(super) fn read(params: &mut Params<'_>, peer: Option<&str>) -> Result<TpccParams, RigError> {
    let population = population(params)?;
    let mix = choice(
        params,
        "mix",
        &[
            ("full", Mix::Full),
            ("new-order-payment", Mix::NewOrderPayment),
        ],
    )?;
    let form = choice(
        params,
        "form",
        &[
            ("one-shot", Form::OneShot),
            ("batched", Form::Batched),
            ("interactive", Form::Interactive),
        ],
    )?;
    let ours = ours(params)?;
    let way = way(params)?;
    let clients = within(params, "clients")?;
    let peer_clients = within(params, "peer-clients")?;
    let duration = params.seconds("seconds")?;
    let before = params.count_or("before", 0)?;
    let threads = params.count_or("threads", 1)?.clamp(1, 64) as u32;
    let (which, clients) = match peer {
        None => (way, clients),
        Some("postgres") => (Which::Postgres(Isolation::ReadCommitted), peer_clients),
        Some("postgres-serializable") => (Which::Postgres(Isolation::Serializable), peer_clients),
        Some("etcd") => (Which::Etcd(1), peer_clients),
        Some(other) => return Err(unknown(other)),
    };
    let plan = Plan {
        draw: Draw {
            scale: population.scale,
            mix,
            by_last_name: 60,
            skew: Skew::for_run(SEED, Skew::for_load(population.seed)),
        },
        form,
        clients,
        threads: match which {
            // etcd's client waits for each answer, so each terminal needs a thread.
            Which::Etcd(_) => clients,
            _ => threads,
        },
        until: Until::Elapsed(duration),
        paced: false,
        seed: SEED,
        run: SEED,
        attempts: ATTEMPTS,
        entered_ms: None,
    };
    Ok(TpccParams {
        duration,
        before,
        which,
        ours,
        population,
        plan,
    })
}

fn ours(params: &mut Params<'_>) -> Result<Ours, RigError> {
    Ok(Ours {
        durability: {
            let text = params.text("durability")?;
            text.parse()
                .map_err(|error| params.wrong("durability", format!("{error}")))?
        },
        cores: usize::try_from(params.count("cores")?).unwrap_or(usize::MAX),
        memory_bytes: params.count_or("memory", 4 << 30)?,
        checkpoint_bytes: params.count_or("checkpoint", 0)?,
    })
}

fn way(params: &mut Params<'_>) -> Result<Which, RigError> {
    let servers = params.count_or("servers", 1)?.clamp(1, 64) as usize;
    choice(
        params,
        "engine",
        &[
            ("local", Which::Local),
            (
                "ring",
                Which::Served {
                    ring: true,
                    servers,
                },
            ),
            (
                "tcp",
                Which::Served {
                    ring: false,
                    servers,
                },
            ),
        ],
    )
}

fn population(params: &mut Params<'_>) -> Result<Population, RigError> {
    let warehouses = within(params, "warehouses")?;
    let scale = match params.text("population")? {
        "full" => Scale::specified(warehouses),
        "small" => Scale::small(warehouses),
        other => {
            let reason = format!("`{other}` is neither full nor small");
            return Err(params.wrong("population", reason));
        }
    };
    Ok(Population { scale, seed: SEED })
}

fn within(params: &mut Params<'_>, name: &'static str) -> Result<u32, RigError> {
    let count = params.count(name)?;
    match u32::try_from(count) {
        Ok(count @ 1..=10_000) => Ok(count),
        _ => Err(params.wrong(name, format!("{count} is not within 1 and 10000"))),
    }
}

fn choice<T: Clone>(
    params: &mut Params<'_>,
    name: &'static str,
    of: &[(&str, T)],
) -> Result<T, RigError> {
    let text = params.text(name)?;
    match of.iter().find(|(known, _)| *known == text) {
        Some((_, chosen)) => Ok(chosen.clone()),
        None => {
            let known: Vec<&str> = of.iter().map(|(known, _)| *known).collect();
            let reason = format!("`{text}` is not one of {}", known.join(", "));
            Err(params.wrong(name, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::Size;
    use dyno_suite::{Definition, Planned};
    use serde_json::json;

    /// The engine in the client's process sends no message, which its peers must do.
    #[test]
    fn beside_peers_the_engine_is_measured_in_a_process_of_its_own_too() {
        let text = include_str!("../../../../suites/tpcc.toml");
        let suite = Definition::parse("tpcc", "suites/tpcc.toml", text).expect("a suite");
        let suite = suite.on_cores(2);
        let planned = Planned::new(&suite, Size::Full, &suite.peers()).expect("a plan");
        let local = json!("local");
        let mut compared = 0;
        for case in &planned.plan.cases {
            let ours = 1 + case.variants.len();
            if case.params["engine"] != local || case.systems.len() == ours {
                continue;
            }
            compared += 1;
            let mut variants = case.variants.values();
            let apart = variants.any(|v| v.get("engine").is_some_and(|engine| *engine != local));
            assert!(apart, "{}", case.name);
        }
        assert!(compared >= 2, "{compared} cases");
    }
}
