//! Two revisions of the repository here, each built in a worktree of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use dyno_suite::Stop;

/// Worktrees that are removed at the end.
pub struct Checkouts {
    pub base: PathBuf,
    pub head: PathBuf,
    folder: PathBuf,
}

impl Checkouts {
    /// Checks both revisions out below a folder for temporary files, and builds them.
    pub fn make(base: &str, head: &str, build: &str, stop: &Stop) -> anyhow::Result<Checkouts> {
        let folder = std::env::temp_dir().join(format!("dyno-ab-{}", std::process::id()));
        // Made before the first worktree, so that what exists is removed when the second one cannot
        // be made or a build fails.
        let made = Checkouts {
            base: folder.join("base"),
            head: folder.join("head"),
            folder,
        };
        for (dir, revision) in [(&made.base, base), (&made.head, head)] {
            git(
                &["worktree", "add", "--detach", "--quiet"],
                dir,
                Some(revision),
            )?;
            if stop.asked() {
                bail!("stopped");
            }
            let built = Command::new("/bin/sh")
                .args(["-c", build])
                .current_dir(dir)
                .stdout(Stdio::null())
                .status()
                .context("cannot start /bin/sh")?;
            if !built.success() {
                bail!("`{build}` at {revision}: {built}");
            }
        }
        Ok(made)
    }
}

impl Drop for Checkouts {
    fn drop(&mut self) {
        for dir in [&self.base, &self.head] {
            // Removing the directory alone would leave the worktree registered in the user's
            // repository.
            if dir.exists()
                && let Err(error) = git(&["worktree", "remove", "--force"], dir, None)
            {
                eprintln!("dyno: {error}; remove it by hand");
            }
        }
        // It is empty now, unless a worktree could not be removed.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

fn git(words: &[&str], dir: &Path, revision: Option<&str>) -> anyhow::Result<()> {
    let done = Command::new("git")
        .args(words)
        .arg(dir)
        .args(revision)
        .output()
        .context("cannot start git")?;
    if !done.status.success() {
        let stderr = String::from_utf8_lossy(&done.stderr);
        bail!(
            "git {} {}: {}",
            words.join(" "),
            dir.display(),
            stderr.trim()
        );
    }
    Ok(())
}
