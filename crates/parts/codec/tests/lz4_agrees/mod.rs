//! What a fuzzer holds against the page codecs; an ordinary test runs it on a seeded corpus. Has
//! `unsafe`: memory mapped by hand, so that a step past its end is a fault.

use dyno_codec::lz4::{self, BLOCK_BOUND, Codec, Encoder, PAGE_BYTES, Page};

/// Bytes as a block: they are refused or give a page, and nothing beside the block is read and
/// nothing beside the page is written.
pub fn check_block(block: &[u8]) {
    let mut source = Guarded::new(block.len());
    source.bytes().copy_from_slice(block);
    let mut target = Guarded::new(PAGE_BYTES);
    let page: &mut Page = target.bytes().try_into().expect("a page long");
    if lz4::decode(source.bytes(), page).is_ok() {
        let mut again = [0xa5; PAGE_BYTES];
        assert_eq!(lz4::decode(block, &mut again), Ok(()));
        assert!(again == *page, "the same block gives two pages");
    }
}

/// Bytes as the start of a page, repeated to its end: the C library and lz4_flex read what every
/// encoder writes, and a block cut off or with a bit flipped passes [`check_block`].
pub fn check_page(bytes: &[u8]) {
    let mut source = Guarded::new(PAGE_BYTES);
    let page: &mut Page = source.bytes().try_into().expect("a page long");
    for (place, byte) in page.iter_mut().zip(bytes.iter().cycle()) {
        *place = *byte;
    }
    for writer in [Codec::C, Codec::Page, Codec::PagePlain] {
        let mut out = [0; BLOCK_BOUND];
        let len = Encoder::new(writer)
            .encode(page, &mut out, BLOCK_BOUND)
            .expect("room");
        let mut back = [0xa5; PAGE_BYTES];
        assert_eq!(lz4::decode(&out[..len], &mut back), Ok(()));
        assert!(
            back == *page,
            "the C library reads another page of {writer:?}"
        );
        let read = lz4_flex::block::decompress(&out[..len], PAGE_BYTES);
        assert!(
            read.is_ok_and(|read| read == *page),
            "lz4_flex of {writer:?}"
        );
        let damage = bytes
            .iter()
            .fold(0usize, |sum, &b| sum.wrapping_mul(31) + usize::from(b));
        check_block(&out[..damage % len]);
        out[damage % len] ^= 1 << (damage / len % 8);
        check_block(&out[..len]);
    }
}

/// Memory that ends where a page that may not be touched begins.
struct Guarded {
    map: *mut u8,
    map_bytes: usize,
    len: usize,
}

unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, prot: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
    fn mprotect(at: *mut u8, len: usize, prot: i32) -> i32;
    fn munmap(at: *mut u8, len: usize) -> i32;
}

impl Guarded {
    fn new(len: usize) -> Self {
        let map_bytes = len.next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        // SAFETY: new private memory (read, write; private, anonymous), whose last page is then
        // closed; nothing else knows of it.
        let map = unsafe {
            let map = mmap(std::ptr::null_mut(), map_bytes, 3, 0x22, -1, 0);
            assert!(map as isize != -1, "no memory");
            assert_eq!(mprotect(map.add(map_bytes - PAGE_BYTES), PAGE_BYTES, 0), 0);
            map
        };
        Self {
            map,
            map_bytes,
            len,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the `len` bytes before the closed page are ours.
        unsafe {
            let end = self.map.add(self.map_bytes - PAGE_BYTES);
            std::slice::from_raw_parts_mut(end.sub(self.len), self.len)
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody holds a slice of it any more.
        unsafe { munmap(self.map, self.map_bytes) };
    }
}
