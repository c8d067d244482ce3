//! The machines that are served, and what a holder keeps of each: the descriptor of its faults with
//! its layout as a note, and the file of the pages that are spent.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dyno_pages_hold::{Client, HoldError};
use dyno_pages_region::userfault::Userfault;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::PagerError;
use crate::figures::{Counters, Figures};
use crate::layout::{Layout, Region};
use crate::machine::Machine;
use crate::spent::Spent;

/// The most machines at once: the names of what is held of them fit into one answer of a holder.
pub const MOST_MACHINES: usize = 240;
/// A holder has room for two files of each, for the snapshot, and for a few more.
const _: () = assert!(2 * MOST_MACHINES + 8 < dyno_pages_hold::MOST_HELD);
/// Version of [`Note`], which another program may have written.
const VERSION: u32 = 1;

/// What is noted beside a descriptor of faults.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    #[serde(rename = "dyno-pages-microvm")]
    version: u32,
    /// The process of the VMM.
    pid: i32,
    /// Address, length and offset of each region, in bytes.
    regions: Vec<(u64, u64, u64)>,
}

/// A machine as a report shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineReport {
    /// The number by which messages name it.
    pub number: u32,
    /// The process of the VMM when it connected; 0 if the system does not say.
    pub pid: i32,
    /// Bytes of its memory, in all regions.
    pub bytes: u64,
    /// How long it has been served by this process.
    pub served: Duration,
    /// Whether an earlier process served it before.
    pub taken_over: bool,
    /// What was done for it.
    pub figures: Figures,
}

/// What is known of a machine outside of its thread.
#[derive(Debug)]
pub struct Entry {
    pub pid: i32,
    pub taken_over: bool,
    layout: Layout,
    since: Instant,
    counters: Arc<Counters>,
    faults: Arc<Userfault>,
    spent: Arc<File>,
}

impl Entry {
    pub fn new(machine: &Machine, pid: i32, taken_over: bool) -> Self {
        Self {
            pid,
            taken_over,
            layout: machine.layout.clone(),
            since: Instant::now(),
            counters: Arc::clone(&machine.counters),
            faults: Arc::clone(&machine.faults),
            spent: Arc::clone(machine.spent.file()),
        }
    }

    /// Has a holder keep everything that the next process needs.
    pub fn hold(&self, number: u32, holder: &Client) -> Result<(), PagerError> {
        let regions = self.layout.regions().iter();
        let note = Note {
            version: VERSION,
            pid: self.pid,
            regions: regions
                .map(|region| (region.base, region.bytes, region.offset))
                .collect(),
        };
        let note = serde_json::to_vec(&note).map_err(PagerError::system("write a note"))?;
        // The marks come first: a process that finds the descriptor must find them, or it would
        // bring back pages that the machine has given up.
        holder.put(&spent_name(number), b"", self.spent.as_fd())?;
        holder.put(&faults_name(number), &note, self.faults.file())?;
        Ok(())
    }
}

/// The machines that are served now, by number.
#[derive(Debug, Default)]
pub struct Machines {
    served: Mutex<BTreeMap<u32, Entry>>,
    /// What was done for those that have ended.
    ended: Mutex<Figures>,
}

impl Machines {
    /// Enters a machine under the smallest number that is free, by `make`, which is given the
    /// number.
    ///
    /// # Errors
    /// [`PagerError::Full`].
    pub fn enter(&self, make: impl FnOnce(u32) -> (Machine, Entry)) -> Result<Machine, PagerError> {
        let mut served = self.served.lock();
        let free = (0..MOST_MACHINES as u32).find(|number| !served.contains_key(number));
        let Some(number) = free else {
            return Err(PagerError::Full {
                most: MOST_MACHINES,
            });
        };
        let (machine, entry) = make(number);
        served.insert(number, entry);
        Ok(machine)
    }

    /// Enters a machine that an earlier process served, under the number that it had.
    pub fn enter_again(&self, number: u32, entry: Entry) {
        self.served.lock().insert(number, entry);
    }

    /// Takes out a machine that has ended; its number is free.
    pub fn leave(&self, number: u32) {
        // This lock is held until the machine's figures are among those of the ended ones, so that
        // `figures` finds them in one of the two.
        let mut served = self.served.lock();
        if let Some(entry) = served.remove(&number) {
            let mut ended = self.ended.lock();
            *ended = ended.plus(entry.counters.read());
        }
    }

