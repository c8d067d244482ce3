//! `pages-restore`: the memory of microVMs that are restored from one snapshot: by our pager, by a
//! plain one, and by the kernel alone, which maps the file. The guest is a stand-in that speaks
//! Firecracker's handshake and touches pages. Our pager is this program's public command.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dyno_pages::PAGE_BYTES;
use dyno_pages_microvm::stand_in::GuestMemory;
use dyno_pages_region::RegionError;
use dyno_record::Answer;
use dyno_suite::protocol::{Phase, Reply, Request};

use super::own::{Server, own, store_name};
use super::passes::shuffled;
use super::plain_pager::{self, Mapped};
use super::source::{Source, hash_of};
use super::{PagesError, store};
use crate::used::{cpu_of_s, proc_bytes};
use crate::{Params, RigError};

/// A pager that maps the file and copies a page for each fault, within the rig.
pub(crate) const PLAIN_PAGER: &str = "plain-pager";
/// The kernel, which maps the file.
pub(crate) const PAGE_CACHE: &str = "page-cache";
/// How long our pager records the first restore for its working set.
const RECORDED: &str = "500ms";
/// How long it may take from there until the working set is written.
const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of the restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestoreMode {
    /// Each is gone before the next one begins; their touches are timed.
    OneByOne,
    /// All stay; their memory is measured.
    Together,
}

struct Load {
    mode: RestoreMode,
    restores: u64,
    /// Pages that each touches, in random order.
    touched: usize,
    threads: usize,
    /// Whether our pager has recorded which pages a restore touches, and brings them ahead.
    ahead: bool,
}

/// `restores` microVMs, each of which touches `touched` pages with `threads` threads: one after the
/// other, with the time from the connection to the last page; or together, with the memory of all
/// of them and of the pager.
pub(crate) fn restore(
    params: &mut Params<'_>,
    request: &Request,
    peer: Option<&str>,
) -> Result<Reply, RigError> {
    let mode = match params.text("kept")? {
        "one-by-one" => RestoreMode::OneByOne,
        "together" => RestoreMode::Together,
        other => {
            let text = format!("`{other}` is neither one-by-one nor together");
            return Err(params.wrong("kept", text));
        }
    };
    let ahead = match params.text_or_none("ahead")? {
        None | Some("no") => false,
        Some("yes") => true,
        Some(other) => {
            return Err(params.wrong("ahead", format!("`{other}` is neither yes nor no")));
        }
    };
    let mut load = Load {
        mode,
        restores: params.count("restores")?.max(1),
        touched: params.count("touched")? as usize,
        threads: params.count("threads")?.max(1) as usize,
        ahead,
    };
    let source = store::source(params)?;
    if load.touched == 0 || load.touched as u64 > source.count() {
        let text = format!(
            "{}, and the snapshot has {} pages",
            load.touched,
            source.count()
        );
        return Err(params.wrong("touched", text));
    }
    if request.phase == Phase::Verify {
        load.restores = 1;
    }
    Ok(load.measure(&source, &request.scratch, peer)?)
}

impl Load {
    fn measure(
        &self,
        source: &Source,
        scratch: &Path,
        peer: Option<&str>,
    ) -> Result<Reply, PagesError> {
        let snapshot = scratch.join("memory");
        write(source, &snapshot)?;
        let own_before = memory_bytes(std::process::id())?;
        let restorer = Restorer::start(peer, &snapshot, scratch, self.ahead)?;
        if self.ahead {
            self.record(&restorer, source)?;
        }
        let (last, metrics) = match self.mode {
            RestoreMode::OneByOne => self.one_by_one(&restorer, source)?,
            RestoreMode::Together => self.together(&restorer, source, own_before)?,
        };
        let mut page = [0; PAGE_BYTES];
        let found = hash_of(source.count(), |number| {
            last.read(number, &mut page);
            page
        });
        if found != source.hash() {
            let text = "a restored memory has other pages than the snapshot";
            return Err(PagesError::Wrong(text.to_owned()));
        }
        Ok(Reply {
            answer: Some(Answer {
                count: source.count(),
                checksum: format!("{found:032x}"),
            }),
            metrics,
            ..Reply::default()
        })
    }

    /// The pages that a restore touches. The same ones in all of them, or others in each.
    fn pages(&self, source: &Source, seed: u64) -> Vec<u64> {
        let mut order = shuffled(source.count() as usize, seed);
        order.truncate(self.touched);
        order
    }

