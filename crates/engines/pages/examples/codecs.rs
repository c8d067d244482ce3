//! Our LZ4 beside the C library's, class by class: time a page, ratio, both directions.
//!
//! ```text
//! cargo run --release -p dyno-pages --example codecs -- [pages] [rounds]
//! ```
//!
//! Each page is timed by itself, one codec right after the other, and its best time of the rounds
//! counts, so that a processor taken away for a while changes nothing. Pages are distinct, so that no
//! branch predictor learns one.

use std::hint::black_box;
use std::time::Instant;

use dyno_codec::lz4::{self, BLOCK_BOUND, Codec, Encoder};
use dyno_pages::corpus::{Class, Corpus, Places};
use dyno_pages::{PAGE_BYTES, Page};

const KINDS: [(&str, Codec); 3] = [
    ("C", Codec::C),
    ("page", Codec::Page),
    ("plain", Codec::PagePlain),
];

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<usize>().ok());
    let pages = numbers.next().unwrap_or(2048);
    let rounds = numbers.next().unwrap_or(10);
    println!(
        "class      pages codec  compress_us  ratio  of_C  of_C_ratio | decompress_us own  of_C"
    );
    for class in Class::ALL {
        match Corpus::make(class, pages, 1, &places()) {
            Ok(corpus) => measure(&corpus, rounds),
            Err(why) => println!("skipped: {}: {why}", class.name()),
        }
    }
}

/// PostgreSQL and Parquet files lie where the environment says.
fn places() -> Places {
    let mut places = Places::default();
    for (name, into) in [
        ("DYNO_POSTGRES", &mut places.postgres),
        ("DYNO_PARQUET", &mut places.parquet),
    ] {
        into.extend(std::env::var_os(name).map(Into::into));
    }
    places
}

fn measure(corpus: &Corpus, rounds: usize) {
    let pages = corpus.pages();
    let mut encoders = KINDS.map(|(_, codec)| Encoder::new(codec));
    let mut out = [0; BLOCK_BOUND];
    let mut best = vec![[(f64::MAX, f64::MAX); 3]; pages.len()];
    let mut bytes = [0; 3];
    let blocks: Vec<[Vec<u8>; 3]> = pages
        .iter()
        .map(|page| {
            [0, 1, 2].map(|kind: usize| {
                let len = encoders[kind]
                    .encode(page, &mut out, BLOCK_BOUND)
                    .expect("room");
                bytes[kind] += len.min(PAGE_BYTES);
                out[..len].to_vec()
            })
        })
        .collect();
    let mut into: Vec<Page> = vec![[0; PAGE_BYTES]; 256];
    for round in 0..rounds {
        for (number, page) in pages.iter().enumerate() {
            for turn in 0..3 {
                let kind = (turn + round) % 3;
                let start = Instant::now();
                black_box(encoders[kind].encode(page, &mut out, BLOCK_BOUND));
                let packed = start.elapsed().as_secs_f64() * 1e6;
                let target = &mut into[(number * 3 + turn) % 256];
                let start = Instant::now();
                let done = lz4::decode(KINDS[kind].1, &blocks[number][kind], target);
                let unpacked = start.elapsed().as_secs_f64() * 1e6;
                assert!(done.is_ok() && target == page, "a page came back different");
                let best = &mut best[number][kind];
                *best = (best.0.min(packed), best.1.min(unpacked));
            }
        }
    }
    let mean = |kind: usize| {
        let sum = best
            .iter()
            .fold((0.0, 0.0), |s, b| (s.0 + b[kind].0, s.1 + b[kind].1));
        (sum.0 / pages.len() as f64, sum.1 / pages.len() as f64)
    };
    let c = mean(0);
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let own = mean(kind);
        println!(
            "{:10} {:6} {name:6} {:10.2} {:7.3} {:5.2} {:8.3}    | {:10.2} {:10.2}",
            corpus.class().name(),
            pages.len(),
            own.0,
            (pages.len() * PAGE_BYTES) as f64 / bytes[kind] as f64,
            c.0 / own.0,
            bytes[0] as f64 / bytes[kind] as f64,
            own.1,
            c.1 / own.1,
        );
    }
}
