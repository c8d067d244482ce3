//! Structures of `linux/ublk_cmd.h`, and the numbers of its commands.

/// A device without a number yet.
pub const ANY: u32 = u32::MAX;
/// Requests of a queue at most; descriptors of the next queue lie so many behind.
pub const MOST_DEPTH: u16 = 4096;
/// Bytes of a request's descriptor.
pub const DESCRIPTOR_BYTES: usize = 24;

/// Commands to the driver.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// A new device.
    Add,
    /// No more device.
    Delete,
    /// Its block device appears.
    Start,
    /// Its block device goes.
    Stop,
    /// Size and abilities.
    SetParams,
    /// What it is like.
    Info,
    /// The daemon has died, another one comes.
    StartRecovery,
    /// The other one is there.
    EndRecovery,
}

impl Order {
    /// Its number, as an ioctl's.
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

/// A queue's first command for a request: bring one.
pub const FETCH: u32 = command(3, 0x20, size_of::<QueueBody>());
/// Every further one: this one is done, bring the next.
pub const COMMIT_AND_FETCH: u32 = command(3, 0x21, size_of::<QueueBody>());

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OrderBody {
    /// Which device.
    pub number: u32,
    /// [`u16::MAX`]: no queue.
    pub queue: u16,
    /// Bytes at `address`.
    pub bytes: u16,
    /// A structure, if there is one.
    pub address: u64,
    /// A process's id, if there is one.
    pub data: u64,
    /// For devices of other users than root.
    pub path: [u32; 2],
}

impl OrderBody {
    /// As io_uring wants it.
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

/// `struct ublksrv_io_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct QueueBody {
    /// Which queue.
    pub queue: u16,
    /// Which of its requests.
    pub tag: u16,
    /// Bytes done, or a negative error number.
    pub result: i32,
    /// Where its bytes are.
    pub address: u64,
}

impl QueueBody {
    /// As io_uring wants it.
    pub fn bytes(&self) -> [u8; 16] {
        let mut all = [0; 16];
        all[..2].copy_from_slice(&self.queue.to_ne_bytes());
        all[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        all[4..8].copy_from_slice(&self.result.to_ne_bytes());
        all[8..].copy_from_slice(&self.address.to_ne_bytes());
        all
    }
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Info {
    /// Queues.
    pub queues: u16,
    /// Requests of each.
    pub depth: u16,
    /// Dead, live, quiesced.
    pub state: u16,
    pad0: u16,
    /// Bytes of a request at most.
    pub most_bytes: u32,
    /// Its number.
    pub number: u32,
    /// Its daemon.
    pub pid: i32,
    pad1: u32,
    /// What is wanted of the driver; the driver clears what it cannot do.
    pub flags: u64,
    own_flags: u64,
    owner: [u32; 2],
    reserved: [u64; 2],
}

/// The device stays when its daemon dies.
const RECOVERY: u64 = 1 << 3;
/// And what was under way is done again.
const REISSUE: u64 = 1 << 4;
/// Commands have an ioctl's numbers.
const IOCTL_NUMBERS: u64 = 1 << 6;

impl Info {
    /// A device to be made, of any number.
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
    /// Of a device of so many bytes whose requests have up to `most_bytes`.
    pub fn new(bytes: u64, most_bytes: u32, read_only: bool) -> Self {
        const BASIC_AND_DISCARD: u32 = 3;
        const PAGE_SHIFT: u8 = 12;
        // A range that takes milliseconds; the system cuts longer ones.
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

/// `struct ublksrv_io_desc`: a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// 0 read, 1 write, 2 flush, 3 discard, 5 write zeroes.
    pub operation: u8,
    /// Its offset in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Descriptor {
    /// Reads one.
    pub fn parse(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let low = u64::from(word(8));
        let start = u64::from(word(12)) << 32 | low;
        Self {
            operation: word(0) as u8,
            // The driver's numbers; a start beyond any device stays beyond it.
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
