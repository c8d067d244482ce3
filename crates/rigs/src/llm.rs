//! An endpoint of a language model, alone and beside an ingest engine that loads archives.
//!
//! `llm-beside`: `talks` conversations at once ask for `tokens` tokens each, as they come or at a
//! `rate`, and `loaders` threads load `files` again and again into fresh tables meanwhile; either
//! may be 0. So one workload gives both halves of "how much does the one cost the other".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dyno_ingest_ask::{AskError, Endpoint, Message, Role};
use dyno_measure::{
    Call, Clock, DriveOptions, Latencies, LoadOutcome, MeasureError, Schedule, SystemClock, Until,
    drive,
};
use dyno_record::Answer;
use dyno_suite::protocol::{Reply, Request};

use crate::ingest::load_into;
use crate::{Params, RigError, Windows, quantiles};

const WORDS: [&str; 8] = [
    "radio", "spots", "travel", "far", "when", "the", "sun", "rises",
];

/// Why an endpoint was not measured.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    /// The endpoint cannot be reached or its address is not usable.
    #[error(transparent)]
    Endpoint(#[from] AskError),
    /// The load generator could not count a latency or start.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// Some conversations got no complete answer.
    #[error("{failed} of {asked} conversations failed, the first: {first}")]
    Failed {
        /// How many conversations failed.
        failed: u64,
        /// Conversations that were started, failed ones included.
        asked: u64,
        /// The message of the first failure.
        first: String,
    },
}

impl From<LlmError> for RigError {
    fn from(error: LlmError) -> RigError {
        RigError::Workload(error.into())
    }
}

/// The parsed parameters of `llm-beside`.
struct LlmParams {
    endpoint: Endpoint,
    model: String,
    talks: usize,
    tokens: u32,
    prompt: String,
    rate: Option<f64>,
    duration: Duration,
    loaders: u64,
    files: Vec<PathBuf>,
}

/// The combined result of all conversations.
#[derive(Default)]
struct Talked {
    /// Tokens, counted by the time at which they arrived.
    windows: Windows,
    tokens: u64,
    first: Vec<u64>,
    between: Vec<u64>,
}

/// Runs both, and answers with what each did.
pub(crate) fn beside(params: &mut Params<'_>, request: &Request) -> Result<Reply, RigError> {
    let params = LlmParams::read(params)?;
    let over = AtomicBool::new(false);
    let (talked, loaded) = thread::scope(|scope| {
        let loading = scope.spawn(|| loads(&params, &request.scratch, &over));
        let talked = talk(&params);
        // Talks decide when both end. A load that is under way then runs to its end, because a rate
        // needs whole loads; it competes with no conversation that counts.
        over.store(true, Ordering::Relaxed);
        (talked, loading.join())
    });
    let loaded = loaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let mut metrics = BTreeMap::new();
    if let Some((rows, seconds)) = loaded {
        metrics.insert("load-throughput".to_owned(), rows / seconds);
    }
    let mut windows = None;
    if let Some((talked, outcome)) = talked? {
        windows = Some(talked.windows.clone());
        talked.into_metrics(&outcome, &mut metrics)?;
    }
    let mut reply = Reply {
        // The text differs from model to model. Each conversation checks that all its tokens
        // arrived.
        answer: Some(Answer {
            count: 0,
            checksum: "all tokens".to_owned(),
        }),
        metrics,
        facts: BTreeMap::from([("model".to_owned(), params.model)]),
        ..Reply::default()
    };
    if let Some(windows) = windows {
        windows.tell(&mut reply, 1.0);
    }
    Ok(reply)
}

impl LlmParams {
    fn read(params: &mut Params<'_>) -> Result<LlmParams, RigError> {
        let address = params.text("endpoint")?;
        let model = params.text_or_none("model")?;
        let key = std::env::var("DYNO_LLM_KEY").ok();
        let wait = Duration::from_secs(300);
        let talks = params.count("talks")?.min(1024) as usize;
        let mut endpoint = Endpoint::new(address, model, key, wait).map_err(LlmError::from)?;
        let model = match talks {
            0 => "none".to_owned(),
            _ => endpoint.settle_model().map_err(LlmError::from)?,
        };
        let words = params.count("prompt-words")?.min(100_000) as usize;
        let rate = params.number("rate")?;
        let parsed = LlmParams {
            endpoint,
            model,
            talks,
            tokens: u32::try_from(params.count("tokens")?).unwrap_or(u32::MAX),
            prompt: WORDS
                .iter()
                .cycle()
                .take(words)
                .copied()
                .collect::<Vec<_>>()
                .join(" "),
            rate: (rate > 0.0).then_some(rate),
            duration: params.seconds("seconds")?,
            loaders: params.count("loaders")?,
            files: params.paths("files")?,
        };
        match (parsed.talks, parsed.loaders) {
            (0, 0) => Err(params.wrong("talks", "0, and 0 loaders: nothing to measure".to_owned())),
            _ => Ok(parsed),
        }
    }
}

