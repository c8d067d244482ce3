//! Processes of a test: this program again, as a holder, a pager or a guest. A guest takes orders
//! by lines on its standard input, and answers each by a line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dyno_pages::PAGE_BYTES;
use dyno_pages::check::page_of;
use dyno_pages_hold::{Client, Holder, start};
use dyno_pages_microvm::stand_in::GuestMemory;
use dyno_pages_microvm::{Options, Pager, Snapshot, held_snapshot};
use dyno_pages_region::RegionError;

/// How many pages the snapshot has.
pub const PAGES: u64 = 720;
const ROLE: &str = "DYNO_MICROVM_ROLE";
const FOLDER: &str = "DYNO_MICROVM_FOLDER";
const THREADS: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a snapshot in it, and a holder.
pub struct Scene {
    pub folder: tempfile::TempDir,
    pub holder: Client,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _gone_is_fine = self.holder.end();
    }
}

impl Scene {
    /// `None` where faults cannot be handed over.
    pub fn new() -> Option<Scene> {
        match GuestMemory::map(&[1], true) {
            Err(error @ (RegionError::NotAllowed { .. } | RegionError::NotSupported { .. })) => {
                println!("skipped: memory of microVMs: {error}");
                return None;
            }
            made => drop(made.expect("memory")),
        }
        let folder = tempfile::tempdir().expect("a directory");
        let bytes: Vec<u8> = (0..PAGES).flat_map(content).collect();
        std::fs::write(folder.path().join("memory"), bytes).expect("space");
        let socket = folder.path().join("hold");
        let holder = start(again("holder", folder.path()), &socket, PATIENCE).expect("a holder");
        Some(Scene { folder, holder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn options(&self) -> Options {
        Options::new(self.path("pager"))
    }

    /// A pager in this process.
    pub fn pager(&self, options: Options) -> Pager {
        let snapshot = Snapshot::pack(&self.path("memory")).expect("a snapshot");
        Pager::start(snapshot, self.holder.clone(), options).expect("a pager")
    }

    /// A pager in a process of its own, which answers when it listens.
    pub fn pager_process(&self) -> Process {
        let mut pager = Process::start("pager", self.folder.path());
        assert_eq!(pager.heard(), "listening");
        pager
    }

    /// A guest that has sent its layout.
    pub fn guest(&self) -> Process {
        let mut guest = Process::start("guest", self.folder.path());
        assert_eq!(guest.heard(), "sent");
        guest
    }

    /// Names that the holder has.
    pub fn held(&self) -> Vec<String> {
        self.holder.list().expect("a holder")
    }
}

/// What page `number` of the snapshot has.
pub fn content(number: u64) -> [u8; PAGE_BYTES] {
    // Every tenth page is equal to others.
    if number % 10 == 9 {
        page_of(4)
    } else {
        page_of(number)
    }
}

/// Waits until `is` holds; that it comes is what the test asserts.
pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::yield_now();
    }
}

/// A process that is killed with the test.
pub struct Process {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    fn start(role: &str, folder: &Path) -> Process {
        let mut child = again(role, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let orders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Process {
            child,
            orders,
            answers,
        }
    }

    /// Sends an order and returns the answer.
    pub fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.heard()
    }

    pub fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it listens");
    }

    /// The next answer; the harness of the tests prints lines too, which have no mark.
    pub fn heard(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let bytes = self.answers.read_line(&mut line).expect("text");
            if bytes == 0 {
                return String::from("the process has ended");
            }
            if let Some((_, answer)) = line.split_once("guest: ") {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub fn kill(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("its end")
    }
}

fn again(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder);
    command
}

fn say(text: &str) {
    // On one line with nothing else, whatever the harness has printed without an end.
    println!("\nguest: {text}");
}

/// Plays the part of this process, if it has one.
pub fn play() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let folder = PathBuf::from(std::env::var(FOLDER).expect("a path"));
    match role.as_str() {
        "holder" => Holder::bind(&folder.join("hold"))
            .expect("a place")
            .run()
            .expect("a socket"),
        "pager" => pager(&folder),
        _ => guest(&folder),
    }
}

