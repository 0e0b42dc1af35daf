//! The order of a merged list.
//!
//! Items that the patch names stand in the patch's order, the others in the order they had; the two are interleaved
//! so that an item which stood before another in the object still does, where that is possible.

use std::cmp::Ordering;

use serde_json::Value;

use super::error::PatchError;

/// How items of a list are told apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity<'a> {
    /// By the value of a field.
    Key(&'a str),
    /// By the item itself.
    Itself,
}

impl Identity<'_> {
    /// What tells this item from others.
    pub(super) fn of(self, item: &Value) -> Result<&Value, PatchError> {
        match self {
            Self::Itself => Ok(item),
            Self::Key(key) => match item {
                Value::Object(fields) => {
                    fields.get(key).ok_or_else(|| PatchError::NoMergeKey { item: item.clone(), key: key.to_owned() })
                }
                other => Err(PatchError::WrongValue { wanted: "map[string]interface {}", found: other.clone() }),
            },
        }
    }

    /// The identities of all items of a list.
    pub(super) fn all(self, items: &[Value]) -> Result<Vec<&Value>, PatchError> {
        items.iter().map(|item| self.of(item)).collect()
    }
}

/// Brings `merged` into order: `wanted` is the order asked for, `present` the order in the object.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    present: &[Value],
    identity: Identity<'_>,
) -> Result<Vec<Value>, PatchError> {
    let wanted = identity.all(wanted)?;
    let present = identity.all(present)?;
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let rank = position(&wanted, identity.of(&item)?);
        let rank_present = position(&present, identity.of(&item)?);
        let ranked = Ranked { item, wanted: rank, present: rank_present };
        if rank.is_some() { named.push(ranked) } else { others.push(ranked) }
    }
    named.sort_by_key(|ranked| ranked.wanted);
    others.sort_by(|left, right| both(left.present, right.present));
    Ok(interleave(others, named))
}

struct Ranked {
    item: Value,
    wanted: Option<usize>,
    present: Option<usize>,
}

fn position(identities: &[&Value], wanted: &Value) -> Option<usize> {
    identities.iter().position(|identity| *identity == wanted)
}

fn both(left: Option<usize>, right: Option<usize>) -> Ordering {
    left.zip(right).map_or(Ordering::Equal, |(left, right)| left.cmp(&right))
}

/// Puts each of `others` before the first of `named` that stood behind it in the object.
fn interleave(others: Vec<Ranked>, named: Vec<Ranked>) -> Vec<Value> {
    let mut result = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    for next in named {
        while let Some(other) = others.next_if(|other| both(other.present, next.present) == Ordering::Less) {
            result.push(other.item);
        }
        result.push(next.item);
    }
    result.extend(others.map(|other| other.item));
    result
}
