//! Another author's program that does the same job, declared in `peers/NAME.toml`.
//!
//! A peer of Python lives in a virtual environment of its own under the peers' root, installed
//! from exact requirements. It is started like our own program and speaks the same protocol.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::Error;
use crate::definition::line_at;
use crate::executor::{Executor, Exit, Invocation};
use crate::protocol::{self, Request, VersionReply};
use crate::stop::Stop;
use crate::system::System;

/// How long a peer may take to say its version: a large library on a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(120);

/// A peer as its file declares it; whether it is installed is a [`PeerState`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// As it stands in suites and records.
    pub name: String,
    /// The exact version; another one is refused.
    pub version: String,
    /// Changes when data that its scripts made before must be made anew.
    pub data_version: String,
    /// Requirements for pip, all pinned; none for what needs no installation.
    pub install: Vec<String>,
    /// Artifacts of Maven, `GROUP:ARTIFACT:VERSION`. They and what they depend on are copied below
    /// the peer's directory.
    #[serde(default)]
    pub jars: Vec<String>,
    /// Arguments of `cargo install --locked`: a crate with its version, and its features. Its
    /// programs lie in `bin` below the peer's directory.
    #[serde(default)]
    pub cargo: Vec<String>,
    /// Command: `python` is that of its own environment, `dyno` is this program, which speaks some
    /// peers' protocols, and other words that name a script are found beside this file.
    pub run: Vec<String>,
    /// How it promises less than `dyno`, if it does: it may lose what it has answered, for example.
    #[serde(default, deserialize_with = "not_blank")]
    pub promises_less: Option<String>,
    /// What must be on the machine before it can be installed, for people.
    pub needs: Vec<String>,
    /// Directories below its own that an installation removes first.
    pub clean: Vec<String>,
    /// The licence of the peer, by its SPDX name where there is one.
    pub licence: String,
    /// The address of the project, for readers of a report.
    pub homepage: String,
}

/// Whether a peer can take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerState {
    /// Installed in the declared version.
    Ready,
    /// Not, or not in this version; the text says how to install it.
    Missing(String),
}

/// The peers there are, and where they are installed.
#[derive(Debug, Clone)]
pub struct Catalogue {
    peers: Vec<Peer>,
    scripts: PathBuf,
    /// Each peer has a directory of its own here.
    root: PathBuf,
}

