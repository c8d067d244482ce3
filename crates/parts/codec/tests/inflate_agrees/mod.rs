//! Both inflaters must make the same of any bytes. The body of the fuzz target `inflate` and of the
//! tests in `inflaters.rs`.

use std::io::Read;

use dyno_codec::inflate::{DeflateStream, Engine, GzipStream, HISTORY, OUTPUT_MARGIN};

/// Output beyond this proves nothing more and costs time.
const OUTPUT_MAX: usize = 8 << 20;

/// Takes the bytes as a gzip file and as a raw deflate stream, which damage reaches deeper; panics
/// where the engines differ in whether they refuse it, or in what comes out.
pub fn check(bytes: &[u8], window_bytes: usize) {
    let gzip = |engine| gunzip(GzipStream::new(bytes, engine), window_bytes);
    agree(&gzip(Engine::Native), &gzip(Engine::Portable));
    let raw = |engine| inflate(DeflateStream::new(bytes, engine), window_bytes);
    agree(&raw(Engine::Native), &raw(Engine::Portable));
}

/// What came out, or why nothing; output that was cut at [`OUTPUT_MAX`] counts as whole.
type Inflated = Result<Vec<u8>, String>;

fn agree(native: &Inflated, portable: &Inflated) {
    match (native, portable) {
        (Ok(native), Ok(portable)) => assert!(native == portable, "outputs differ"),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(reason)) => panic!("native takes what zlib refuses: {reason}"),
        (Err(reason), Ok(_)) => panic!("native refuses what zlib takes: {reason}"),
    }
}

fn gunzip<R: Read>(mut stream: GzipStream<R>, window_bytes: usize) -> Inflated {
    let mut window = Window::new(window_bytes);
    while !stream.finished() && window.whole.len() < OUTPUT_MAX {
        let at = window.at;
        let now = stream
            .inflate_into(&mut window.out, at)
            .map_err(|e| e.to_string())?;
        window.advance(now);
    }
    Ok(window.cut())
}

fn inflate<R: Read>(mut stream: DeflateStream<R>, window_bytes: usize) -> Inflated {
    let mut window = Window::new(window_bytes);
    while !stream.finished() && window.whole.len() < OUTPUT_MAX {
        let at = window.at;
        let now = stream
            .inflate_into(&mut window.out, at)
            .map_err(|e| e.to_string())?;
        window.advance(now);
    }
    Ok(window.cut())
}

/// The buffer as a loader keeps it: the last output in front, room behind.
struct Window {
    out: Vec<u8>,
    at: usize,
    whole: Vec<u8>,
}

impl Window {
    fn new(bytes: usize) -> Window {
        Window {
            out: vec![0; HISTORY + OUTPUT_MARGIN.max(bytes)],
            at: 0,
            whole: Vec::new(),
        }
    }

    fn advance(&mut self, now: usize) {
        self.whole.extend_from_slice(&self.out[self.at..now]);
        let keep = now.min(HISTORY);
        self.out.copy_within(now - keep..now, 0);
        self.at = keep;
    }

    fn cut(mut self) -> Vec<u8> {
        self.whole.truncate(OUTPUT_MAX);
        self.whole
    }
}
