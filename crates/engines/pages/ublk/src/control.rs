//! Commands to the driver. Has `unsafe`: commands that point at structures of ours.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};

use crate::layout::{ANY, Info, Order, OrderBody, Params};
use crate::{UblkError, missing};

const PATH: &str = "/dev/ublk-control";

/// Whether this process can use ublk on this machine.
///
/// # Errors
/// [`UblkError::NotHere`] with the reason.
pub fn supported() -> Result<(), UblkError> {
    open(PATH).map(drop)
}

/// Opens a file of the driver. The error says what is missing, and how to get it.
pub fn open(path: &str) -> Result<File, UblkError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(Path::new(path))
        .map_err(|source| UblkError::NotHere {
            path: path.to_owned(),
            advice: missing::advice(&source),
            source,
        })
}

/// The driver's control device, with a ring of its own for commands.
pub struct Control {
    file: File,
    ring: IoUring<Entry128, cqueue::Entry>,
}

impl Control {
    pub fn open() -> Result<Self, UblkError> {
        let file = open(PATH)?;
        let ring = IoUring::builder()
            .build(4)
            .map_err(UblkError::system("make a ring for commands"))?;
        Ok(Self { file, ring })
    }

    /// Makes a device, and returns it with the number that the driver gave it.
    pub fn add(&mut self, wanted: Info) -> Result<Info, UblkError> {
        let mut info = wanted;
        self.with("add", ANY, Order::Add, &mut info)?;
        Ok(info)
    }

    /// Asks the driver about device `number`.
    pub fn info(&mut self, number: u32) -> Result<Info, UblkError> {
        let mut info = Info::default();
        self.with("look at", number, Order::Info, &mut info)?;
        Ok(info)
    }

    /// Tells the driver the size and the abilities of the device.
    pub fn set_params(&mut self, number: u32, params: Params) -> Result<(), UblkError> {
        let mut params = params;
        self.with("describe", number, Order::SetParams, &mut params)
    }

    /// Gives an order without a structure, and waits until it is done.
    pub fn order(
        &mut self,
        what: &'static str,
        number: u32,
        order: Order,
        data: u64,
    ) -> Result<(), UblkError> {
        let body = OrderBody {
            number,
            queue: u16::MAX,
            bytes: 0,
            address: 0,
            data,
            path: [0; 2],
        };
        self.run(order, &body).map_err(|source| UblkError::Command {
            what,
            number,
            source,
        })
    }

    fn with<T>(
        &mut self,
        what: &'static str,
        number: u32,
        order: Order,
        structure: &mut T,
    ) -> Result<(), UblkError> {
        let body = OrderBody {
            number,
            queue: u16::MAX,
            bytes: size_of::<T>() as u16,
            address: std::ptr::from_mut(structure) as u64,
            data: 0,
            path: [0; 2],
        };
        self.run(order, &body).map_err(|source| UblkError::Command {
            what,
            number,
            source,
        })
    }

    fn run(&mut self, order: Order, body: &OrderBody) -> io::Result<()> {
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(fd, order.number())
            .cmd(body.bytes())
            .build();
        // SAFETY: what the body points at lives until the command is done, which is waited for
        // below.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        loop {
            match self.ring.submit_and_wait(1) {
                // A signal ends the wait, not the command, and the command's structure must live
                // until its end.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            if let Some(done) = self.ring.completion().next() {
                return match done.result() {
                    0.. => Ok(()),
                    errno => Err(io::Error::from_raw_os_error(-errno)),
                };
            }
        }
    }
}
