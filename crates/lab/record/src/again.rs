//! Which runs measured the same work, so that a newer one stands for an older one.

use crate::schema::{Plan, Size};

impl Plan {
    /// The size of the suite and what was set in it, such as `quick with sf=1`, because other
    /// parameters are other work. How often and for how long it was measured is left out.
    pub fn size_text(&self) -> String {
        let size = match self.size {
            Size::Tiny => "tiny",
            Size::Quick => "quick",
            Size::Full => "full",
        };
        let is_work = |name: &str| !name.starts_with("repeats") && name != "seconds";
        let set = self.set.iter().filter(|(name, _)| is_work(name));
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        if set.is_empty() {
            return size.to_owned();
        }
        format!("{size} with {}", set.join(", "))
    }

    /// Whether this run has a case of an older one at the same size. A run of other cases of the
    /// same suite, or of the same cases with other parameters, takes nothing from the older one.
    pub fn measures_again(&self, older: &Plan) -> bool {
        let has = |name: &str| self.cases.iter().any(|case| case.name == name);
        self.suite == older.suite
            && self.size_text() == older.size_text()
            && older.cases.iter().any(|case| has(&case.name))
    }
}
