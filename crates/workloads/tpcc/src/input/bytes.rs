//! An input as bytes, the argument of a procedure: a version, the type, then numbers,
//! little-endian.

use super::{CustomerRef, Delivery, Input, Line, NewOrder, OrderStatus, Payment, StockLevel, Who};

/// The version of this encoding; another one is refused.
const VERSION: u8 = 1;

/// The most lines of an order, 15 by the specification.
const LINES_MAX: usize = 15;

/// Bytes that are not a valid input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes are no input of a transaction: {1}")]
pub struct BadInput(pub usize, pub &'static str);

impl Input {
    /// Encodes the input for a procedure's argument.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Out(vec![VERSION]);
        match self {
            Input::NewOrder(order) => {
                out.byte(1);
                out.u32s(&[order.warehouse, order.district, order.customer]);
                out.u64(order.entered_ms as u64);
                out.byte(order.lines.len() as u8);
                for line in &order.lines {
                    out.u32s(&[line.item, line.supply, line.quantity]);
                }
            }
            Input::Payment(payment) => {
                out.byte(2);
                out.u32s(&[payment.warehouse, payment.district]);
                out.customer(payment.customer);
                out.u64(payment.amount as u64);
                out.u64(payment.paid_ms as u64);
                out.u64(payment.unique[0]);
                out.u64(payment.unique[1]);
            }
            Input::OrderStatus(status) => {
                out.byte(3);
                out.customer(status.customer);
            }
            Input::Delivery(delivery) => {
                out.byte(4);
                out.u32s(&[delivery.warehouse, delivery.carrier]);
                out.u64(delivery.delivered_ms as u64);
            }
            Input::StockLevel(level) => {
                out.byte(5);
                out.u32s(&[level.warehouse, level.district, level.threshold]);
            }
        }
        out.0
    }

    /// Decodes an input. All bytes must belong to it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Input, BadInput> {
        let mut from = From { bytes, at: 0 };
        if from.byte()? != VERSION {
            return Err(from.bad("another version"));
        }
        let input = match from.byte()? {
            1 => Input::NewOrder(from.new_order()?),
            2 => Input::Payment(Payment {
                warehouse: from.u32()?,
                district: from.u32()?,
                customer: from.customer()?,
                amount: from.u64()? as i64,
                paid_ms: from.u64()? as i64,
                unique: [from.u64()?, from.u64()?],
            }),
            3 => Input::OrderStatus(OrderStatus {
                customer: from.customer()?,
            }),
            4 => Input::Delivery(Delivery {
                warehouse: from.u32()?,
                carrier: from.u32()?,
                delivered_ms: from.u64()? as i64,
            }),
            5 => Input::StockLevel(StockLevel {
                warehouse: from.u32()?,
                district: from.u32()?,
                threshold: from.u32()?,
            }),
            _ => return Err(from.bad("no such transaction")),
        };
        match from.at == bytes.len() {
            true => Ok(input),
            false => Err(from.bad("more bytes than it has")),
        }
    }
}

struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32s(&mut self, values: &[u32]) {
        for value in values {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn customer(&mut self, customer: CustomerRef) {
        self.u32s(&[customer.warehouse, customer.district]);
        match customer.who {
            Who::Id(id) => {
                self.byte(0);
                self.u32s(&[id]);
            }
            Who::LastName(number) => {
                self.byte(1);
                self.u32s(&[number]);
            }
        }
    }
}

struct From<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl From<'_> {
    fn bad(&self, why: &'static str) -> BadInput {
        BadInput(self.bytes.len(), why)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadInput> {
        let taken = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk());
        let taken = *taken.ok_or(self.bad("it ends too early"))?;
        self.at += N;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, BadInput> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, BadInput> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadInput> {
        self.take().map(u64::from_le_bytes)
    }

    fn customer(&mut self) -> Result<CustomerRef, BadInput> {
        Ok(CustomerRef {
            warehouse: self.u32()?,
            district: self.u32()?,
            who: match self.byte()? {
                0 => Who::Id(self.u32()?),
                1 => Who::LastName(self.u32()?),
                _ => return Err(self.bad("a customer is named by number or by last name")),
            },
        })
    }

    fn new_order(&mut self) -> Result<NewOrder, BadInput> {
        let (warehouse, district, customer) = (self.u32()?, self.u32()?, self.u32()?);
        let entered_ms = self.u64()? as i64;
        let count = usize::from(self.byte()?);
        if count > LINES_MAX {
            return Err(self.bad("more than 15 lines"));
        }
        let mut lines = Vec::with_capacity(count);
        for _ in 0..count {
            lines.push(Line {
                item: self.u32()?,
                supply: self.u32()?,
                quantity: self.u32()?,
            });
        }
        Ok(NewOrder {
            warehouse,
            district,
            customer,
            lines,
            entered_ms,
        })
    }
}
