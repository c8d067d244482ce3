//! What a size leaves out of its suite, so that a record says what it is not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::Size;

/// Cases and variants of a suite that its size does not run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The names of the cases, in the order of the suite.
    pub cases: Vec<String>,
    /// The names of the variants, by case, of cases that are run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, Vec<String>>,
}

impl LeftOut {
    /// Whether the size runs all of the suite.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty() && self.variants.is_empty()
    }

    /// A sentence for people, without a full stop; `None` when nothing is left out.
    pub fn text(&self, size: Size) -> Option<String> {
        let variants: Vec<String> = self
            .variants
            .iter()
            .map(|(case, names)| format!("{case} ({})", names.join(", ")))
            .collect();
        let cases = match self.cases.as_slice() {
            [] => None,
            [one] => Some(format!("the case {one}")),
            more => Some(format!("{} cases ({})", more.len(), more.join(", "))),
        };
        let variants = match variants.as_slice() {
            [] => None,
            some => Some(format!("the variants of {}", some.join(", "))),
        };
        let parts: Vec<String> = cases.into_iter().chain(variants).collect();
        let size = format!("{size:?}").to_lowercase();
        (!parts.is_empty()).then(|| format!("the {size} size leaves out {}", parts.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_in_a_sentence() {
        assert_eq!(LeftOut::default().text(Size::Quick), None);
        let mut left_out = LeftOut {
            cases: vec!["rated".to_owned()],
            variants: BTreeMap::new(),
        };
        let text = left_out.text(Size::Quick);
        assert_eq!(
            text.as_deref(),
            Some("the quick size leaves out the case rated")
        );
        left_out.cases.push("skew-0".to_owned());
        let names = ["memory", "tcp"].map(str::to_owned).to_vec();
        left_out.variants.insert("one-core".to_owned(), names);
        assert_eq!(
            left_out.text(Size::Quick).as_deref(),
            Some(
                "the quick size leaves out 2 cases (rated, skew-0) and the variants of one-core \
                 (memory, tcp)"
            )
        );
    }
}
