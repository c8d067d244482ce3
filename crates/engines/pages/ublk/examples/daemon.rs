//! A daemon of a device and what belongs to it, for trying it out by hand and for `scripts/slow/ublk`:
//!
//! `daemon hold SOCKET` | `create SOCKET PAGES LIMIT_BYTES [swap]` | `recover SOCKET NUMBER [swap]` |
//! `delete NUMBER` | `press MIB` (fills memory with text, twice, and looks whether it is still that)

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use dyno_pages::{Settings as StoreSettings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_hold::{Client, Holder};
use dyno_pages_ublk::{Device, Settings, delete, prepare_for_swap, supported};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["hold", socket] => Ok(Holder::bind(Path::new(socket))?.run()?),
        ["create", socket, pages, limit, ref rest @ ..] => {
            supported()?;
            let store = Store::create(StoreSettings::new(pages.parse()?, limit.parse()?))?;
            let holder = Client::connect(Path::new(socket))?;
            holder.put("store", b"", store.memory_file())?;
            serve(store, rest == ["swap"], |disk| {
                Device::create(disk, Settings::default())
            })
        }
        ["recover", socket, number, ref rest @ ..] => {
            let held = Client::connect(Path::new(socket))?.get("store")?;
            let (store, found) = Store::reopen(held.file, StoreSettings::new(1, 1))?;
            println!("{} pages, {} damaged", found.pages, found.damaged);
            let number = number.parse()?;
            serve(store, rest == ["swap"], |disk| {
                Device::recover(number, disk)
            })
        }
        ["delete", number] => Ok(delete(number.parse()?)?),
        ["press", mib] => press(mib.parse()?),
        _ => Err("daemon hold|create|recover|delete|press ...".into()),
    }
}

fn serve(
    store: Store,
    swap: bool,
    begin: impl FnOnce(&Arc<Disk>) -> Result<Device, dyno_pages_ublk::UblkError>,
) -> Result<(), Box<dyn Error>> {
    let disk = Arc::new(Disk::new(Arc::new(store)));
    let device = begin(&disk)?;
    if swap {
        prepare_for_swap()?;
    }
    println!("serving {} at {}", device.number(), device.path().display());
    device.wait()?;
    let bad = disk.store().check()?;
    println!("stopped; {} bad pages", bad.len());
    Ok(())
}

fn press(mib: usize) -> Result<(), Box<dyn Error>> {
    let mut memory = vec![0u64; mib << 17];
    for round in 1..=2u64 {
        for (at, word) in memory.iter_mut().enumerate() {
            // Pages differ, and pack well.
            *word = round * 1_000_003 * (at as u64 / 64);
        }
        for (at, word) in memory.iter().enumerate() {
            if *word != round * 1_000_003 * (at as u64 / 64) {
                return Err(format!("word {at} is {word} in round {round}").into());
            }
        }
    }
    println!("pressed {mib} MiB, all words right");
    Ok(())
}
