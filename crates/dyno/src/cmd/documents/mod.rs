//! `dyno documents TREE`: the documents that are made from the program itself and from its records.
//!
//! It is hidden, because only a checkout has these documents. A test compares the committed ones
//! with what this makes, so that none of them can fall behind.

mod commands;
mod markdown;
mod published;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dyno_report::{ClaimedRecords, renewed};

use crate::args::DocumentsArgs;
use crate::exit::Exit;
use crate::terminal;

/// A document: its path below the tree's root, and its whole text.
struct Document {
    path: PathBuf,
    text: String,
}

pub fn run(args: &DocumentsArgs) -> anyhow::Result<Exit> {
    let mut stale = Vec::new();
    for document in documents(&args.tree)? {
        let path = args.tree.join(&document.path);
        // Compared before writing, so that a renewed tree has new times only where a text changed.
        if fs::read_to_string(&path).is_ok_and(|text| text == document.text) {
            continue;
        }
        stale.push(document.path.display().to_string());
        if !args.check {
            let folder = path.parent().unwrap_or(&args.tree);
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            fs::write(&path, &document.text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    for path in &stale {
        terminal::print(&if args.check {
            format!("{path} is not up to date: run `dyno documents .`\n")
        } else {
            format!("wrote {path}\n")
        })?;
    }
    if args.check && !stale.is_empty() {
        Ok(Exit::No)
    } else {
        Ok(Exit::Done)
    }
}

fn documents(tree: &Path) -> anyhow::Result<Vec<Document>> {
    let mut documents = commands::documents();
    let records = published::read(&tree.join("results"))?;
    for (path, files) in [
        ("RESULTS.md", published::Files::Linked),
        ("docs/results.md", published::Files::Named),
    ] {
        documents.push(Document {
            path: path.into(),
            text: published::results(&records, files),
        });
    }
    documents.extend(published::reports(&records)?);
    let mut records = ClaimedRecords::below(tree);
    for path in markdown_files(tree)? {
        let text = fs::read_to_string(tree.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let renewed = with_claims(&mut records, &path, &text)?;
        // Only what changes is written, since a document that is made may be among these.
        if renewed != text {
            let text = renewed;
            documents.push(Document { path, text });
        }
    }
    Ok(documents)
}

/// A document whose claims say what the records say. A figure that must not be published is an
/// error, because only its author can take it out.
fn with_claims(records: &mut ClaimedRecords, path: &Path, text: &str) -> anyhow::Result<String> {
    let path = path.display();
    let claims = match records.check(text) {
        Ok(claims) => claims,
        Err(broken) => {
            let first = &broken[0];
            bail!("{path}:{}: {}", first.line, first.reason);
        }
    };
    if let Some((claim, why)) = claims.iter().find_map(|c| Some((c, c.unfit.as_ref()?))) {
        bail!(
            "{path}:{}: {} must not be quoted: {why}",
            claim.line,
            claim.of
        );
    }
    Ok(renewed(text, &claims))
}

/// The Markdown at the root of the tree and at any depth of the book, relative to the tree.
fn markdown_files(tree: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = entries(tree)?;
    let mut folders = vec![tree.join("docs")];
    while let Some(folder) = folders.pop() {
        let (below, here): (Vec<_>, Vec<_>) = entries(&folder)?
            .into_iter()
            .partition(|path| path.is_dir());
        folders.extend(below);
        files.extend(here);
    }
    files.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"));
    files.sort();
    let below = |path: &PathBuf| Ok(path.strip_prefix(tree)?.to_path_buf());
    files.iter().map(below).collect()
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    list().with_context(|| format!("cannot list {}", folder.display()))
}
