//! Installs peers: packages of Python, jars of Maven, and crates that are compiled.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::peer::{Catalogue, Peer};

impl Peer {
    /// All that an installation fetches, as the marker has it; empty if there is nothing to
    /// install.
    pub fn requirements(&self) -> String {
        let all: Vec<&str> = [&self.install, &self.jars, &self.cargo]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        all.join(" ")
    }

    /// Whether its installation compiles it, which takes minutes and all cores.
    pub fn is_compiled(&self) -> bool {
        !self.cargo.is_empty()
    }
}

impl Catalogue {
    /// Makes its environment anew and installs its requirements into it.
    ///
    /// # Errors
    /// [`Error::Peer`] with what pip, Maven, Cargo or Python said.
    pub fn install(&self, peer: &Peer) -> Result<(), Error> {
        let home = self.home(peer);
        fs::create_dir_all(&home).map_err(|e| Error::io(&home, e))?;
        // The marker goes first: an installation that is cut short must not look like a whole one.
        // It need not be there, as in a first installation.
        let _ = fs::remove_file(self.marker(peer));
        for name in &peer.clean {
            let dir = home.join(name);
            if dir.exists() {
                fs::remove_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
            }
        }
        if !peer.install.is_empty() {
            packages(peer, &home)?;
        }
        if !peer.jars.is_empty() {
            jars(peer, &home, &self.jars(peer))?;
        }
        if peer.is_compiled() {
            crates(peer, &home)?;
        }
        let marker = self.marker(peer);
        fs::write(&marker, peer.requirements()).map_err(|e| Error::io(&marker, e))
    }
}

fn packages(peer: &Peer, home: &Path) -> Result<(), Error> {
    let venv = home.join("venv");
    step(
        peer,
        Command::new("python3").args(["-m", "venv"]).arg(&venv),
    )?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
    pip.arg("--disable-pip-version-check").args(&peer.install);
    step(peer, &mut pip)
}

fn jars(peer: &Peer, home: &Path, into: &Path) -> Result<(), Error> {
    let pom = home.join("pom.xml");
    let text = pom_of(peer).map_err(|reason| Error::Peer {
        name: peer.name.clone(),
        reason,
    })?;
    fs::write(&pom, text).map_err(|e| Error::io(&pom, e))?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(&pom);
    maven.arg("dependency:copy-dependencies");
    maven.arg(format!("-DoutputDirectory={}", into.display()));
    step(peer, &mut maven)
}

fn crates(peer: &Peer, home: &Path) -> Result<(), Error> {
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--force", "--root"]);
    cargo.arg(home).args(&peer.cargo);
    // From a directory of its own, where no file of another project names a toolchain.
    step(peer, cargo.current_dir(home))
}

/// A project of Maven that has nothing but the peer's jars as dependencies.
fn pom_of(peer: &Peer) -> Result<String, String> {
    let mut dependencies = String::new();
    for jar in &peer.jars {
        let parts: Vec<&str> = jar.split(':').collect();
        let [group, artifact, version] = parts[..] else {
            return Err(format!("jar `{jar}` is not GROUP:ARTIFACT:VERSION"));
        };
        dependencies += &format!(
            "    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version></dependency>\n"
        );
    }
    Ok(format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  \
         <modelVersion>4.0.0</modelVersion>\n  <groupId>dynolab</groupId>\n  \
         <artifactId>{}</artifactId>\n  <version>1</version>\n  <packaging>pom</packaging>\n  \
         <dependencies>\n{dependencies}  </dependencies>\n</project>\n",
        peer.name
    ))
}

fn step(peer: &Peer, command: &mut Command) -> Result<(), Error> {
    let fail = |reason: String| Error::Peer {
        name: peer.name.clone(),
        reason: format!("{reason} (it needs {})", peer.needs.join(", ")),
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|e| fail(format!("{program} could not be started: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    // Python's venv module complains on stdout.
    let printed = [output.stdout, output.stderr].concat();
    Err(fail(format!(
        "{program} failed: {}",
        String::from_utf8_lossy(&printed).trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerState;

    const TOOL: &str = r#"
name = "tool"
version = "1.0"
data_version = "1"
install = []
jars = ["org.a:tool_2:1.5"]
cargo = ["tool@1.0.0", "--features", "all"]
run = ["sh", "answer.sh"]
needs = []
clean = []
licence = "-"
homepage = "-"
"#;

    #[test]
    fn a_peer_of_jars_and_crates_is_missing_until_all_of_them_are_there() {
        let root = tempfile::tempdir().expect("a directory");
        let peers = Catalogue::built_in(&[("tool.toml", TOOL)], root.path()).expect("good");
        let peer = peers.peer("tool").expect("declared");
        assert!(peer.is_compiled());
        assert!(matches!(peers.state(peer), PeerState::Missing(_)));
        fs::create_dir_all(peers.home(peer)).expect("a directory");
        fs::write(peers.marker(peer), "org.a:tool_2:1.5").expect("a marker");
        assert!(matches!(peers.state(peer), PeerState::Missing(_)));
        let all = "org.a:tool_2:1.5 tool@1.0.0 --features all";
        fs::write(peers.marker(peer), all).expect("a marker");
        assert_eq!(peers.state(peer), PeerState::Ready);
        assert!(peers.program(peer, "tool").ends_with("tool/bin/tool"));
    }

    #[test]
    fn jars_become_dependencies_of_a_project() {
        let root = tempfile::tempdir().expect("a directory");
        let peers = Catalogue::built_in(&[("tool.toml", TOOL)], root.path()).expect("good");
        let mut peer = peers.peer("tool").expect("declared").clone();
        let pom = pom_of(&peer).expect("three parts");
        let wanted =
            "<groupId>org.a</groupId><artifactId>tool_2</artifactId><version>1.5</version>";
        assert!(pom.contains(wanted), "{pom}");
        peer.jars = vec!["tool".to_owned()];
        let reason = pom_of(&peer).expect_err("one part");
        assert!(
            reason.contains("`tool` is not GROUP:ARTIFACT:VERSION"),
            "{reason}"
        );
    }
}
