//! The inflaters against each other, on streams of every kind and on damaged ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod inflate_agrees;

use std::io::Write;

use dyno_codec::inflate::OUTPUT_MARGIN;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use inflate_agrees::check;

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// Plain texts whose streams have stored, fixed and dynamic blocks, short and long matches.
fn texts(draw: &mut Draw) -> Vec<Vec<u8>> {
    let words: Vec<String> = (0..50)
        .map(|i| format!("{},K{i}AB,FN{}\n", i * 7919, i % 90))
        .collect();
    let prose = (0..600)
        .map(|_| words[draw.below(words.len())].as_bytes())
        .collect::<Vec<_>>();
    let noise: Vec<u8> = (0..3000).map(|_| draw.below(256) as u8).collect();
    vec![
        Vec::new(),
        b"a".to_vec(),
        vec![b'x'; 70_000],
        prose.concat(),
        noise,
    ]
}

/// The corpus of the fuzz target: each text at several levels, as gzip, twice gzip, and raw.
fn streams(draw: &mut Draw) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    for text in texts(draw) {
        for level in [0, 1, 6, 9] {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::new(level));
            gzip.write_all(&text).unwrap();
            let gzip = gzip.finish().unwrap();
            let mut raw = DeflateEncoder::new(Vec::new(), Compression::new(level));
            raw.write_all(&text).unwrap();
            streams.push([gzip.clone(), gzip.clone()].concat());
            streams.push([&gzip, &b"garbage"[..]].concat());
            streams.push(gzip);
            streams.push(raw.finish().unwrap());
        }
    }
    streams
}

#[test]
fn whole_streams() {
    for stream in streams(&mut Draw(1)) {
        for window_bytes in [OUTPUT_MARGIN, 1000, 1 << 20] {
            check(&stream, window_bytes);
        }
    }
}

#[test]
fn damaged_streams() {
    let mut draw = Draw(2);
    let streams = streams(&mut draw);
    for _ in 0..4_000 {
        let mut stream = streams[draw.below(streams.len())].clone();
        for _ in 0..1 + draw.below(3) {
            // Headers and code tables are at the front: most damage goes there.
            let reach = if draw.below(3) == 0 {
                stream.len()
            } else {
                stream.len().min(80)
            };
            let at = draw.below(reach);
            match draw.below(4) {
                0 => stream[at] ^= 1 << draw.below(8),
                1 => stream[at] = draw.below(256) as u8,
                2 => stream.insert(at, draw.below(256) as u8),
                _ => stream.truncate(at.max(1)),
            }
        }
        check(&stream, OUTPUT_MARGIN);
    }
}

#[test]
fn noise() {
    let mut draw = Draw(3);
    for _ in 0..4_000 {
        let length = draw.below(300);
        let noise: Vec<u8> = (0..length).map(|_| draw.below(256) as u8).collect();
        check(&noise, OUTPUT_MARGIN);
    }
}