impl Catalogue {
    /// Reads every `*.toml` of a directory; its scripts are run from there.
    ///
    /// # Errors
    /// [`Error::Definition`] with file and line, [`Error::Io`].
    pub fn from_dir(dir: &Path, root: &Path) -> Result<Catalogue, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
            let path = entry.map_err(|e| Error::io(dir, e))?.path();
            if path.extension().is_some_and(|x| x == "toml") {
                files.push(path);
            }
        }
        files.sort();
        let mut peers = Vec::new();
        for path in files {
            let text = fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
            peers.push(parse(&path.display().to_string(), &text)?);
        }
        Ok(Catalogue {
            peers,
            scripts: dir.to_path_buf(),
            root: root.to_path_buf(),
        })
    }

    /// Takes files that are built into the program (name, text) and writes them below `root`,
    /// where Python can find them.
    ///
    /// # Errors
    /// As [`Catalogue::from_dir`].
    pub fn built_in(files: &[(&str, &str)], root: &Path) -> Result<Catalogue, Error> {
        let scripts = root.join("scripts");
        fs::create_dir_all(&scripts).map_err(|e| Error::io(&scripts, e))?;
        for (name, text) in files {
            let path = scripts.join(name);
            if fs::read_to_string(&path).is_ok_and(|there| there == *text) {
                continue;
            }
            // By a rename, since another run may be reading the file it replaces.
            let partial = scripts.join(format!("{name}.{}.partial", std::process::id()));
            fs::write(&partial, text).map_err(|e| Error::io(&partial, e))?;
            fs::rename(&partial, &path).map_err(|e| Error::io(&path, e))?;
        }
        let mut peers = Vec::new();
        for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".toml")) {
            peers.push(parse(&format!("peers/{name}"), text)?);
        }
        Ok(Catalogue {
            peers,
            scripts,
            root: root.to_path_buf(),
        })
    }

    /// All declared peers, in the order of their file names.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// A peer by its name.
    ///
    /// # Errors
    /// [`Error::Unknown`] with the names there are.
    pub fn peer(&self, name: &str) -> Result<&Peer, Error> {
        self.peers.iter().find(|p| p.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.peers.iter().map(|p| p.name.as_str()).collect();
            Error::unknown("peer", name, &known)
        })
    }

    /// Where a peer is installed.
    pub fn home(&self, peer: &Peer) -> PathBuf {
        self.root.join(&peer.name)
    }

    /// Whether it is installed as declared; starts nothing.
    pub fn state(&self, peer: &Peer) -> PeerState {
        let declared = peer.requirements();
        if declared.is_empty() {
            return PeerState::Ready;
        }
        let how = format!("install it with `dyno peers install {}`", peer.name);
        match fs::read_to_string(self.marker(peer)) {
            Ok(there) if there.trim() == declared => PeerState::Ready,
            Ok(there) => PeerState::Missing(format!(
                "{} is installed and {declared} is declared; {how}",
                there.trim(),
            )),
            Err(_) => PeerState::Missing(format!("not installed; {how}")),
        }
    }

    /// The directory of the peer's jars, for a class path.
    pub fn jars(&self, peer: &Peer) -> PathBuf {
        self.home(peer).join("jars")
    }

    /// A program that `cargo install` made for the peer.
    pub fn program(&self, peer: &Peer, name: &str) -> PathBuf {
        self.home(peer).join("bin").join(name)
    }

    /// How to start a peer, or why it takes no part.
    pub fn system(&self, peer: &Peer) -> System {
        // A word that names a script beside the declaration is that script whatever the working
        // directory is: children are started in their scratch directories.
        let mut words = peer.run.iter().map(|word| {
            let script = self.scripts.join(word);
            if word == "python" {
                self.home(peer).join("venv/bin/python").into_os_string()
            } else if let ("dyno", Ok(program)) = (word.as_str(), env::current_exe()) {
                program.into_os_string()
            } else if script.is_file() {
                script.into_os_string()
            } else {
                word.into()
            }
        });
        System {
            name: peer.name.clone(),
            program: words.next().map(PathBuf::from).unwrap_or_default(),
            args: words.collect(),
            version: peer.version.clone(),
            data_version: peer.data_version.clone(),
            promises_less: peer.promises_less.clone(),
            missing: match self.state(peer) {
                PeerState::Ready => None,
                PeerState::Missing(reason) => Some(reason),
            },
        }
    }

    /// Starts a peer and asks for its version, which must be the declared one.
    ///
    /// # Errors
    /// [`Error::Peer`] when it is missing, does not answer or is another version.
    pub fn verify(
        &self,
        peer: &Peer,
        executor: &mut dyn Executor,
        stop: &Stop,
    ) -> Result<(), Error> {
        let system = self.system(peer);
        let fail = |reason: String| Error::Peer {
            name: peer.name.clone(),
            reason,
        };
        if let Some(reason) = system.missing {
            return Err(fail(reason));
        }
        let ended = executor.execute(
            &Invocation {
                system: system.name,
                program: system.program,
                args: system.args,
                request: Request::version(),
                time_limit: VERSION_LIMIT,
            },
            stop,
        )?;
        if ended.exit != Exit::Code(0) {
            return Err(fail(format!("{:?}: {}", ended.exit, ended.stderr.trim())));
        }
        let reply: VersionReply = protocol::parse_last_line(&ended.stdout).map_err(&fail)?;
        // A figure is published under the declared version, so a peer of any other is refused
        // although it would run.
        if reply.version != peer.version {
            return Err(fail(format!(
                "it says that it is {} and {} is declared",
                reply.version, peer.version
            )));
        }
        Ok(())
    }

    /// Holds the requirements that are installed; written last.
    pub(crate) fn marker(&self, peer: &Peer) -> PathBuf {
        self.home(peer).join("installed")
    }
}

