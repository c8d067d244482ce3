//! `pages-corpus`: one file for each class of pages, so that all systems of a run get the same
//! ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dyno_pages::corpus::{Class, Corpus, Places};
use dyno_pages::{PAGE_BYTES, Page};
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};
use dyno_tpch::{Scale, Table};
use dyno_tpch_files::{Destination, Format, Job, Progress, SinkKind, run};

use super::PagesError;
use super::passes::shuffled;
use crate::pubsub::{FlowError, Server, connect};
use crate::{Params, RigError};

/// All real classes together, in a random order.
pub(super) const REAL: &str = "real";
/// Scale factor of the Parquet files: about 20 MB.
const PARQUET_SCALE: f64 = 0.1;

/// Writes `CLASS.pages` for each class that this machine has, of up to `pages` pages each, and
/// `real.pages` with all real ones. The answer counts pages of classes made by rule: real ones
/// differ from machine to machine.
pub(crate) fn corpus(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let pages = params.count("pages")? as usize;
    let seed = params.count("seed")?;
    let made = request.scratch.join("made");
    let SourceFiles { places, _server } = places(&made)?;
    let mut facts = BTreeMap::new();
    let mut real: Vec<Page> = Vec::new();
    let mut count = 0;
    for class in Class::ALL {
        match Corpus::make(class, pages, seed, &places) {
            Ok(corpus) => {
                facts.insert(class.name().to_string(), describe(&corpus));
                write(&request.scratch, class.name(), corpus.pages())?;
                if class.is_real() {
                    real.extend_from_slice(corpus.pages());
                } else {
                    count += corpus.count() as u64;
                }
            }
            Err(why) => {
                facts.insert(class.name().to_string(), format!("left out: {why}"));
            }
        }
    }
    // The mixture has a random order, so that pages of one class, which compress alike, do not
    // follow each other in it as they would in no memory.
    let mixed: Vec<Page> = shuffled(real.len(), seed)
        .iter()
        .map(|&at| real[at as usize])
        .collect();
    write(&request.scratch, REAL, &mixed)?;
    fs::remove_dir_all(&made).map_err(|e| RigError::io(&made, e))?;
    let checksum = "-".to_string();
    Ok(Reply {
        answer: Some(Answer { count, checksum }),
        facts,
        ..Reply::default()
    })
}

/// Describes a corpus for the report.
pub(super) fn describe(corpus: &Corpus) -> String {
    let facts = corpus.facts();
    format!(
        "{} pages, {} equal ones left out, entropy {:.2} bits a byte, xxh3 {:032x}",
        facts.count, facts.left_out, facts.entropy_bits, facts.hash
    )
}

/// Files of PostgreSQL and Parquet that were made for this corpus.
struct SourceFiles {
    places: Places,
    /// Dropping it stops the server and removes its files.
    _server: Option<Server>,
}

/// The sources of real pages. Those of PostgreSQL and Parquet are made here, if the machine has the
/// programs.
fn places(folder: &Path) -> Result<SourceFiles, RigError> {
    let mut places = Places::default();
    let parquet = folder.join("parquet");
    fs::create_dir_all(&parquet).map_err(|e| RigError::io(&parquet, e))?;
    let scale = Scale::new(PARQUET_SCALE).map_err(|e| PagesError::Wrong(e.to_string()))?;
    let mut job = Job::new(scale, Format::Parquet, Destination::Folder(parquet.clone()));
    job.tables = vec![Table::Orders, Table::Customer, Table::Part];
    job.sink = SinkKind::Std;
    run(&job, &Progress::default())?;
    places.parquet = vec![parquet];
    // Without PostgreSQL its class is left out, and the facts of the record say so.
    let server = match filled_server(folder) {
        Ok(server) => Some(server),
        Err(reason) => {
            eprintln!("no PostgreSQL pages: {reason}");
            None
        }
    };
    let files = server.as_ref().and_then(Server::files);
    places.postgres = files.into_iter().map(Path::to_path_buf).collect();
    Ok(SourceFiles {
        places,
        _server: server,
    })
}

/// Starts a server with a table of orders and its indexes, all on disk.
fn filled_server(folder: &Path) -> Result<Server, FlowError> {
    let server = Server::start(folder, 1, 1)?;
    connect(&server.dsn())?.batch_execute(FILL)?;
    Ok(server)
}

const FILL: &str = "
CREATE TABLE orders (id int PRIMARY KEY, customer text, placed timestamptz, total numeric, note text);
INSERT INTO orders SELECT n, 'customer ' || n * 7919 % 15000, timestamptz '2026-01-01' + n * interval '37 s',
    (n * 7907 % 1000000) / 100.0, md5(n::text) || repeat(' and so on', n % 7)
    FROM generate_series(1, 150000) n;
CREATE INDEX ON orders (customer, placed);
CHECKPOINT";

fn file(folder: &Path, class: &str) -> PathBuf {
    folder.join(format!("{class}.pages"))
}

fn write(folder: &Path, class: &str, pages: &[Page]) -> Result<(), RigError> {
    let path = file(folder, class);
    fs::write(&path, pages.as_flattened()).map_err(|e| RigError::io(&path, e))
}

/// The pages of a class, `real` included.
pub(super) fn read(folder: &Path, class: &str) -> Result<Corpus, RigError> {
    let path = file(folder, class);
    if !path.is_file() {
        let text = format!("this machine has no pages of class `{class}`");
        return Err(PagesError::Refused(text).into());
    }
    let bytes = fs::read(&path).map_err(|e| RigError::io(&path, e))?;
    if bytes.is_empty() || bytes.len() % PAGE_BYTES != 0 {
        let text = format!(
            "{}: {} bytes are not whole pages",
            path.display(),
            bytes.len()
        );
        return Err(PagesError::Wrong(text).into());
    }
    let known = Class::ALL.into_iter().find(|known| known.name() == class);
    // A mixture has no class of its own; nothing that reads the corpus looks at this one.
    Ok(Corpus::from_bytes(known.unwrap_or(Class::Heap), bytes))
}
