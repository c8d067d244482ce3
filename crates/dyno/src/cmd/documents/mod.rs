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

use crate::args::DocumentsArgs;
use crate::exit::Exit;
use crate::terminal;

/// A document below the tree's root, and its whole text.
struct Document {
    path: PathBuf,
    text: String,
}

pub fn run(args: &DocumentsArgs) -> anyhow::Result<Exit> {
    let mut stale = Vec::new();
    for document in documents(&args.tree)? {
        let path = args.tree.join(&document.path);
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
        terminal::print(&match args.check {
            true => format!("{path} is not up to date: run `dyno documents .`\n"),
            false => format!("wrote {path}\n"),
        })?;
    }
    match args.check && !stale.is_empty() {
        true => Ok(Exit::No),
        false => Ok(Exit::Done),
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
    documents.push(with_headline(tree, &published::headline(&records)?)?);
    Ok(documents)
}

/// The README with `table` between its two markers.
fn with_headline(tree: &Path, table: &str) -> anyhow::Result<Document> {
    const BEGIN: &str = "<!-- headline: begin, made by `dyno documents` -->\n";
    const END: &str = "<!-- headline: end -->\n";
    let path = tree.join("README.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some((before, rest)) = text.split_once(BEGIN) else {
        bail!("{} has no line {}", path.display(), BEGIN.trim_end());
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("{} has no line {}", path.display(), END.trim_end());
    };
    Ok(Document {
        path: "README.md".into(),
        text: format!("{before}{BEGIN}{table}{END}{after}"),
    })
}
