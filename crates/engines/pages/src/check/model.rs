//! The store compared with a map that does the same.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use dyno_codec::lz4::Page;
use dyno_random::Random;

use super::{CheckError, Outcome, Plan, page_of, page_of_length};
use crate::PAGE_BYTES;
use crate::error::StoreError;
use crate::store::{Settings, Store};

const PAGES: u64 = 512;
/// Distinct pages that are written: so few that some are equal.
const CONTENTS: u64 = 3000;
/// So little memory that some writes are refused.
const LIMIT_BYTES: u64 = 1 << 20;
/// Steps after which the store is opened again.
const STEPS_OF_LIFE: u64 = 5_000;

/// The page for a content: half of them are of six natures, the others of any length.
fn bytes_of(content: u64) -> Page {
    match content % 2 {
        0 => page_of(content / 2),
        _ => page_of_length(content, content as usize * 7 % PAGE_BYTES),
    }
}

struct Twin<'a> {
    plan: &'a Plan,
    random: Random,
    model: HashMap<u64, u64>,
    outcome: &'a mut Outcome,
}

/// Does random steps, in lives of some thousand each.
pub fn run(plan: &Plan, stop: &dyn Fn() -> bool, outcome: &mut Outcome) -> Result<(), CheckError> {
    let settings = Settings {
        share: plan.share,
        ..Settings::new(PAGES, LIMIT_BYTES)
    };
    let mut store = Store::create(settings)?;
    let mut twin = Twin {
        plan,
        random: Random::new(plan.seed),
        model: HashMap::new(),
        outcome,
    };
    while twin.outcome.steps < plan.steps && !stop() && twin.outcome.holds() {
        twin.life(&store)?;
        let file = kept(&store)?;
        drop(store);
        let (again, found) = Store::reopen(file, Settings::new(1, 1))?;
        store = again;
        let pages = twin.model.len() as u64;
        if (found.pages, found.damaged, found.unlocked) != (pages, 0, 0) {
            twin.wrong(format!(
                "opened again: {found:?}, {pages} pages were written"
            ));
        }
        let bad = store.check()?;
        for bad in bad {
            twin.wrong(bad.error.to_string());
        }
    }
    Ok(())
}

/// Another descriptor of the memory, as a supervisor would hold it.
pub(super) fn kept(store: &Store) -> Result<OwnedFd, CheckError> {
    let kept = store.memory_file().try_clone_to_owned();
    kept.map_err(|e| CheckError::Job(format!("a descriptor: {e}")))
}

impl Twin<'_> {
    fn wrong(&mut self, what: String) {
        let (seed, step) = (self.plan.seed, self.outcome.steps);
        self.outcome
            .broken
            .push(format!("seed {seed}, step {step}: {what}"));
    }

    fn life(&mut self, store: &Store) -> Result<(), CheckError> {
        let mut handle = store.handle()?;
        let mut recompressor = store.recompressor()?;
        let mut bytes = [0; PAGE_BYTES];
        for _ in 0..STEPS_OF_LIFE.min(self.plan.steps - self.outcome.steps) {
            let page = self.random.bits() % PAGES;
            match self.random.bits() % 100 {
                0..45 => {
                    let content = self.random.bits() % CONTENTS;
                    match handle.write(page, &bytes_of(content)) {
                        Ok(()) => drop(self.model.insert(page, content)),
                        Err(StoreError::NoSpace { .. }) => self.outcome.refused += 1,
                        Err(other) => return Err(other.into()),
                    }
                }
                45..80 => match handle.read(page, &mut bytes) {
                    Ok(()) => self.compare(page, &bytes),
                    Err(error) => self.wrong(error.to_string()),
                },
                80..92 => {
                    handle.discard(page)?;
                    self.model.remove(&page);
                }
                92..96 => store.age(),
                96..98 => {
                    let budget = Duration::from_secs(1);
                    recompressor.pass(page, 1, budget, || Duration::ZERO)?;
                }
                _ => drop(store.compact(8)?),
            }
            self.outcome.steps += 1;
            if !self.outcome.holds() {
                break;
            }
        }
        for page in 0..PAGES {
            match handle.read(page, &mut bytes) {
                Ok(()) => self.compare(page, &bytes),
                Err(error) => self.wrong(error.to_string()),
            }
        }
        Ok(())
    }

    fn compare(&mut self, page: u64, found: &Page) {
        let expected = self
            .model
            .get(&page)
            .map_or([0; PAGE_BYTES], |&content| bytes_of(content));
        if *found != expected {
            self.wrong(format!("page {page} came back different"));
        }
    }
}
