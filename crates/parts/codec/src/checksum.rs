//! CRC32C (Castagnoli, RFC 3720 appendix B.4) of a page.

use crate::lz4::Page;

/// CRC32C of all bytes of `page`.
pub fn of_page(page: &Page) -> u32 {
    crc32c::crc32c(page)
}

/// CRC32C of `bytes`.
pub fn of_bytes(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_are_those_of_the_rfc() {
        assert_eq!(of_bytes(b"123456789"), 0xe306_9283);
        assert_eq!(of_bytes(&[0; 32]), 0x8a91_36aa);
        let page: Page = std::array::from_fn(|at| at as u8);
        assert_eq!(of_page(&page), of_bytes(&page));
    }
}
