//! The store against a map that does the same: writes, discards, reads, both tiers, compaction, the
//! file, and a process that dies, in any order.

use std::collections::HashMap;
use std::time::Duration;

use dyno_pages::check::{page_of, page_of_length};
use dyno_pages::{
    BackingFile, Codec, PAGE_BYTES, Page, Settings, Store, StoreError, Tiers, WriteBack,
};
use proptest::prelude::*;

const PAGES: u64 = 80;

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u64),
    WriteLength(u64, u64, usize),
    WriteMany(u64, u64, usize),
    Discard(u64),
    Read(u64),
    ReadMany(u64, usize),
    Age,
    Recompress(u64),
    Compact,
    WriteBack(u64, bool),
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..PAGES;
    let step = prop_oneof![
        8 => (page.clone(), any::<u64>()).prop_map(|(p, s)| Step::Write(p, s)),
        8 => (page.clone(), any::<u64>(), 0..=PAGE_BYTES)
            .prop_map(|(p, s, n)| Step::WriteLength(p, s, n)),
        2 => (page.clone(), any::<u64>(), 1usize..20).prop_map(|(p, s, n)| Step::WriteMany(p, s, n)),
        3 => page.clone().prop_map(Step::Discard),
        4 => page.clone().prop_map(Step::Read),
        1 => (page.clone(), 1usize..40).prop_map(|(p, n)| Step::ReadMany(p, n)),
        2 => Just(Step::Age),
        2 => page.clone().prop_map(Step::Recompress),
        1 => Just(Step::Compact),
        1 => (0..20u64, any::<bool>()).prop_map(|(most, packed)| Step::WriteBack(most, packed)),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..200)
}

struct Twin {
    store: Store,
    settings: Settings,
    model: HashMap<u64, Page>,
    /// Different pages that can be written, so that some are equal.
    contents: u64,
}

impl Twin {
    fn new(settings: Settings, folder: &std::path::Path) -> Self {
        let backing = Some(BackingFile {
            path: folder.join("pages"),
            pages: 16,
        });
        let settings = Settings {
            backing,
            ..settings
        };
        let store = Store::create(settings.clone()).expect("memory");
        Self {
            store,
            settings,
            model: HashMap::new(),
            contents: u64::MAX,
        }
    }

    fn expected(&self, page: u64) -> Page {
        self.model.get(&page).copied().unwrap_or([0; PAGE_BYTES])
    }

    fn write(&mut self, page: u64, bytes: Page) -> Result<(), TestCaseError> {
        match self.store.handle().expect("memory").write(page, &bytes) {
            Ok(()) => {
                self.model.insert(page, bytes);
            }
            Err(StoreError::NoSpace { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        Ok(())
    }

    fn step(mut self, step: Step) -> Result<Self, TestCaseError> {
        match step {
            Step::Write(page, seed) => self.write(page, page_of(seed % self.contents))?,
            Step::WriteLength(page, seed, noise) => {
                self.write(page, page_of_length(seed % self.contents, noise))?;
            }
            Step::WriteMany(first, seed, count) => {
                for page in first..(first + count as u64).min(PAGES) {
                    self.write(page, page_of(seed.wrapping_add(page) % self.contents))?;
                }
            }
            Step::Discard(page) => {
                self.store
                    .handle()
                    .expect("memory")
                    .discard(page)
                    .expect("in range");
                self.model.remove(&page);
            }
            Step::Read(page) => self.compare(page)?,
            Step::ReadMany(first, count) => {
                let wanted: Vec<u64> = (0..count as u64).map(|i| (first + i * 7) % PAGES).collect();
                let mut found = vec![[1; PAGE_BYTES]; count];
                self.store
                    .handle()
                    .expect("memory")
                    .read_many(&wanted, &mut found)
                    .expect("whole");
                for (page, bytes) in wanted.into_iter().zip(found) {
                    prop_assert!(bytes == self.expected(page), "page {}", page);
                }
            }
            Step::Age => self.store.age(),
            Step::Recompress(from) => {
                let mut recompressor = self.store.recompressor().expect("memory");
                let budget = Duration::from_secs(1000);
                recompressor
                    .pass(from, 1, budget, || Duration::ZERO)
                    .expect("whole pages");
            }
            Step::Compact => {
                self.store.compact(100).expect("memory given back");
                // A slot that several pages share is not moved.
                let alone = !self.settings.share;
                for class in self.store.stats().expect("figures").classes {
                    let slots = 64 * 1024 / class.slot_bytes as u64;
                    let free = u64::from(class.spans) * slots - class.used;
                    prop_assert!(
                        free <= slots || !alone,
                        "{} free slots of {}",
                        free,
                        class.slot_bytes
                    );
                }
            }
            Step::WriteBack(most, packed) => {
                let which = WriteBack {
                    packed: packed.then_some(1),
                    raw: Some(1),
                };
                self.store
                    .handle()
                    .expect("memory")
                    .write_back(0, most, which)
                    .expect("a file");
            }
            Step::Crash => return self.crash(),
        }
        Ok(self)
    }

    fn crash(self) -> Result<Self, TestCaseError> {
        let file = self
            .store
            .memory_file()
            .try_clone_to_owned()
            .expect("a descriptor");
        drop(self.store);
        let (store, found) = Store::reopen(file, self.settings.clone()).expect("a store");
        prop_assert_eq!((found.unlocked, found.damaged), (0, 0));
        prop_assert_eq!(found.pages, self.model.len() as u64);
        Ok(Self { store, ..self })
    }

    fn compare(&self, page: u64) -> Result<(), TestCaseError> {
        let mut found = [1; PAGE_BYTES];
        self.store
            .handle()
            .expect("memory")
            .read(page, &mut found)
            .expect("whole");
        prop_assert!(found == self.expected(page), "page {}", page);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_store_does_what_a_map_does(
        steps in steps(),
        spans in 1..64u64,
        own in any::<bool>(),
        share in any::<bool>(),
        contents in prop_oneof![Just(u64::MAX), 1..40u64],
        tiers in prop_oneof![Just(Tiers::Lz4), Just(Tiers::Zstd), Just(Tiers::Lz4ThenZstd)],
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = if own { Codec::Page } else { Codec::C };
        let settings = Settings {
            writer,
            share,
            tiers,
            ..Settings::new(PAGES, spans * 64 * 1024)
        };
        let mut twin = Twin::new(settings, folder.path());
        twin.contents = contents;
        for step in steps {
            twin = twin.step(step)?;
        }
        for page in 0..PAGES {
            twin.compare(page)?;
        }
        prop_assert!(twin.store.check().expect("memory").is_empty());
        let stats = twin.store.stats().expect("figures");
        prop_assert_eq!(stats.stored_pages(), twin.model.len() as u64);
        // Nothing leaks: without pages no slot is taken.
        if share {
            // Slots are as many as different pages at most, for pages that were not packed alone.
            prop_assert!(stats.shared < PAGES);
        }
        let mut handle = twin.store.handle().expect("memory");
        for page in 0..PAGES {
            handle.discard(page).expect("in range");
        }
        let stats = twin.store.stats().expect("figures");
        prop_assert_eq!((stats.slot_bytes, stats.empty), (0, PAGES));
    }
}
