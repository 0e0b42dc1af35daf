//! Custom kinds: the structural schema of a definition, and what the API server does with it.

mod check;
mod defaults;
mod lists;
mod prune;
mod rules;
mod schema;

pub(crate) use check::check;
pub(crate) use defaults::{complete, drop_nulls};
pub(crate) use lists::check_lists;
pub(crate) use prune::prune;
pub(crate) use rules::{check_rules, has_rules};
pub(crate) use schema::Structural;
