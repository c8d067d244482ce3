//! The structures of `linux/ublk_cmd.h`, and the numbers of its commands.

/// Stands for a device that has no number yet.
pub const ANY: u32 = u32::MAX;
/// The most requests of a queue; the descriptors of the next queue lie this many behind.
pub const MOST_DEPTH: u16 = 4096;
/// Length of a request's descriptor.
pub const DESCRIPTOR_BYTES: usize = 24;

/// Commands to the control device.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    Add,
    Delete,
    /// Makes the block device appear.
    Start,
    /// Takes the block device away; its users get errors.
    Stop,
    SetParams,
    Info,
    /// Says that the daemon has died and another one is coming.
    StartRecovery,
    /// Says that the other daemon serves every queue.
    EndRecovery,
}

impl Order {
    /// The number of the command, encoded as that of an ioctl.
    pub fn number(self) -> u32 {
        const READ: u32 = 2;
        const READ_WRITE: u32 = 3;
        let (direction, number) = match self {
            Self::Info => (READ, 0x02),
            Self::Add => (READ_WRITE, 0x04),
            Self::Delete => (READ_WRITE, 0x05),
            Self::Start => (READ_WRITE, 0x06),
            Self::Stop => (READ_WRITE, 0x07),
            Self::SetParams => (READ_WRITE, 0x08),
            Self::StartRecovery => (READ_WRITE, 0x10),
            Self::EndRecovery => (READ_WRITE, 0x11),
        };
        command(direction, number, size_of::<OrderBody>())
    }
}

const fn command(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | 0x75 << 8 | number
}

/// The first command of a queue for each request slot: wait for a request.
pub const FETCH: u32 = command(3, 0x20, size_of::<QueueBody>());
/// Every further command: the request is done, wait for the next one.
pub const COMMIT_AND_FETCH: u32 = command(3, 0x21, size_of::<QueueBody>());

/// `struct ublksrv_ctrl_cmd`, the parameters of an order.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OrderBody {
    /// The device that the order is for.
    pub number: u32,
    /// [`u16::MAX`] for an order that concerns no single queue.
    pub queue: u16,
    pub bytes: u16,
    /// Address of the order's structure, or 0.
    pub address: u64,
    /// A process id, for orders that need one.
    pub data: u64,
    /// Unused: for devices of users other than root.
    pub path: [u32; 2],
}

impl OrderBody {
    pub fn bytes(&self) -> [u8; 80] {
        let mut all = [0; 80];
        all[..4].copy_from_slice(&self.number.to_ne_bytes());
        all[4..6].copy_from_slice(&self.queue.to_ne_bytes());
        all[6..8].copy_from_slice(&self.bytes.to_ne_bytes());
        all[8..16].copy_from_slice(&self.address.to_ne_bytes());
        all[16..24].copy_from_slice(&self.data.to_ne_bytes());
        all
    }
}

/// `struct ublksrv_io_cmd`, the parameters of a queue's command.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QueueBody {
    pub queue: u16,
    /// The request slot within the queue.
    pub tag: u16,
    /// Bytes that were done, or a negative error number.
    pub result: i32,
    /// Address of the buffer for the next request's bytes.
    pub address: u64,
}

impl QueueBody {
    pub fn bytes(&self) -> [u8; 16] {
        let mut all = [0; 16];
        all[..2].copy_from_slice(&self.queue.to_ne_bytes());
        all[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        all[4..8].copy_from_slice(&self.result.to_ne_bytes());
        all[8..].copy_from_slice(&self.address.to_ne_bytes());
        all
    }
}

/// `struct ublksrv_ctrl_dev_info`: what the driver knows of a device.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Info {
    pub queues: u16,
    /// Request slots of each queue.
    pub depth: u16,
    /// 0 dead, 1 live, 2 without a daemon.
    pub state: u16,
    pad0: u16,
    /// The most bytes of one request.
    pub most_bytes: u32,
    pub number: u32,
    /// The process id of the daemon.
    pub pid: i32,
    pad1: u32,
    /// The abilities that are wanted; the driver clears those that it lacks.
    pub flags: u64,
    own_flags: u64,
    owner: [u32; 2],
    reserved: [u64; 2],
}