    /// Has our pager record a working set.
    fn record(&self, restorer: &Restorer, source: &Source) -> Result<(), PagesError> {
        let Restorer::Ours { working_set, .. } = restorer else {
            return Ok(());
        };
        let memory = restorer.restore(source)?;
        self.touch(&memory, &self.pages(source, 1));
        let until = Instant::now() + PATIENCE;
        while !working_set.exists() {
            if Instant::now() > until {
                let text = format!("there is no working set after {PATIENCE:?}");
                return Err(PagesError::Wrong(text));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn touch(&self, memory: &Memory, pages: &[u64]) {
        thread::scope(|scope| {
            for part in pages.chunks(pages.len().div_ceil(self.threads)) {
                scope.spawn(move || part.iter().for_each(|page| memory.touch(*page)));
            }
        });
    }

    fn one_by_one(&self, restorer: &Restorer, source: &Source) -> Result<Measured, PagesError> {
        let pages = self.pages(source, 1);
        let cpu_before = restorer.cpu_s()?;
        let mut times = Vec::new();
        let mut last = None;
        for _ in 0..self.restores {
            // What the one before had is given back outside the time.
            drop(last.take());
            let began = Instant::now();
            let memory = restorer.restore(source)?;
            self.touch(&memory, &pages);
            times.push(began.elapsed().as_secs_f64());
            last = Some(memory);
        }
        let touched = (pages.len() * times.len()) as f64;
        let sum_s: f64 = times.iter().sum();
        let mut metrics = BTreeMap::from([
            ("throughput".to_owned(), touched / sum_s),
            // Of one restore, as the answer counts the pages of one.
            ("time".to_owned(), sum_s / times.len() as f64),
            ("restore-time".to_owned(), median(&mut times)),
        ]);
        if let (Some(before), Some(after)) = (cpu_before, restorer.cpu_s()?) {
            metrics.insert("pager-cpu-us".to_owned(), (after - before) * 1e6 / touched);
        }
        let last = last.ok_or(PagesError::Panicked)?;
        Ok((last, metrics))
    }

    fn together(
        &self,
        restorer: &Restorer,
        source: &Source,
        own_before: u64,
    ) -> Result<Measured, PagesError> {
        let mut memories = Vec::new();
        for restore in 0..self.restores {
            let memory = restorer.restore(source)?;
            self.touch(&memory, &self.pages(source, 1 + restore));
            memories.push(memory);
        }
        let guests = memory_bytes(std::process::id())?.saturating_sub(own_before);
        let pager = restorer.memory_bytes()?;
        let metrics = BTreeMap::from([
            ("bytes".to_owned(), (guests + pager) as f64),
            ("pager-bytes".to_owned(), pager as f64),
            (
                "guest-bytes".to_owned(),
                guests as f64 / self.restores as f64,
            ),
        ]);
        let last = memories.pop().ok_or(PagesError::Panicked)?;
        Ok((last, metrics))
    }
}

/// The last memory that was restored, to be compared, and what was measured.
type Measured = (Memory, BTreeMap<String, f64>);

/// What gives a restored machine its pages.
enum Restorer {
    Ours {
        server: Option<Server>,
        name: String,
        socket: PathBuf,
        working_set: PathBuf,
    },
    Plain {
        socket: PathBuf,
    },
    Kernel {
        snapshot: PathBuf,
    },
}

impl Restorer {
    fn start(
        peer: Option<&str>,
        snapshot: &Path,
        scratch: &Path,
        ahead: bool,
    ) -> Result<Restorer, PagesError> {
        let socket = scratch.join("uffd");
        match peer {
            None => ours(snapshot, socket, scratch.join("working-set"), ahead),
            Some(PLAIN_PAGER) => {
                plain_pager::serve(snapshot, &socket)?;
                Ok(Restorer::Plain { socket })
            }
            Some(PAGE_CACHE) => Ok(Restorer::Kernel {
                snapshot: snapshot.to_owned(),
            }),
            Some(other) => {
                let text = format!("no system is called `{other}` here");
                Err(PagesError::Refused(text))
            }
        }
    }

    fn restore(&self, source: &Source) -> Result<Memory, PagesError> {
        let socket = match self {
            Restorer::Ours { socket, .. } | Restorer::Plain { socket } => socket,
            Restorer::Kernel { snapshot } => return Mapped::open(snapshot).map(Memory::Mapped),
        };
        let memory = GuestMemory::map(&[source.count()], true).map_err(failed)?;
        let connection = memory
            .hand_over(socket)
            .map_err(|e| PagesError::system(socket.display().to_string(), e))?;
        Ok(Memory::Handed {
            memory,
            _connection: connection,
        })
    }

    /// Processor seconds of our pager so far. The peers' are those of this process.
    fn cpu_s(&self) -> Result<Option<f64>, PagesError> {
        let Restorer::Ours {
            server: Some(server),
            ..
        } = self
        else {
            return Ok(None);
        };
        let failed = |e| PagesError::system("the clock of our pager", e);
        cpu_of_s(server.pid()).map(Some).map_err(failed)
    }

    /// Memory of our pager, the packed snapshot included. A plain one has its mapping in this
    /// process, and the kernel needs none.
    fn memory_bytes(&self) -> Result<u64, PagesError> {
        match self {
            Restorer::Ours {
                server: Some(server),
                ..
            } => memory_bytes(server.pid()),
            _ => Ok(0),
        }
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        if let Restorer::Ours { server, name, .. } = self {
            // This process lives on, so the pager leaves its machines to the next pager, unless all
            // are given up. Where none is left it is gone already.
            *server = None;
            let _ = own(&["pages", "detach", "--name", name]);
        }
    }
}

fn ours(
    snapshot: &Path,
    socket: PathBuf,
    working_set: PathBuf,
    ahead: bool,
) -> Result<Restorer, PagesError> {
    let name = store_name();
    let text = |path: &Path| path.display().to_string();
    let (snapshot, at, set) = (text(snapshot), text(&socket), text(&working_set));
    let mut arguments = vec![
        "pages",
        "pager",
        "--name",
        &name,
        "--snapshot",
        &snapshot,
        "--socket",
        &at,
    ];
    if ahead {
        arguments.extend(["--working-set", &set, "--record-for", RECORDED])
    } else {
        arguments.push("--no-prefetch")
    }
    let server = Server::start(&arguments)?;
    Ok(Restorer::Ours {
        server: Some(server),
        name,
        socket,
        working_set,
    })
}

/// Memory of a guest.
enum Memory {
    Handed {
        memory: GuestMemory,
        /// Its end tells the pager that the machine may have ended.
        _connection: UnixStream,
    },
    Mapped(Mapped),
}

impl Memory {
    fn touch(&self, page: u64) {
        black_box(match self {
            Memory::Handed { memory, .. } => memory.touch(page),
            Memory::Mapped(mapped) => mapped.bytes()[page as usize * PAGE_BYTES],
        });
    }

    fn read(&self, page: u64, into: &mut dyno_pages::Page) {
        match self {
            Memory::Handed { memory, .. } => memory.read(page, into),
            Memory::Mapped(mapped) => {
                let from = page as usize * PAGE_BYTES;
                into.copy_from_slice(&mapped.bytes()[from..from + PAGE_BYTES]);
            }
        }
    }
}

fn failed(error: RegionError) -> PagesError {
    PagesError::Refused(error.to_string())
}

/// Why no memory can be handed to a pager on this machine; `None` if it can.
pub(crate) fn restore_missing() -> Option<String> {
    GuestMemory::map(&[1], true)
        .err()
        .map(|error| error.to_string())
}

fn write(source: &Source, path: &Path) -> Result<(), PagesError> {
    let failed = |e| PagesError::system(path.display().to_string(), e);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut page = [0; PAGE_BYTES];
    for number in 0..source.count() {
        source.fill(number, &mut page);
        file.write_all(&page).map_err(failed)?;
    }
    let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
    // Written back now, so that it is not while something is timed.
    file.sync_all().map_err(failed)
}

/// Memory of a process, shared pages by share, with its page tables.
fn memory_bytes(pid: u32) -> Result<u64, PagesError> {
    let field = |file: &str, name: &str| {
        let path = format!("/proc/{pid}/{file}");
        proc_bytes(&path, name).map_err(|e| PagesError::system(path.clone(), e))
    };
    Ok(field("smaps_rollup", "Pss:")? + field("status", "VmPTE:")?)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
