//! The plain pager: it maps the file, and answers each fault with one copy. Has `unsafe`: the
//! mapping, and waiting for two descriptors.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use dyno_pages::PAGE_BYTES;
use dyno_pages_hold::receive_part;
use dyno_pages_microvm::Layout;
use dyno_pages_region::userfault::{Event, Userfault};

use crate::Result;

/// A mapped file, read-only and as the page cache has it.
pub struct Mapped {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Mapped {
    pub fn open(path: &Path) -> Result<Mapped> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len() as usize;
        // SAFETY: a new mapping wherever the system likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match at {
            libc::MAP_FAILED => Err(std::io::Error::last_os_error().into()),
            at => Ok(Mapped { at, bytes }),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self`; nothing writes to it.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }
}

// SAFETY: it is only read.
unsafe impl Sync for Mapped {}
// SAFETY: see above.
unsafe impl Send for Mapped {}

/// The plain pager: no store, no holder, one copy for each fault.
pub fn plain(folder: &Path) -> Result<()> {
    let mapped = Mapped::open(&folder.join("memory"))?;
    let listener = UnixListener::bind(folder.join("socket"))?;
    println!("listening");
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let (stream, mapped) = (stream?, &mapped);
            // The end of a clone ends its thread, by an error of whatever it was about to do.
            scope.spawn(move || plain_clone(&stream, mapped).map_err(|error| error.to_string()));
        }
        Ok(())
    })
}

pub fn plain_clone(stream: &UnixStream, mapped: &Mapped) -> Result<()> {
    let mut message = vec![0; 65_536];
    let (bytes, descriptor) = receive_part(stream, &mut message)?;
    let layout = Layout::parse(&message[..bytes], mapped.bytes as u64)?.ok_or("cut")?;
    let faults = Userfault::adopt(descriptor.ok_or("no descriptor")?)?;
    let mut events = Vec::new();
    loop {
        let mut files = [faults.file().as_raw_fd(), stream.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the structures live through the call.
        unsafe { libc::poll(files.as_mut_ptr(), 2, -1) };
        if files[1].revents != 0 {
            return Ok(());
        }
        faults.events(&mut events)?;
        for event in events.drain(..) {
            if let Event::Fault(fault) = event {
                let address = fault.address & !4095;
                let page = layout.page_at(address).ok_or("elsewhere")? as usize;
                let from = page * PAGE_BYTES;
                faults.copy(address, &mapped.bytes()[from..from + PAGE_BYTES])?;
            }
        }
    }
}
