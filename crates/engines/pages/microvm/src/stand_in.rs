//! A VMM's side of the handshake, for tests and measurements: memory that a pager fills, without a
//! machine in it. Has `unsafe`: touches of that memory.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use dyno_pages::{PAGE_BYTES, Page};
use dyno_pages_hold::send_with_file;
use dyno_pages_region::userfault::Userfault;
use dyno_pages_region::{Area, RegionError};

use crate::layout::Region;

const PAGE: u64 = PAGE_BYTES as u64;

/// Memory of a guest, in one or more regions, without any page in it.
#[derive(Debug)]
pub struct GuestMemory {
    areas: Vec<(Area, u64)>,
    faults: Userfault,
}

impl GuestMemory {
    /// Maps regions of so many pages, whose contents lie one after the other in the snapshot. With
    /// `removals` the pager hears of pages that are given up, as Firecracker has it.
    ///
    /// # Errors
    /// [`RegionError::NotAllowed`] and [`RegionError::NotSupported`] where faults cannot be handed
    /// over.
    pub fn map(regions: &[u64], removals: bool) -> Result<Self, RegionError> {
        let faults = Userfault::open_to_hand_over(removals)?;
        let mut areas = Vec::new();
        let mut first = 0;
        for pages in regions {
            let area = Area::new((pages * PAGE) as usize)?;
            faults.register_missing(area.start(), area.bytes())?;
            areas.push((area, first));
            first += pages;
        }
        Ok(Self { areas, faults })
    }

    /// The regions, as they are told to a pager.
    pub fn regions(&self) -> Vec<Region> {
        let region = |(area, first): &(Area, u64)| Region {
            base: area.start() as u64,
            bytes: area.bytes() as u64,
            offset: first * PAGE,
        };
        self.areas.iter().map(region).collect()
    }

    /// How many pages all regions have.
    pub fn pages(&self) -> u64 {
        let bytes = self.areas.iter().map(|(area, _)| area.bytes() as u64);
        bytes.sum::<u64>() / PAGE
    }

    /// Connects to a pager and sends what Firecracker sends. The connection is to be kept: its end
    /// tells the pager that the VMM may have ended.
    ///
    /// # Errors
    /// The system's reason.
    pub fn hand_over(&self, socket: &Path) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(socket)?;
        send_with_file(&stream, &message(&self.regions()), Some(self.faults.file()))?;
        Ok(stream)
    }

    /// The descriptor of the faults, for what [`GuestMemory::hand_over`] does not do.
    pub fn faults(&self) -> &Userfault {
        &self.faults
    }

    /// Reads the first byte of a page. Waits until the page is there.
    ///
    /// # Panics
    /// When the memory has no such page.
    pub fn touch(&self, page: u64) -> u8 {
        // SAFETY: mapped for as long as the area lives; any byte is a value. The read is volatile
        // because it is the fault that is wanted.
        unsafe { self.at(page).read_volatile() }
    }

    /// Reads a page. Waits until it is there.
    ///
    /// # Panics
    /// When the memory has no such page.
    pub fn read(&self, page: u64, into: &mut Page) {
        let (area, first) = self.area_of(page);
        area.copy_out(page - first, into);
    }

    /// Writes to the first byte of a page, which is brought in before.
    ///
    /// # Panics
    /// When the memory has no such page.
    pub fn write(&mut self, page: u64, byte: u8) {
        // SAFETY: mapped, and the borrow is the only one.
        unsafe { self.at(page).write_volatile(byte) }
    }

    /// Gives a page up, as a balloon that is inflated has it done.
    ///
    /// # Errors
    /// The system's reason.
    pub fn give_up(&self, page: u64) -> io::Result<()> {
        let (area, first) = self.area_of(page);
        area.drop_page(page - first)
    }

    fn area_of(&self, page: u64) -> &(Area, u64) {
        let behind = self.areas.partition_point(|(_, first)| *first <= page);
        &self.areas[behind - 1]
    }

    fn at(&self, page: u64) -> *mut u8 {
        let (area, first) = self.area_of(page);
        area.page(page - first)
    }
}

/// The message of the handshake, with the names of all versions of Firecracker.
pub fn message(regions: &[Region]) -> Vec<u8> {
    let described = regions.iter().map(|region| {
        serde_json::json!({
            "base_host_virt_addr": region.base,
            "size": region.bytes,
            "offset": region.offset,
            "page_size": PAGE,
            "page_size_kib": PAGE,
        })
    });
    serde_json::Value::from_iter(described)
        .to_string()
        .into_bytes()
}