/// Loads the files again and again until `over` is set, at least once. Returns the rows and seconds
/// of complete loads; `None` without loaders.
fn loads(
    params: &LlmParams,
    scratch: &Path,
    over: &AtomicBool,
) -> Result<Option<(f64, f64)>, RigError> {
    let (mut rows, mut seconds) = (0.0, 0.0);
    let started = Instant::now();
    for round in 0.. {
        let enough = match params.talks {
            0 => started.elapsed() >= params.duration,
            _ => over.load(Ordering::Relaxed),
        };
        if params.loaders == 0 || (enough && round > 0) {
            break;
        }
        let table = scratch.join(format!("table-{round}"));
        let report = load_into(&params.files, params.loaders, &table)?;
        rows += report.rows() as f64;
        seconds += report.seconds;
        std::fs::remove_dir_all(&table).map_err(|error| RigError::io(&table, error))?;
    }
    Ok((params.loaders > 0).then_some((rows, seconds)))
}

fn talk(params: &LlmParams) -> Result<Option<(Talked, LoadOutcome)>, LlmError> {
    if params.talks == 0 {
        return Ok(None);
    }
    let clock = SystemClock::start();
    let options = DriveOptions {
        schedule: match params.rate {
            None => Schedule::ClosedLoop,
            Some(rate_per_s) => Schedule::Poisson {
                rate_per_s,
                seed: 1,
            },
        },
        threads: params.talks,
        until: Until::DurationNs(params.duration.as_nanos() as u64),
        interval_ns: 1_000_000_000,
        lag_max_ns: None,
        stop: None,
    };
    let started = Instant::now();
    let talked = Mutex::new(Talked {
        windows: Windows::over(params.duration),
        ..Talked::default()
    });
    let outcome = drive(&clock, &options, |_| {
        let (clock, talked) = (&clock, &talked);
        move |call: Call| {
            // The wait for a free thread is part of the time to the first token.
            let late = Duration::from_nanos(clock.now_ns().saturating_sub(call.intended_ns));
            converse(params, started, Instant::now().checked_sub(late), talked)
        }
    })?;
    if outcome.failed > 0 {
        return Err(LlmError::Failed {
            failed: outcome.failed,
            asked: outcome.failed + outcome.done,
            first: outcome.first_error.unwrap_or_default(),
        });
    }
    let talked = talked.into_inner().unwrap_or_default();
    Ok(Some((talked, outcome)))
}

/// One conversation of a load that `started` once; `begun` is when it was meant to begin.
fn converse(
    params: &LlmParams,
    started: Instant,
    begun: Option<Instant>,
    into: &Mutex<Talked>,
) -> Result<(), String> {
    let messages = [Message::new(Role::User, params.prompt.as_str())];
    let streamed = params.endpoint.stream(&dyno_ingest_ask::Request {
        messages: &messages,
        most_tokens: params.tokens,
        ignore_end: true,
    });
    let streamed = streamed.map_err(|error| error.to_string())?;
    // If the endpoint does not report a count, each piece counts as one token.
    let pieces = streamed.pieces.len() as u64;
    let tokens = streamed
        .usage
        .map_or(pieces, |usage| usage.completion_tokens);
    // An endpoint that stops early would look faster, so an answer that is too short is a failure.
    if tokens < u64::from(params.tokens) {
        return Err(format!("{tokens} tokens came, not {}", params.tokens));
    }
    let ns = |from: Instant, to: &Instant| to.saturating_duration_since(from).as_nanos() as u64;
    // The lock is taken once for each conversation, after the answer is complete, so it delays no
    // token.
    let mut talked = into.lock().map_err(|_| "another conversation panicked")?;
    talked.tokens += tokens;
    // A piece may hold several tokens or a part of one, so they are spread evenly over the pieces.
    let upto = |piece: u64| piece * tokens / pieces.max(1);
    for (number, came) in (0..).zip(&streamed.pieces) {
        let more = upto(number + 1) - upto(number);
        talked.windows.count(ns(started, came), more);
    }
    if let (Some(first), Some(begun)) = (streamed.pieces.first(), begun) {
        talked.first.push(ns(begun, first));
    }
    let pairs = streamed.pieces.windows(2);
    talked
        .between
        .extend(pairs.map(|pair| ns(pair[0], &pair[1])));
    Ok(())
}

impl Talked {
    fn into_metrics(
        self,
        outcome: &LoadOutcome,
        metrics: &mut BTreeMap<String, f64>,
    ) -> Result<(), LlmError> {
        let seconds = (outcome.ended_ns - outcome.started_ns) as f64 / 1e9;
        metrics.insert(
            "throughput".to_owned(),
            self.tokens as f64 / seconds.max(1e-9),
        );
        metrics.insert("conversations".to_owned(), outcome.done as f64);
        metrics.insert(
            "unsent".to_owned(),
            (outcome.unsent + outcome.skipped) as f64,
        );
        for (name, samples) in [
            ("first-token", self.first),
            ("between-tokens", self.between),
        ] {
            let mut latencies = Latencies::new()?;
            for ns in samples {
                latencies.record(ns)?;
            }
            quantiles::insert(metrics, name, &latencies, 1.0);
        }
        Ok(())
    }
}
