//! The plain pager: it maps the snapshot, and answers each fault with one copy, as Firecracker's
//! example does. Has `unsafe`: the mapping, and waiting for two descriptors.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use dyno_pages::PAGE_BYTES;
use dyno_pages_hold::receive_part;
use dyno_pages_microvm::{Layout, MOST_MESSAGE_BYTES};
use dyno_pages_region::userfault::{Event, Userfault};

use super::PagesError;

/// A file mapped privately, so that its pages are those of the page cache until they are written.
pub(super) struct Mapped {
    at: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: nothing writes to the mapping.
unsafe impl Sync for Mapped {}
// SAFETY: a mapping belongs to the process and not to a thread.
unsafe impl Send for Mapped {}

impl Mapped {
    pub fn open(path: &Path) -> Result<Mapped, PagesError> {
        let failed = |e| PagesError::system(path.display().to_string(), e);
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len() as usize;
        // SAFETY: a new mapping wherever the system likes. The file is in the scratch directory of
        // this invocation, and nothing makes it shorter.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match at {
            libc::MAP_FAILED => Err(failed(io::Error::last_os_error())),
            at => Ok(Mapped { at, bytes }),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self`; nothing writes to it.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone, and no reference into it is left.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Serves every VMM that connects to `socket` until this process ends.
pub(super) fn serve(snapshot: &Path, socket: &Path) -> Result<(), PagesError> {
    let mapped = Arc::new(Mapped::open(snapshot)?);
    let listener = UnixListener::bind(socket)
        .map_err(|e| PagesError::system(socket.display().to_string(), e))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mapped = Arc::clone(&mapped);
            thread::spawn(move || {
                if let Err(error) = serve_one(&stream, &mapped) {
                    // A thread that touches the memory would wait for ever: only this one answers.
                    eprintln!("a fault was not answered: {error}");
                    std::process::abort();
                }
            });
        }
    });
    Ok(())
}

/// Answers the faults of one VMM until its connection ends.
fn serve_one(stream: &UnixStream, mapped: &Mapped) -> Result<(), Box<dyn std::error::Error>> {
    let mut message = vec![0; MOST_MESSAGE_BYTES];
    let (bytes, descriptor) = receive_part(stream, &mut message)?;
    let layout = Layout::parse(&message[..bytes], mapped.bytes as u64)?;
    let layout = layout.ok_or("the message is cut")?;
    let faults = Userfault::adopt(descriptor.ok_or("there is no descriptor")?)?;
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
                let address = fault.address / PAGE_BYTES as u64 * PAGE_BYTES as u64;
                let page = layout.page_at(address).ok_or("a fault lies elsewhere")?;
                let from = page as usize * PAGE_BYTES;
                faults.copy(address, &mapped.bytes()[from..from + PAGE_BYTES])?;
            }
        }
    }
}
