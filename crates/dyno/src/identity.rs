//! Which program this is, for the record.

use std::env;
use std::fs::File;
use std::io::Read;

use anyhow::Context;
use dyno_record::Program;
use dyno_suite::{DYNO, System};
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

/// Our own program as a system: it starts itself, through the same door as a peer.
pub fn system() -> anyhow::Result<System> {
    Ok(System {
        name: DYNO.to_string(),
        program: env::current_exe().context("cannot find this program's own file")?,
        args: vec!["rig".into()],
        version: env!("CARGO_PKG_VERSION").to_string(),
        data_version: dyno_rigs::DATA_VERSION.to_string(),
        missing: None,
    })
}

fn executable_hash() -> anyhow::Result<String> {
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
