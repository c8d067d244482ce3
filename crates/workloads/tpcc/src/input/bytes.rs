//! An input as bytes, the argument of a procedure: a version, the type, then its fields.

use dyno_wire::{Protocol, Reader, Wire, wire_enum, wire_struct};

use super::{CustomerRef, Delivery, Input, Line, NewOrder, OrderStatus, Payment, StockLevel, Who};

/// The version of this encoding; another one is refused.
const VERSION: u8 = 1;

/// The most lines of an order, 15 by the specification.
const LINES_MAX: usize = 15;

/// Bytes that are not a valid input: how many, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes are not the input of a transaction: they {1}")]
pub struct BadInput(pub usize, pub &'static str);

/// The protocol of inputs. Its error is what is wrong with the bytes.
struct Inputs;

impl Protocol for Inputs {
    type Error = &'static str;

    fn damaged(what: &'static str, _left_bytes: usize) -> &'static str {
        what
    }
}

wire_enum!(Inputs: Input {
    1 NewOrder(order), 2 Payment(payment), 3 OrderStatus(status), 4 Delivery(delivery), 5 StockLevel(level)
});
wire_enum!(Inputs: Who { 0 Id(id), 1 LastName(number) });
wire_struct!(Inputs: CustomerRef { warehouse, district, who });
wire_struct!(Inputs: Line { item, supply, quantity });
wire_struct!(Inputs: Payment { warehouse, district, customer, amount, paid_ms, unique });
wire_struct!(Inputs: OrderStatus { customer });
wire_struct!(Inputs: Delivery { warehouse, carrier, delivered_ms });
wire_struct!(Inputs: StockLevel { warehouse, district, threshold });

// By hand, because a single byte counts the lines.
impl Wire<Inputs> for NewOrder {
    fn write(&self, out: &mut Vec<u8>) {
        let head = [self.warehouse, self.district, self.customer];
        Wire::<Inputs>::write(&head, out);
        Wire::<Inputs>::write(&self.entered_ms, out);
        out.push(self.lines.len() as u8);
        self.lines.iter().for_each(|line| line.write(out));
    }

    fn read(reader: &mut Reader<'_, Inputs>) -> Result<Self, &'static str> {
        let [warehouse, district, customer] = Wire::read(reader)?;
        let entered_ms = i64::read(reader)?;
        let count = usize::from(reader.byte()?);
        // The bytes may come from any client, and each line costs reads and writes.
        if count > LINES_MAX {
            return Err("have more than 15 lines");
        }
        let lines = (0..count).map(|_| Line::read(reader));
        Ok(NewOrder {
            warehouse,
            district,
            customer,
            lines: lines.collect::<Result<_, _>>()?,
            entered_ms,
        })
    }
}

impl Input {
    /// Encodes the input for a procedure's argument.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.write(&mut out);
        out
    }

    /// Decodes an input. All bytes must belong to it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Input, BadInput> {
        let read = || {
            let mut reader = Reader::new(bytes);
            if reader.byte()? != VERSION {
                return Err("have another version");
            }
            let input = Input::read(&mut reader)?;
            reader.finish().map(|()| input)
        };
        read().map_err(|what| BadInput(bytes.len(), what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> NewOrder {
        NewOrder {
            warehouse: 1,
            district: 2,
            customer: 3,
            lines: vec![Line {
                item: 5,
                supply: 6,
                quantity: 7,
            }],
            entered_ms: 4,
        }
    }

    /// The bytes of version 1, which callers may have stored or sent.
    #[test]
    fn version_1_stays_what_it_is() {
        let customer = |who| CustomerRef {
            warehouse: 1,
            district: 2,
            who,
        };
        let payment = Payment {
            warehouse: 8,
            district: 9,
            customer: customer(Who::LastName(3)),
            amount: -1,
            paid_ms: 10,
            unique: [11, 12],
        };
        let status = OrderStatus {
            customer: customer(Who::Id(3)),
        };
        let delivery = Delivery {
            warehouse: 1,
            carrier: 2,
            delivered_ms: 3,
        };
        let level = StockLevel {
            warehouse: 1,
            district: 2,
            threshold: 258,
        };
        for (input, bytes) in [
            (
                Input::NewOrder(order()),
                &b"\x01\x01\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\0\0\0\0\
                   \x01\x05\0\0\0\x06\0\0\0\x07\0\0\0"[..],
            ),
            (
                Input::Payment(payment),
                b"\x01\x02\x08\0\0\0\x09\0\0\0\x01\0\0\0\x02\0\0\0\x01\x03\0\0\0\
                  \xff\xff\xff\xff\xff\xff\xff\xff\x0a\0\0\0\0\0\0\0\
                  \x0b\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0",
            ),
            (
                Input::OrderStatus(status),
                b"\x01\x03\x01\0\0\0\x02\0\0\0\0\x03\0\0\0",
            ),
            (
                Input::Delivery(delivery),
                b"\x01\x04\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0",
            ),
            (
                Input::StockLevel(level),
                b"\x01\x05\x01\0\0\0\x02\0\0\0\x02\x01\0\0",
            ),
        ] {
            assert_eq!(input.to_bytes(), bytes);
            assert_eq!(Input::from_bytes(bytes), Ok(input));
        }
    }

    #[test]
    fn sixteen_lines_are_refused() {
        let lines = vec![order().lines[0]; 16];
        let long = Input::NewOrder(NewOrder { lines, ..order() });
        let refused = Input::from_bytes(&long.to_bytes()).expect_err("16 lines");
        assert_eq!(refused.1, "have more than 15 lines");
    }
}
