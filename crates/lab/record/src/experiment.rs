//! What `--why` changes in a case, to see which resource bounds its figure.

use serde::{Deserialize, Serialize};

/// One resource, changed in one way. The parameters that differ are those of the variant of the
/// same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// The resource in a word or two: `processor`, `disk`, `batch size`.
    pub resource: String,
    /// What was changed, for people: `one worker fewer`.
    pub change: String,
    /// Whether there is more or less of the resource than in the unchanged case.
    pub gives: Gives,
    /// What is changed around the child, where no parameter of the workload stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
    /// Whether the change leaves nothing behind that a checksum could be made of; the count of its
    /// answer must be right all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_nothing: bool,
}

/// The direction of an [`Experiment`], which decides what its figure must do if the resource is
/// what bounds the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gives {
    /// More of it, or no need for it any more: the figure of a case that it bounds gets better.
    More,
    /// Less of it: the figure of a case that it bounds gets worse.
    Less,
}

/// What is changed around a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Around {
    /// The child may run on these logical processors alone.
    Cores {
        /// Their numbers, as the kernel counts them.
        cores: Vec<u32>,
    },
    /// The scratch directory of the child lies in a memory file system.
    ScratchInMemory,
}
