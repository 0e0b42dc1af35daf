//! A reading with everything that was worked out about it.

use model::{Requirements, Toleration};

use crate::interner::Want;
use crate::rules::Rules;

/// One reading of a class, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Stance {
    pub(crate) requirements: Requirements,
    pub(crate) want: Want,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) rules: Rules,
}
