//! The way out of a store: stored forms decoded, and their checksums compared. Has `unsafe`: stored
//! bytes as slices, under their lock.

use dyno_checksum::crc32c;
use dyno_codec::lz4::{self, Page};
use dyno_codec::repeat;

use super::{Handle, ZERO_PAGE_SUM};
use crate::error::{Damage, StoreError};
use crate::index::entry::{Packing, Stored};
use crate::store::slot_access::{Extent, SUM_BYTES, bound_sum};

impl Handle<'_> {
    /// Decodes the page that `stored` stands for, and compares its checksum if reads are to be
    /// verified. The caller holds the lock of the entry.
    #[inline(always)]
    pub(super) fn fetch(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        let verify = self.store.settings.verify;
        self.fetch_with(stored, page, bytes, verify)
    }

    /// As `fetch`, but compares the checksum whatever the settings say. A caller that stores the
    /// page again under a new checksum needs this: damage would be undetectable from then on.
    pub(in crate::store) fn fetch_verified(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        self.fetch_with(stored, page, bytes, true)
    }

    #[inline(always)]
    fn fetch_with(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
        verify: bool,
    ) -> Result<(), StoreError> {
        let sum = match stored {
            Stored::Empty => {
                bytes.fill(0);
                return Ok(());
            }
            Stored::Fill { pattern, sum } => {
                let word = u64::from(pattern) * 0x0001_0001_0001_0001;
                repeat::fill(bytes, word);
                // The page is made from the entry alone, so comparing the sum with the known one of
                // zeros checks the entry without a pass over 4096 bytes.
                if pattern == 0 && sum == bound_sum(ZERO_PAGE_SUM, page) {
                    return Ok(());
                }
                sum
            }
            Stored::Raw { sum, .. } => {
                let Extent { at, len } = self.store.extent_of(stored, page)?;
                // SAFETY: the caller holds the entry's lock.
                bytes.copy_from_slice(unsafe { self.store.stored_bytes(at, len) });
                sum
            }
            Stored::File { place, sum } => {
                self.read_file(place, page, bytes)?;
                sum
            }
            Stored::Packed { packing, .. } => {
                let Extent { at, len } = self.store.extent_of(stored, page)?;
                // All lines are requested at once; the decoder would wait for one after the other.
                self.store.memory.prefetch(at, len);
                // SAFETY: the caller holds the entry's lock.
                let form = unsafe { self.store.stored_bytes(at, len) };
                let (sum, form) = form.split_at(SUM_BYTES);
                let sum = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
                self.unpack(packing, form, bytes)
                    .map_err(|what| StoreError::Corrupt { page, what })?;
                match self.store.shared {
                    None => sum,
                    Some(_) => bound_sum(sum, page),
                }
            }
        };
        if verify {
            Self::compare(sum, page, bytes)
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn compare(stored: u32, page: u64, bytes: &Page) -> Result<(), StoreError> {
        let computed = bound_sum(crc32c(bytes), page);
        if computed == stored {
            return Ok(());
        }
        Err(StoreError::Corrupt {
            page,
            what: Damage::Checksum { computed, stored },
        })
    }

    #[inline(always)]
    fn unpack(&mut self, packing: Packing, form: &[u8], bytes: &mut Page) -> Result<(), Damage> {
        match packing {
            Packing::Lz4 => lz4::decode(form, bytes)?,
            Packing::Zstd => self.decoder.frames().decode(form, bytes)?,
            Packing::Dictionary => {
                let dictionary = self.store.dictionary.get().ok_or(Damage::Dictionary)?;
                self.decoder.decode(form, dictionary, bytes)?;
            }
            Packing::Word => {
                let wrong = |_| Damage::Word { len: form.len() };
                repeat::fill(bytes, u64::from_le_bytes(form.try_into().map_err(wrong)?));
            }
        }
        Ok(())
    }

    /// Decodes a slot that pages share, for a page that may join them, and compares its sum, which
    /// is not bound to a page there. A page that is stored as it is has no sum in its slot. The
    /// caller must keep the slot from being freed.
    pub(super) fn unpack_slot(
        &mut self,
        stored: Stored,
        page: u64,
        bytes: &mut Page,
    ) -> Result<(), StoreError> {
        let Extent { at, len } = self.store.extent_of(stored, page)?;
        // SAFETY: the caller guarantees it.
        let form = unsafe { self.store.stored_bytes(at, len) };
        match stored {
            Stored::Packed { packing, .. } => {
                let (sum, form) = form.split_at(SUM_BYTES);
                let sum = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
                self.unpack(packing, form, bytes)
                    .map_err(|what| StoreError::Corrupt { page, what })?;
                Self::compare(bound_sum(sum, page), page, bytes)
            }
            _ => {
                bytes.copy_from_slice(form);
                Ok(())
            }
        }
    }
}