fn pager(folder: &Path) {
    let holder = Client::connect(&folder.join("hold")).expect("a holder");
    let snapshot = held_snapshot(&holder).expect("a holder");
    let snapshot = snapshot
        .map_or_else(|| Snapshot::pack(&folder.join("memory")), Ok)
        .expect("a snapshot");
    let options = Options::new(folder.join("pager"));
    let _pager = Pager::start(snapshot, holder, options).expect("a pager");
    say("listening");
    // Until its end is closed, or it is killed.
    let _ = std::io::stdin().lines().count();
}

fn guest(folder: &Path) {
    let mut memory = GuestMemory::map(&[PAGES / 3, PAGES - PAGES / 3], true).expect("memory");
    let _connection: UnixStream = memory.hand_over(&folder.join("pager")).expect("a pager");
    let snapshot = std::fs::read(folder.join("memory")).expect("a snapshot");
    let touched = AtomicU64::new(0);
    say("sent");
    for order in std::io::stdin().lines() {
        let order = order.expect("text");
        let mut words = order.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut numbers = words.map(|word| word.parse::<u64>().expect("a number"));
        let range = |numbers: &mut dyn Iterator<Item = u64>| {
            numbers.next().expect("a first")..numbers.next().expect("an end")
        };
        match verb {
            // Several threads touch these pages, each in an order of its own.
            "compare" => {
                let pages = range(&mut numbers);
                say(&format!(
                    "{} wrong",
                    compare(&memory, &snapshot, pages, &touched)
                ));
            }
            "touch" => {
                for page in numbers {
                    assert_eq!(memory.touch(page), snapshot[page as usize * PAGE_BYTES]);
                }
                say("touched");
            }
            "write" => {
                range(&mut numbers).for_each(|page| memory.write(page, 77));
                say("written");
            }
            "give-up" => {
                for page in range(&mut numbers) {
                    memory.give_up(page).expect("memory");
                }
                say("given up");
            }
            "zeros" => {
                let mut page = [1; PAGE_BYTES];
                let zeros = range(&mut numbers).filter(|&number| {
                    memory.read(number, &mut page);
                    page == [0; PAGE_BYTES]
                });
                say(&format!("{} zeros", zeros.count()));
            }
            // As "compare", while another thread gives pages up again and again.
            "churn" => {
                let churned = range(&mut numbers);
                let pages = churned.end..PAGES;
                let wrong = churn(&memory, &snapshot, churned, pages, &touched);
                say(&format!("{wrong} wrong"));
            }
            other => panic!("{other}"),
        }
    }
}

fn compare(
    memory: &GuestMemory,
    snapshot: &[u8],
    pages: std::ops::Range<u64>,
    touched: &AtomicU64,
) -> u64 {
    let wrong = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (wrong, pages) = (&wrong, pages.clone());
            scope.spawn(move || {
                let count = pages.end - pages.start;
                let mut page = [0; PAGE_BYTES];
                for step in 0..count {
                    // 7,919 is a prime, so every page is met once.
                    let number = pages.start + (step * 7919 + thread * count / THREADS) % count;
                    memory.read(number, &mut page);
                    let at = number as usize * PAGE_BYTES;
                    if page[..] != snapshot[at..at + PAGE_BYTES] {
                        wrong.fetch_add(1, Relaxed);
                    }
                    if touched.fetch_add(1, Relaxed) == count {
                        say("halfway");
                    }
                }
            });
        }
    });
    touched.store(0, Relaxed);
    wrong.into_inner()
}

fn churn(
    memory: &GuestMemory,
    snapshot: &[u8],
    churned: std::ops::Range<u64>,
    pages: std::ops::Range<u64>,
    touched: &AtomicU64,
) -> u64 {
    let wrong = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = [0; PAGE_BYTES];
            for round in 0..10 {
                for number in churned.clone() {
                    // Half of the pages are touched before they are given up for the first time.
                    if round > 0 || number % 2 == 0 {
                        memory.read(number, &mut page);
                    }
                    memory.give_up(number).expect("memory");
                    memory.read(number, &mut page);
                    wrong.fetch_add(u64::from(page != [0; PAGE_BYTES]), Relaxed);
                }
            }
        });
        wrong.fetch_add(compare(memory, snapshot, pages, touched), Relaxed);
    });
    wrong.into_inner()
}
