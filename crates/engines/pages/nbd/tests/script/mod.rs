//! A client written down beforehand, and what the server said to it.

#![allow(dead_code, reason = "each test uses its part of it")]

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use dyno_pages::{PAGE_BYTES, Settings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_nbd::{Ended, Export, Exports, Figures, Link, serve};

/// All bytes of the client, to be read; those of the server.
pub struct Script<'a> {
    client: &'a [u8],
    server: Rc<RefCell<Vec<u8>>>,
    /// Bytes of the longest write of the server.
    longest: Rc<Cell<usize>>,
    wants_tls: bool,
}

impl Link for Script<'_> {
    fn wants_tls(&self) -> bool {
        self.wants_tls
    }

    fn start_tls(mut self) -> io::Result<Self> {
        self.wants_tls = false;
        Ok(self)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Script<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.client.read(into)
    }
}

impl Write for Script<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.server.borrow_mut().extend(bytes);
        self.longest.set(self.longest.get().max(bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An empty disk that holds `limit_bytes` of packed pages.
pub fn disk(pages: u64, limit_bytes: u64) -> Arc<Disk> {
    let store = Store::create(Settings::new(pages, limit_bytes)).expect("memory");
    Arc::new(Disk::new(Arc::new(store)))
}

/// One export, `pages`, and one of the same disk that is read-only.
pub fn exports(disk: &Arc<Disk>) -> Exports {
    let export = |name: &str, read_only| Export {
        name: name.to_owned(),
        description: format!("{} pages", disk.bytes() / PAGE_BYTES as u64),
        disk: Arc::clone(disk),
        read_only,
    };
    Exports::new(vec![export("pages", false), export("fixed", true)]).expect("names")
}

/// Runs a whole connection.
pub fn run(exports: &Exports, client: &[u8], wants_tls: bool) -> (io::Result<Ended>, Vec<u8>) {
    let (ended, said, _) = run_measured(exports, client, wants_tls);
    (ended, said)
}

/// Runs a whole connection, and also returns the bytes of the server's longest write.
pub fn run_measured(
    exports: &Exports,
    client: &[u8],
    wants_tls: bool,
) -> (io::Result<Ended>, Vec<u8>, usize) {
    let server = Rc::new(RefCell::new(Vec::new()));
    let longest = Rc::new(Cell::new(0));
    let link = Script {
        client,
        server: Rc::clone(&server),
        longest: Rc::clone(&longest),
        wants_tls,
    };
    let ended = serve(link, exports, &Figures::default());
    (ended, server.take(), longest.get())
}

/// The client's flags.
pub const FLAGS: [u8; 4] = [0, 0, 0, 3];
pub const LIST: u32 = 3;
pub const START_TLS: u32 = 5;
pub const GO: u32 = 7;
pub const STRUCTURED: u32 = 8;

/// An option.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of Go.
pub fn go(name: &str) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend(name.as_bytes());
    bytes.extend([0, 1, 0, 3]);
    option(GO, &bytes)
}

/// A request without data.
pub fn request(command: u16, flags: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(*b"a cookie");
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}