    pub fn count(&self) -> usize {
        self.served.lock().len()
    }

    /// Has a holder keep what is held of one machine.
    pub fn hold(&self, number: u32, holder: &Client) -> Result<(), PagerError> {
        match self.served.lock().get(&number) {
            Some(entry) => entry.hold(number, holder),
            None => Ok(()),
        }
    }

    /// Has another holder keep everything.
    pub fn hold_all(&self, holder: &Client) -> Result<(), PagerError> {
        let served = self.served.lock();
        served
            .iter()
            .try_for_each(|(&number, entry)| entry.hold(number, holder))
    }

    pub fn reports(&self) -> Vec<MachineReport> {
        let served = self.served.lock();
        let report = |(&number, entry): (&u32, &Entry)| MachineReport {
            number,
            pid: entry.pid,
            bytes: entry.layout.bytes(),
            served: entry.since.elapsed(),
            taken_over: entry.taken_over,
            figures: entry.counters.read(),
        };
        served.iter().map(report).collect()
    }

    /// The figures of all machines, those that have ended included.
    pub fn figures(&self) -> Figures {
        // Locked in the order of `leave`, so that a machine that ends meanwhile is counted once.
        let served = self.served.lock();
        let ended = *self.ended.lock();
        served
            .values()
            .fold(ended, |sum, entry| sum.plus(entry.counters.read()))
    }
}

fn faults_name(number: u32) -> String {
    format!("m{number}")
}

fn spent_name(number: u32) -> String {
    format!("s{number}")
}

/// Has the holder forget a machine, the descriptor first.
pub fn let_go(number: u32, holder: &Client) -> Result<(), PagerError> {
    for name in [faults_name(number), spent_name(number)] {
        match holder.drop_held(&name) {
            // The holder may be another one than the machine was given to.
            Ok(()) | Err(HoldError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The numbers of the machines that are held.
pub fn held(holder: &Client) -> Result<Vec<u32>, PagerError> {
    let names = holder.list()?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix('m'));
    Ok(numbers.filter_map(|number| number.parse().ok()).collect())
}

/// Gets a machine back from the holder, with the process of its VMM.
pub fn get_back(
    number: u32,
    holder: &Client,
    snapshot_pages: u64,
) -> Result<(Machine, i32), PagerError> {
    let name = faults_name(number);
    let held = holder.get(&name)?;
    let wrong = |why: String| PagerError::Held {
        name: name.clone(),
        why,
    };
    let note: Note =
        serde_json::from_slice(&held.note).map_err(|error| wrong(error.to_string()))?;
    if note.version != VERSION {
        let version = note.version;
        return Err(wrong(format!(
            "it has version {version}, this program knows {VERSION}"
        )));
    }
    let regions = note.regions.iter();
    let regions = regions.map(|&(base, bytes, offset)| Region {
        base,
        bytes,
        offset,
    });
    let page_bytes = dyno_pages::PAGE_BYTES as u64;
    let layout = Layout::from_regions(regions.collect(), snapshot_pages * page_bytes)?;
    let spent: OwnedFd = holder.get(&spent_name(number))?.file;
    let machine = Machine {
        number,
        layout,
        faults: Arc::new(Userfault::adopt(held.file)?),
        spent: Spent::reopen(spent, snapshot_pages)?,
        connection: None,
        counters: Arc::default(),
    };
    Ok((machine, note.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MOST_REGIONS;

    #[test]
    fn the_note_of_the_largest_layout_fits() {
        let note = Note {
            version: VERSION,
            pid: i32::MAX,
            regions: vec![(u64::MAX, 1 << 44, 1 << 44); MOST_REGIONS],
        };
        let note = serde_json::to_vec(&note).expect("JSON");
        assert!(
            note.len() <= dyno_pages_hold::MOST_NOTE_BYTES,
            "{}",
            note.len()
        );
    }

    #[test]
    fn the_names_of_all_machines_fit_into_a_list() {
        let names = (0..MOST_MACHINES as u32).flat_map(|at| [faults_name(at), spent_name(at)]);
        let bytes: usize = names.map(|name| name.len() + 1).sum();
        assert!(bytes + "snapshot\n".len() < dyno_pages_hold::MOST_NOTE_BYTES);
    }
}
