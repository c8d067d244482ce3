//! `dyno serve --link`: the other side of `dyno limits --link`.

use std::thread;
use std::time::Duration;

use dyno_machine::{LinkServer, LinkServerOptions};
use dyno_serve::Token;
use dyno_suite::Stop;
use tracing::info;

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::{logging, secrets, terminal};

/// Between two looks whether to stop.
const TICK: Duration = Duration::from_millis(50);

pub fn run(args: &ServeArgs, stop: &Stop) -> anyhow::Result<Exit> {
    logging::start(args.log);
    let token = secrets::token(args.token_file.as_deref())?;
    let token = token.as_deref().map(Token::new).transpose()?;
    let server = LinkServer::start(LinkServerOptions::new(args.link, token))?;
    terminal::print(&format!("listening at {}\n", server.address()))?;
    info!("answering link tests");
    while !stop.asked() {
        thread::sleep(TICK);
    }
    Ok(Exit::Done)
}
