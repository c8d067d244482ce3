//! How much of a record may still be quoted.

use dyno_record::{Load, Withdrawal};

use crate::model::Report;

/// What a withdrawal leaves of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was withdrawn, so every figure may be quoted.
    Whole,
    /// The rates and latencies of services are withdrawn; jobs of a stated size stand.
    Jobs,
    /// All figures are withdrawn, and none may be quoted.
    Nothing,
}

impl Standing {
    /// Reads the heading of a withdrawal; `None` when that does not say how much is withdrawn.
    pub fn from_withdrawal(withdrawal: Option<&Withdrawal>) -> Option<Standing> {
        let Some(withdrawal) = withdrawal else {
            return Some(Standing::Whole);
        };
        let what = withdrawal.what.as_str();
        match what.strip_prefix("Withdrawn: ").unwrap_or(what) {
            what if what.starts_with("all rates and latencies") => Some(Standing::Nothing),
            what if what.starts_with("the rates and latencies of") => Some(Standing::Jobs),
            _ => None,
        }
    }
}

impl Report {
    /// What stands of the record. A withdrawal that does not say how much it takes back takes back
    /// everything.
    pub fn standing(&self) -> Standing {
        // A heading that is not understood counts as a withdrawal of everything, because quoting a
        // figure that was taken back does more harm than leaving out one that stands.
        Standing::from_withdrawal(self.withdrawn.as_ref()).unwrap_or(Standing::Nothing)
    }

    /// Whether the figures of a case were not withdrawn.
    pub fn stands(&self, case: &str) -> bool {
        match self.standing() {
            Standing::Whole => true,
            Standing::Nothing => false,
            Standing::Jobs => {
                let found = self.cases.iter().find(|known| known.plan.name == case);
                found.is_some_and(|known| known.plan.load == Load::Job)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_how_much_is_withdrawn() {
        let standing = |what: &str| {
            let what = what.to_owned();
            let why = String::new();
            Standing::from_withdrawal(Some(&Withdrawal { what, why }))
        };
        let all = "Withdrawn: all rates and latencies of this record";
        assert_eq!(standing(all), Some(Standing::Nothing));
        let some = "Withdrawn: the rates and latencies of stores and faults in this record";
        assert_eq!(standing(some), Some(Standing::Jobs));
        assert_eq!(standing("something"), None);
        assert_eq!(Standing::from_withdrawal(None), Some(Standing::Whole));
    }
}
