//! `dyno claims FILE...`: holds the figures of documents against the records that they come from.

use std::fs;
use std::path::Path;

use anyhow::Context;
use dyno_report::{CheckedClaim, ClaimedRecords, counted, renewed};
use serde::Serialize;

use crate::args::ClaimsArgs;
use crate::exit::Exit;
use crate::terminal;

/// The claims of one document.
#[derive(Serialize)]
struct Document<'a> {
    file: &'a Path,
    claims: Vec<CheckedClaim>,
}

pub fn run(args: &ClaimsArgs) -> anyhow::Result<Exit> {
    let mut records = ClaimedRecords::below(&args.records);
    let mut documents = Vec::new();
    let mut is_broken = false;
    for file in &args.files {
        let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
        // A document with a comment that cannot be read is left as it is, and the others are still
        // checked.
        let claims = match records.check(&text) {
            Ok(claims) => claims,
            Err(broken) => {
                is_broken = true;
                for claim in broken {
                    eprintln!("{}:{}: {}", file.display(), claim.line, claim.reason);
                }
                continue;
            }
        };
        let differs = claims.iter().any(|claim| claim.now != claim.written);
        if args.write && differs {
            fs::write(file, renewed(&text, &claims))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        documents.push(Document { file, claims });
    }
    match (args.json, documents.is_empty()) {
        (true, _) => terminal::print(&serde_json::to_string_pretty(&documents)?)?,
        (false, true) => {}
        (false, false) => terminal::print(&as_text(&documents, args.write))?,
    }
    // With --write a figure that differed agrees now. One that may not be quoted cannot be mended
    // by writing, so it still fails.
    let fails = |claim: &CheckedClaim| {
        if args.write {
            claim.unfit.is_some()
        } else {
            !claim.holds()
        }
    };
    let failed = documents.iter().flat_map(|it| &it.claims).any(fails);
    Ok(match (is_broken, failed) {
        (true, _) => Exit::Failure,
        (false, true) => Exit::No,
        (false, false) => Exit::Done,
    })
}

/// A line for each claim that differs or may not be quoted, and how many there are.
fn as_text(documents: &[Document], written: bool) -> String {
    let mut lines = Vec::new();
    let mut differing = 0;
    for document in documents {
        let place = |claim: &CheckedClaim| format!("{}:{}", document.file.display(), claim.line);
        for claim in &document.claims {
            if claim.written != claim.now {
                differing += 1;
                let (was, now, of) = (&claim.written, &claim.now, &claim.of);
                lines.push(if written {
                    format!("{}: wrote {now} for {was:?}: {of}", place(claim))
                } else {
                    format!("{}: says {was:?}, the record {now}: {of}", place(claim))
                });
            }
            if let Some(why) = &claim.unfit {
                let of = &claim.of;
                lines.push(format!("{}: must not be quoted, {why}: {of}", place(claim)));
            }
        }
    }
    let claims = documents
        .iter()
        .map(|document| document.claims.len())
        .sum::<usize>();
    let files = counted(documents.len() as u64, "document");
    lines.push(match (differing, written) {
        (0, _) => format!(
            "{} in {files}, none differs",
            counted(claims as u64, "claim")
        ),
        (_, true) => format!(
            "{} in {files}, {differing} written",
            counted(claims as u64, "claim")
        ),
        (_, false) => format!(
            "{} in {files}, {differing} differ",
            counted(claims as u64, "claim")
        ),
    });
    lines.join("\n")
}
