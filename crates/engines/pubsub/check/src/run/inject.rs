//! How each fault is injected.

use std::thread;
use std::time::{Duration, Instant};

use dyno_sim::Random;

use super::clients::Clients;
use super::servers::Servers;
use super::{Options, RunError};
use crate::child::Process;
use crate::nemesis::{self, Ballast, Fault, Step};
use crate::proxy::Control;

/// How long a full disk stays full.
const FULL: Duration = Duration::from_millis(1200);
/// How long the server has to come back by itself before it is started.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long armed cuts wait for commits to cut.
const COMMITS_WAIT: Duration = Duration::from_secs(5);

/// Injects a fault. Returns whether it hit something.
pub fn inject(
    step: &Step,
    options: &Options,
    servers: &mut Servers,
    clients: &mut Clients,
) -> Result<bool, RunError> {
    let mut random = Random::new(step.pick);
    match step.fault {
        Fault::Backend => {
            let hit = servers.nodes.kill_backend(&mut random)?;
            servers.revive(PATIENCE)?;
            return Ok(hit);
        }
        Fault::Server => {
            servers.nodes.kill_server()?;
            thread::sleep(Duration::from_millis(random.bits() % 200));
            servers.nodes.start()?;
        }
        Fault::Primary => {
            servers.nodes.take_over()?;
            let socket = servers.nodes.socket()?;
            // Clients are let through only now. A client that reached the new primary earlier would
            // commit without any standby that confirms it.
            servers.proxy.control().set_target(socket);
            servers.nodes.rebuild_rest()?;
        }
        Fault::Broker => {
            let at = random.below(clients.brokers.len());
            // Longer than the lease at times, so that another broker takes its partitions over.
            let away = options.lease_ms * (random.bits() % 3);
            clients.kill_broker(at, Duration::from_millis(away))?;
        }
        Fault::Producer => clients.replace_producer(random.below(clients.producers.len()))?,
        Fault::Consumer => clients.replace_consumer(random.below(clients.consumers.len()))?,
        Fault::Stall => {
            let at = random.below(clients.consumers.len());
            stall(&clients.consumers[at], options.lease_ms)?;
        }
        Fault::CutInCommit => {
            let control = any_proxy(servers, &mut random);
            return Ok(cut_in_commit(control, 1 + random.bits() % 3));
        }
        Fault::Cut => return Ok(any_proxy(servers, &mut random).cut_one(&mut random)),
        Fault::DiskFull => {
            let Some(tmpfs) = &servers.tmpfs else {
                return Ok(false);
            };
            let ballast = Ballast::fill(tmpfs.path())?;
            thread::sleep(FULL);
            drop(ballast);
            servers.revive(PATIENCE)?;
        }
    }
    Ok(true)
}

fn stall(process: &Process, lease_ms: u64) -> Result<(), RunError> {
    let failed = |source| RunError::Signal {
        name: process.name().to_owned(),
        source,
    };
    nemesis::stop_process(process.child()).map_err(failed)?;
    thread::sleep(Duration::from_millis(lease_ms * 3 / 2));
    nemesis::resume(process.child()).map_err(failed)
}

/// A proxy at random: the one in front of the server, or one in front of a broker.
fn any_proxy<'a>(servers: &'a Servers, random: &mut Random) -> &'a Control {
    let at = random.below(1 + servers.fronts.len());
    servers
        .proxies()
        .nth(at)
        .unwrap_or(&servers.proxy)
        .control()
}

fn cut_in_commit(control: &Control, commits: u64) -> bool {
    control.arm(commits);
    let deadline = Instant::now() + COMMITS_WAIT;
    while control.armed() > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    let hit = control.armed() < commits;
    // Cuts that found no commit must not hit one later, when another fault is being judged.
    control.arm(0);
    hit
}
