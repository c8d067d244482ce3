//! ZIP archives written by hand (APPNOTE 6.3), so that they can be wrong where a test wants it.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// One entry.
pub struct Entry<'a> {
    pub name: &'a str,
    pub text: &'a [u8],
    /// 0 stored, 8 deflated; others are written as stored.
    pub method: u16,
    /// Bit 0: encrypted.
    pub flags: u16,
    /// XORed into the CRC.
    pub crc_damage: u32,
    /// Bytes of the compressed text that are left out at its end.
    pub cut: usize,
}

impl<'a> Entry<'a> {
    pub fn deflated(name: &'a str, text: &'a [u8]) -> Self {
        Entry {
            name,
            text,
            method: 8,
            flags: 0,
            crc_damage: 0,
            cut: 0,
        }
    }

    pub fn stored(name: &'a str, text: &'a [u8]) -> Self {
        Entry {
            method: 0,
            ..Entry::deflated(name, text)
        }
    }

    fn packed(&self) -> Vec<u8> {
        let mut packed = match self.method {
            8 => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
                encoder.write_all(self.text).unwrap();
                encoder.finish().unwrap()
            }
            _ => self.text.to_vec(),
        };
        packed.truncate(packed.len() - self.cut);
        packed
    }

    /// What the local and the central header have in common.
    fn described(&self, packed_bytes: usize) -> Vec<u8> {
        const VERSION: u16 = 20;
        const NO_TIME: [u8; 4] = [0; 4];
        let mut crc = Crc::new();
        crc.update(self.text);
        let mut header = Vec::new();
        for word in [VERSION, self.flags, self.method] {
            header.extend(word.to_le_bytes());
        }
        header.extend(NO_TIME);
        header.extend((crc.sum() ^ self.crc_damage).to_le_bytes());
        header.extend((packed_bytes as u32).to_le_bytes());
        header.extend((self.text.len() as u32).to_le_bytes());
        header.extend((self.name.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        header
    }
}

/// A ZIP archive with these entries.
pub fn zip(entries: &[Entry<'_>]) -> Vec<u8> {
    let (mut file, mut central) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = file.len() as u32;
        let packed = entry.packed();
        let described = entry.described(packed.len());
        file.extend(b"PK\x03\x04");
        file.extend(&described);
        file.extend(entry.name.as_bytes());
        file.extend(&packed);
        central.extend(b"PK\x01\x02\x14\x00");
        central.extend(&described);
        central.extend([0; 10]);
        central.extend(offset.to_le_bytes());
        central.extend(entry.name.as_bytes());
    }
    let at = file.len() as u32;
    let count = (entries.len() as u16).to_le_bytes();
    file.extend(&central);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count);
    file.extend(count);
    file.extend((central.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}
