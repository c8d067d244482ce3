//! Several threads at the same pages, with compaction, ageing and the second tier going on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_pages::check::page_of;
use dyno_pages::{PAGE_BYTES, Settings, Store, StoreError, thread_time};

const PAGES: u64 = 300;
const ROUNDS: u64 = 12_000;

/// Each page holds its number and a round in its seed, so that any reader can tell whether what it
/// got was ever written there, whole. Seeds of nature 3 to 5 end in the seed itself.
fn seed(page: u64, round: u64) -> u64 {
    let seed = (round * PAGES + page) * 6;
    seed + 3 + round % 3
}

fn judge(page: u64, bytes: &[u8; PAGE_BYTES]) {
    if *bytes == [0; PAGE_BYTES] {
        return;
    }
    let tail = bytes.last_chunk().copied().map_or(0, u64::from_le_bytes);
    assert_eq!(tail / 6 % PAGES, page, "another page's bytes");
    assert!(*bytes == page_of(tail), "page {page} is torn");
}

#[test]
fn readers_see_whole_pages_while_all_else_goes_on() {
    let store = Store::create(Settings::new(PAGES, 2 << 20)).expect("memory");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|worker| {
                let store = &store;
                scope.spawn(move || {
                    let mut handle = store.handle().expect("memory");
                    let mut bytes = [0; PAGE_BYTES];
                    let mut state = worker + 1;
                    for round in 0..ROUNDS {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let page = (state >> 33) % PAGES;
                        match state >> 60 {
                            0 => handle.discard(page).expect("in range"),
                            1..7 => match handle.write(page, &page_of(seed(page, round))) {
                                Ok(()) | Err(StoreError::NoSpace { .. }) => {}
                                Err(other) => panic!("{other}"),
                            },
                            _ => {
                                handle.read(page, &mut bytes).expect("whole");
                                judge(page, &bytes);
                            }
                        }
                    }
                })
            })
            .collect();
        let (store, over) = (&store, &over);
        scope.spawn(move || {
            let mut recompressor = store.recompressor().expect("memory");
            while !over.load(Ordering::Relaxed) {
                store.age();
                let budget = Duration::from_millis(5);
                recompressor
                    .pass(0, 1, budget, thread_time)
                    .expect("whole pages");
                store.compact(4).expect("memory given back");
            }
        });
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Relaxed);
        for end in ends {
            end.expect("no panic");
        }
    });
    assert!(store.check().expect("memory").is_empty());
    let mut handle = store.handle().expect("memory");
    for page in 0..PAGES {
        handle.discard(page).expect("in range");
    }
    assert_eq!(
        store.stats().expect("figures").slot_bytes,
        0,
        "no slot leaked"
    );
}
