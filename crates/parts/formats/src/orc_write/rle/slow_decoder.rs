//! A decoder written from the specification alone, one bit at a time: the judge of the encoder.

use super::super::protobuf::zigzag;

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
}

impl Bits<'_> {
    fn byte(&mut self) -> u64 {
        self.left = 0;
        self.at += 1;
        u64::from(self.bytes[self.at - 1])
    }

    fn bits(&mut self, width: u32) -> u64 {
        let mut value = 0;
        for _ in 0..width {
            if self.left == 0 {
                self.at += 1;
                self.left = 8;
            }
            self.left -= 1;
            value = value << 1 | u64::from(self.bytes[self.at - 1] >> self.left & 1);
        }
        value
    }

    fn align(&mut self) {
        self.left = 0;
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn width(code: u64) -> u32 {
    const WIDTHS: [u32; 8] = [26, 28, 30, 32, 40, 48, 56, 64];
    match code {
        0..24 => code as u32 + 1,
        _ => WIDTHS[code as usize - 24],
    }
}

/// All values of a stream, and the kind of each run.
pub(super) fn decode(bytes: &[u8], signed: bool) -> (Vec<i64>, Vec<u64>) {
    let mut input = Bits {
        bytes,
        at: 0,
        left: 0,
    };
    let (mut values, mut kinds) = (Vec::new(), Vec::new());
    let plain = |value| {
        if signed {
            unzigzag(value)
        } else {
            value as i64
        }
    };
    while input.at < bytes.len() {
        let kind = input.bits(2);
        kinds.push(kind);
        match kind {
            0 => {
                let bytes = input.bits(3) as u32 + 1;
                let count = input.bits(3) as usize + 3;
                let value = plain(input.bits(8 * bytes));
                values.extend(std::iter::repeat_n(value, count));
            }
            1 => {
                let width = width(input.bits(5));
                let count = input.bits(9) + 1;
                values.extend((0..count).map(|_| plain(input.bits(width))));
            }
            2 => patched(&mut input, &mut values),
            _ => {
                let code = input.bits(5);
                let count = input.bits(9) as usize + 1;
                let first = plain(input.varint());
                let step = unzigzag(input.varint());
                let mut value = first;
                values.push(value);
                for i in 1..count {
                    let size = match (code, i) {
                        (0, _) | (_, 1) => step,
                        _ => input.bits(width(code)) as i64 * step.signum(),
                    };
                    value += size;
                    values.push(value);
                }
                assert!(code == 0 || step != 0, "the first step tells the direction");
            }
        }
        input.align();
    }
    (values, kinds)
}

fn patched(input: &mut Bits<'_>, values: &mut Vec<i64>) {
    let value_width = width(input.bits(5));
    let count = input.bits(9) as usize + 1;
    let base_bytes = input.bits(3) as u32 + 1;
    let patch_width = width(input.bits(5));
    let gap_width = input.bits(3) as u32 + 1;
    let patches = input.bits(5);
    assert!(gap_width + patch_width <= 64 && patches > 0);
    let negative = input.bits(1) == 1;
    let base = input.bits(8 * base_bytes - 1) as i64;
    let base = if negative { -base } else { base };
    let mut run: Vec<u64> = (0..count).map(|_| input.bits(value_width)).collect();
    input.align();
    let mut at = 0;
    for _ in 0..patches {
        at += input.bits(gap_width) as usize;
        run[at] |= input.bits(patch_width) << value_width;
    }
    values.extend(run.iter().map(|&value| base + value as i64));
}

#[test]
fn the_examples_of_the_specification_decode() {
    assert_eq!(zigzag(-2), 3);
    assert_eq!(decode(&[0x0a, 0x27, 0x10], false).0, [10000; 5]);
    let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
    assert_eq!(decode(&direct, false).0, [23713, 43806, 57005, 48879]);
    let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];
    assert_eq!(decode(&delta, false).0, primes);
    let patched = [
        0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50,
        0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
    ];
    let (values, kinds) = decode(&patched, false);
    assert_eq!(kinds, [2]);
    assert_eq!(values[..5], [2030, 2000, 2020, 1_000_000, 2040]);
    assert_eq!(values[19], 2190);
}