/// The directory below which each peer has its own, after the XDG base directory specification.
/// `None` if neither `XDG_DATA_HOME` nor `HOME` says where data lie.
pub fn peers_root() -> Option<PathBuf> {
    Some(user_directory("XDG_DATA_HOME", ".local/share")?.join("dynolab/peers"))
}

/// The directory that a variable of the XDG base directory specification names, or else the one
/// below the home directory. `None` if `HOME` is needed and not set.
pub fn user_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The specification says that relative paths are to be ignored.
    let named = env::var_os(variable)
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute());
    named.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(below_home)))
}

fn not_blank<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(value)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("the text is empty"));
    }
    Ok(Some(text))
}

fn parse(file: &str, text: &str) -> Result<Peer, Error> {
    toml::from_str(text).map_err(|e| Error::Definition {
        file: file.to_string(),
        line: line_at(text, e.span().map_or(0, |span| span.start)),
        reason: e.message().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::ChildExecutor;

    const SHELL: &str = r#"
name = "shell"
version = "1.0"
data_version = "1"
install = ["shell==1.0"]
run = ["sh", "answer.sh"]
needs = []
clean = []
licence = "-"
homepage = "-"
"#;

    fn catalogue(root: &Path, answer: &str) -> Catalogue {
        Catalogue::built_in(&[("shell.toml", SHELL), ("answer.sh", answer)], root).expect("good")
    }

    #[test]
    fn a_peer_is_found_asked_and_believed_only_in_its_version() {
        let root = tempfile::tempdir().expect("a directory");
        let peers = catalogue(root.path(), "echo '{\"version\":\"1.0\"}'");
        let peer = peers.peer("shell").expect("declared").clone();
        let PeerState::Missing(reason) = peers.state(&peer) else {
            panic!("nothing is installed");
        };
        assert!(reason.contains("dyno peers install shell"), "{reason}");
        fs::create_dir_all(peers.home(&peer)).expect("a directory");
        fs::write(peers.home(&peer).join("installed"), "shell==1.0").expect("a marker");
        assert_eq!(peers.state(&peer), PeerState::Ready);
        let verify = |peers: &Catalogue| {
            peers.verify(&peer, &mut ChildExecutor::default(), &Stop::default())
        };
        verify(&peers).expect("the declared version");
        let e = verify(&catalogue(root.path(), "echo '{\"version\":\"1.1\"}'")).expect_err("other");
        assert!(
            e.to_string()
                .contains("says that it is 1.1 and 1.0 is declared"),
            "{e}"
        );
        let e = verify(&catalogue(root.path(), "echo no >&2; exit 4")).expect_err("fails");
        assert!(e.to_string().contains("no"), "{e}");
        assert!(
            peers
                .peer("duckdb")
                .expect_err("unknown")
                .to_string()
                .contains("shell")
        );
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_line() {
        let root = tempfile::tempdir().expect("a directory");
        let text = SHELL.replace("licence", "license");
        let e =
            Catalogue::built_in(&[("shell.toml", &text)], root.path()).expect_err("unknown key");
        assert!(e.to_string().starts_with("peers/shell.toml:9: "), "{e}");
        let text = format!("{SHELL}promises_less = \" \"\n");
        let e = Catalogue::built_in(&[("shell.toml", &text)], root.path()).expect_err("blank");
        assert!(e.to_string().starts_with("peers/shell.toml:11: "), "{e}");
        assert!(e.to_string().contains("the text is empty"), "{e}");
    }
}
