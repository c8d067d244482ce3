//! Finds gaps in the numbers of messages: messages that were lost with QoS 0, or that a filter left
//! out.

use serde::{Deserialize, Serialize};

/// Tracks the numbers of messages.
#[derive(Debug, Default)]
pub struct Sequence {
    /// The highest number so far, over all accounts.
    highest: Option<i64>,
    account: Account,
}

/// The messages since the last account, by their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Messages with or without a number.
    pub received: u64,
    /// Of them, messages without a number.
    pub unnumbered: u64,
    /// The number of the first message that has one.
    pub first: Option<i64>,
    /// The highest number so far, also of earlier accounts.
    pub last: Option<i64>,
    /// Places where numbers are left out.
    pub gaps: u64,
    /// Numbers that are left out there, less those that came late.
    pub missing: u64,
    /// Messages with a number below one that came before.
    pub late: u64,
}

#[derive(Deserialize)]
struct Numbered {
    sq: i64,
}

impl Sequence {
    /// Counts a message, and returns its number.
    pub fn note(&mut self, payload: &[u8]) -> Option<i64> {
        let number = serde_json::from_slice::<Numbered>(payload)
            .ok()
            .map(|numbered| numbered.sq);
        let account = &mut self.account;
        account.received += 1;
        let Some(number) = number else {
            account.unnumbered += 1;
            return None;
        };
        account.first.get_or_insert(number);
        match self.highest {
            // A number below the highest fills a place that was counted as missing, or comes a
            // second time.
            Some(highest) if number <= highest => {
                account.late += 1;
                account.missing = account.missing.saturating_sub(1);
            }
            Some(highest) if number - 1 > highest => {
                account.gaps += 1;
                account.missing = account.missing.saturating_add(number.abs_diff(highest) - 1);
            }
            _ => {}
        }
        self.highest = Some(self.highest.map_or(number, |highest| highest.max(number)));
        account.last = self.highest;
        Some(number)
    }

    /// Returns the account so far and begins the next one, which continues from the highest number.
    pub fn close(&mut self) -> Account {
        std::mem::take(&mut self.account)
    }

    /// The account since the last [`Sequence::close`].
    pub fn account(&self) -> &Account {
        &self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(sequence: &mut Sequence, numbers: &[i64]) {
        for number in numbers {
            sequence.note(format!("{{\"f\":1,\"sq\":{number}}}").as_bytes());
        }
    }

    #[test]
    fn gaps_are_counted_and_filled_by_what_comes_late() {
        let mut sequence = Sequence::default();
        noted(&mut sequence, &[10, 11, 15, 12, 16]);
        assert_eq!(sequence.note(b"no number"), None);
        let account = sequence.close();
        let expected = Account {
            received: 6,
            unnumbered: 1,
            first: Some(10),
            last: Some(16),
            gaps: 1,
            missing: 2,
            late: 1,
        };
        assert_eq!(account, expected);
        // A gap across two accounts belongs to the second.
        noted(&mut sequence, &[20]);
        let account = sequence.close();
        assert_eq!(
            (account.gaps, account.missing, account.first),
            (1, 3, Some(20))
        );
        noted(&mut sequence, &[i64::MAX, i64::MIN]);
        assert_eq!(sequence.close().late, 1);
    }
}
