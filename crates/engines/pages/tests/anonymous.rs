//! Memory beside a store's file in memory. Alone in its process, as it looks at the memory of all
//! of it.

use dyno_pages::check::page_of_length;
use dyno_pages::{Settings, Store};

fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.expect("a number") * 1024
}

#[test]
fn a_store_that_shares_slots_gives_back_what_it_knew_of_pages_that_are_gone() {
    const PAGES: u64 = 100_000;
    let settings = Settings {
        share: true,
        ..Settings::new(PAGES, 64 << 20)
    };
    let store = Store::create(settings).expect("memory");
    let mut handle = store.handle().expect("memory");
    let before = anonymous_bytes();
    for page in 0..PAGES {
        let bytes = page_of_length(page, 100);
        handle.write(page, &bytes).expect("room");
    }
    let full = anonymous_bytes() - before;
    let said = store.stats().expect("figures").beside_bytes;
    for page in 0..PAGES {
        handle.discard(page).expect("in range");
    }
    store.compact(usize::MAX).expect("memory goes back");
    let left = anonymous_bytes().saturating_sub(before);
    let says = store.stats().expect("figures").beside_bytes;
    println!("beside bytes {said}, then {says}; anonymous {full}, then {left}");
    assert!(says < said / 4, "{says} of {said} bytes");
    assert!(left < full / 2, "{left} of {full} bytes");
}
