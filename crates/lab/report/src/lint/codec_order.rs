//! Taking apart is less work than finding out how to put together.

use dyno_record::{CodecFigure, Figures};

use super::{Finding, Severity};
use crate::units::quantity;

/// A tie is not a contradiction.
const TOLERANCE: f64 = 1.10;
/// On data that does not compress, or that is one long repetition, there is nothing to search for:
/// all codecs copy or fill, and which of them does so faster is chance.
const TOLERANCE_TRIVIAL: f64 = 2.0;
/// Ratios up to which data was stored as it is, and from which it was one repetition.
const TRIVIAL_RATIOS: (f64, f64) = (1.05, 100.0);
/// Words by which reports call such data; they count only where no ratio is printed.
const TRIVIAL_WORDS: [&str; 6] = [
    "random",
    "raw",
    "incompressible",
    "zero",
    "same-filled",
    "constant",
];

pub(super) fn check(figures: &Figures) -> Vec<Finding> {
    let slow = figures.codecs.iter().filter_map(slow_decompression);
    let strong = figures
        .codecs
        .iter()
        .filter_map(|codec| faster_though_stronger(codec, &figures.codecs));
    slow.chain(strong).collect()
}

fn tolerance(codec: &CodecFigure) -> f64 {
    let data = codec.data.to_lowercase();
    let is_trivial = match codec.ratio {
        Some(ratio) => ratio <= TRIVIAL_RATIOS.0 || ratio >= TRIVIAL_RATIOS.1,
        None => TRIVIAL_WORDS.iter().any(|word| data.contains(word)),
    };
    if is_trivial {
        TOLERANCE_TRIVIAL
    } else {
        TOLERANCE
    }
}

fn finding(codec: &CodecFigure, seen: String, why: &str) -> Finding {
    Finding {
        rule: "codec-order",
        severity: Severity::Error,
        subject: format!("{} on {}", codec.codec, codec.data),
        seen,
        why: why.to_owned(),
        advice: "Ask for a round-trip proof: decompress what was compressed, compare, and count \
                 the bytes of both sides."
            .to_owned(),
    }
}

fn slow_decompression(codec: &CodecFigure) -> Option<Finding> {
    let (compress, decompress) = (codec.compress?, codec.decompress?);
    (compress > decompress * tolerance(codec)).then(|| {
        let seen = format!(
            "decompresses at {}, compresses at {}",
            quantity(decompress, &codec.unit),
            quantity(compress, &codec.unit)
        );
        let why = "Compression searches, decompression only copies: one side did other work \
                   than its name says.";
        finding(codec, seen, why)
    })
}

/// The weakest codec that this one beats on the same data though it compresses harder.
fn faster_though_stronger(codec: &CodecFigure, all: &[CodecFigure]) -> Option<Finding> {
    let speed = codec.compress?;
    let comparable = |o: &&CodecFigure| {
        o.data == codec.data && o.unit == codec.unit && o.strength < codec.strength
    };
    let beaten = all
        .iter()
        .filter(comparable)
        .find(|other| other.compress.is_some_and(|c| speed > c * tolerance(codec)))?;
    let seen = format!(
        "compresses at {}, the weaker {} at {}",
        quantity(speed, &codec.unit),
        beaten.codec,
        quantity(beaten.compress?, &codec.unit)
    );
    let why = "A codec that compresses harder looks at more; when it is faster, it probably \
               compressed nothing.";
    Some(finding(codec, seen, why))
}
