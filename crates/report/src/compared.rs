//! Two executions beside each other: the one that shows a finding, and one that went otherwise.

use crate::{Control, Interleaving, words};

impl Control {
    /// Two executions to read beside each other, each with what to call it. The second one shows the finding.
    pub fn beside(&self) -> Option<[(String, &Interleaving); 2]> {
        let rows = self.rows()?;
        if let Some(other) = &self.other {
            return Some([("one execution".to_owned(), other), ("the other".to_owned(), rows)]);
        }
        let compared = self.compared.as_deref()?;
        let [first, second] = words::compared(compared);
        Some([(first, &compared.rows), (second, rows)])
    }
}
