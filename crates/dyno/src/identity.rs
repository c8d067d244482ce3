//! Which program this is, for the record.

use std::env;
use std::fs::File;
use std::io::Read;

use anyhow::Context;
use dyno_machine::BuiltInLoad;
use dyno_record::Program;
use dyno_suite::{DYNO, LoadCommand, System};
use twox_hash::XxHash3_128;

/// Version, hash of the executable, revision and profile.
pub fn program() -> anyhow::Result<Program> {
    Ok(Program {
        version: env!("CARGO_PKG_VERSION").to_string(),
        hash: executable_hash()?,
        git_revision: env!("DYNO_GIT_REVISION").to_string(),
        profile: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
        .to_string(),
    })
}

/// Our own program as a system: it is started as a child with the same protocol as a peer.
pub fn system() -> anyhow::Result<System> {
    Ok(System {
        name: DYNO.to_string(),
        program: env::current_exe().context("cannot find this program's own file")?,
        args: vec!["rig".into()],
        version: env!("CARGO_PKG_VERSION").to_string(),
        data_version: dyno_rigs::DATA_VERSION.to_string(),
        promises_less: None,
        missing: None,
    })
}

/// A load beside samples, as a child of this program: one of those built in by its name, or else a
/// shell command.
pub fn load(text: &str) -> anyhow::Result<LoadCommand> {
    let args = match BuiltInLoad::named(text) {
        Some(load) => vec!["beside".into(), load.name().into()],
        None => vec!["beside".into(), "shell".into(), "--".into(), text.into()],
    };
    Ok(LoadCommand {
        text: text.to_string(),
        program: env::current_exe().context("cannot find this program's own file")?,
        args,
    })
}

fn executable_hash() -> anyhow::Result<String> {
    // The whole file is read, in pieces. Two builds of one revision may differ, and the record must
    // tell which one ran.
    let path = env::current_exe().context("cannot find this program's own file")?;
    let mut file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hasher = XxHash3_128::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file
            .read(&mut buffer)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if n == 0 {
            return Ok(format!("{:032x}", hasher.finish_128()));
        }
        hasher.write(&buffer[..n]);
    }
}