/// The device stays when its daemon dies, and its users wait.
const RECOVERY: u64 = 1 << 3;
/// Requests that were under way when the daemon died are given to the next one.
const REISSUE: u64 = 1 << 4;
/// Commands are numbered as ioctls.
const IOCTL_NUMBERS: u64 = 1 << 6;

impl Info {
    /// Describes a device to be made, of any number.
    pub fn wanted(queues: u16, depth: u16, most_bytes: u32) -> Self {
        Self {
            queues,
            depth,
            most_bytes,
            number: ANY,
            flags: RECOVERY | REISSUE | IOCTL_NUMBERS,
            ..Self::default()
        }
    }
}

/// `struct ublk_params` with the parts `basic` and `discard`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Params {
    bytes: u32,
    parts: u32,
    attributes: u32,
    logical_shift: u8,
    physical_shift: u8,
    best_shift: u8,
    least_shift: u8,
    most_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    boundary_mask: u64,
    discard_alignment: u32,
    discard_bytes: u32,
    most_discard_sectors: u32,
    most_zeroes_sectors: u32,
    discard_segments: u16,
    reserved: u16,
    pad: u32,
}

impl Params {
    /// The parameters of a device of `bytes` bytes whose requests have up to `most_bytes`.
    pub fn new(bytes: u64, most_bytes: u32, read_only: bool) -> Self {
        const BASIC_AND_DISCARD: u32 = 3;
        const PAGE_SHIFT: u8 = 12;
        // Such a range takes milliseconds to discard; the system cuts longer ones.
        const MOST_RANGE_SECTORS: u32 = (64 << 20) >> 9;
        Self {
            bytes: size_of::<Self>() as u32,
            parts: BASIC_AND_DISCARD,
            attributes: u32::from(read_only),
            logical_shift: PAGE_SHIFT,
            physical_shift: PAGE_SHIFT,
            best_shift: PAGE_SHIFT,
            least_shift: PAGE_SHIFT,
            most_sectors: most_bytes >> 9,
            sectors: bytes >> 9,
            discard_bytes: 1 << PAGE_SHIFT,
            most_discard_sectors: MOST_RANGE_SECTORS,
            most_zeroes_sectors: MOST_RANGE_SECTORS,
            discard_segments: 1,
            ..Self::default()
        }
    }
}

/// `struct ublksrv_io_desc`: a request, as the driver describes it in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// 0 read, 1 write, 2 flush, 3 discard, 5 write zeroes.
    pub operation: u8,
    pub offset: u64,
    pub bytes: u64,
}

impl Descriptor {
    pub fn parse(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let low = u64::from(word(8));
        let start = u64::from(word(12)) << 32 | low;
        Self {
            operation: word(0) as u8,
            // Sectors have 512 bytes. A start beyond any device must stay beyond it, so it does not
            // wrap.
            offset: start.saturating_mul(512),
            bytes: u64::from(word(4)) * 512,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_lengths_of_the_header_file() {
        assert_eq!(size_of::<OrderBody>(), 32);
        assert_eq!(size_of::<QueueBody>(), 16);
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(size_of::<Params>(), 64);
    }

    #[test]
    fn commands_have_the_numbers_of_the_header_file() {
        assert_eq!(Order::Add.number(), 0xc020_7504);
        assert_eq!(Order::Info.number(), 0x8020_7502);
        assert_eq!(FETCH, 0xc010_7520);
        assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
    }

    #[test]
    fn a_descriptor_is_read_in_bytes() {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[0] = 1;
        bytes[4] = 8;
        bytes[8] = 16;
        let found = Descriptor::parse(&bytes);
        let wanted = Descriptor {
            operation: 1,
            offset: 8192,
            bytes: 4096,
        };
        assert_eq!(found, wanted);
    }
}
