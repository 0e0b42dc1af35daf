//! Strategic merge patch: a merge patch that knows which lists are merged, and by what key, with directives for what
//! cannot be said by values (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`).

use serde_json::{Map, Value};

use super::error::{PatchError, json_type};
use super::merge::without_nulls;
use super::order::{Identity, arrange};
use super::{ListRule, Shape};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

pub(super) fn apply(original: &Value, patch: &Value, shape: &dyn Shape) -> Result<Value, PatchError> {
    let empty = Map::new();
    let fields = match patch {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        other => {
            return Err(PatchError::WrongType {
                prefix: "",
                found: json_type(other),
                wanted: "value of type map[string]interface {}".to_owned(),
            });
        }
    };
    refuse_unknown_directives(patch)?;
    let original = original.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_object(original, fields.clone(), Some(shape))?))
}

/// The real server would take such a field for data and drop it later; a typing error should not pass in silence.
fn refuse_unknown_directives(value: &Value) -> Result<(), PatchError> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let known = !name.starts_with('$')
                || name == PATCH
                || name == RETAIN_KEYS
                || name.starts_with(DELETE_FROM_LIST)
                || name.starts_with(ELEMENT_ORDER);
            if known { refuse_unknown_directives(value) } else { Err(PatchError::UnknownDirective(name.clone())) }
        }),
        Value::Array(items) => items.iter().try_for_each(refuse_unknown_directives),
        _ => Ok(()),
    }
}

type Fields = Map<String, Value>;

/// `shape` is `None` inside a part of the object that has no known fields, such as a map of plain values.
fn merge_object(mut target: Fields, mut patch: Fields, shape: Option<&dyn Shape>) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => {
                Err(PatchError::UnknownPatchType { directive: directive.clone(), object: Value::Object(patch.clone()) })
            }
        };
    }
    retain_keys(&mut target, &mut patch)?;
    order_lists(&mut target, &mut patch, shape)?;
    for (name, value) in patch {
        match list_to_delete_from(&name)? {
            Some(list) => delete_from_list(&mut target, list, &value)?,
            None => merge_field(&mut target, name, value, shape)?,
        }
    }
    Ok(target)
}

/// `$retainKeys` lists all fields that stay; the patch must not set another.
fn retain_keys(target: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = directive else { return Err(PatchError::RetainKeysFormat) };
    let stays = |name: &str| keys.iter().any(|key| key == name);
    let surprises = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM_LIST) && !name.starts_with(ELEMENT_ORDER) && !stays(name)
    });
    if surprises {
        return Err(PatchError::RetainKeysFormat);
    }
    target.retain(|name, _| stays(name));
    Ok(())
}

/// Carries out every `$setElementOrder/field`, together with the patch's list for that field.
fn order_lists(target: &mut Fields, patch: &mut Fields, shape: Option<&dyn Shape>) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let field = directive
            .strip_prefix(ELEMENT_ORDER)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or(PatchError::ElementOrderFormat)?;
        let order = into_list(order)?;
        let original = target.get(field).cloned().map(into_list).transpose()?;
        let changes = patch.get(field).cloned().map(into_list).transpose()?;
        let list_shape =
            shape.and_then(|shape| shape.field(field)).ok_or_else(|| PatchError::UnknownField(field.to_owned()))?;
        let identity = match list_shape.list_rule() {
            ListRule::MergeByKey(key) => Identity::Key(key),
            ListRule::MergeSet | ListRule::Replace => Identity::Itself,
        };
        check_order(changes.as_deref().unwrap_or_default(), &order, identity)?;
        let present = original.clone().unwrap_or_default();
        let merged = match (original, changes) {
            (None, None) => continue,
            (Some(original), None) => original,
            (None, Some(changes)) => without_directives(changes),
            (Some(original), Some(changes)) => merge_list(original, changes, &*list_shape)?,
        };
        if merged.is_empty() && present.is_empty() {
            return Err(PatchError::NoItems);
        }
        target.insert(field.to_owned(), Value::Array(arrange(merged, &order, &present, identity)?));
        patch.remove(field);
    }
    Ok(())
}

fn into_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(PatchError::WrongValue { wanted: "[]interface {}", found: other }),
    }
}

/// The items that the patch sets must be among those ordered, and in that order.
fn check_order(changes: &[Value], order: &[Value], identity: Identity<'_>) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for change in changes.iter().filter(|change| change.get(PATCH).is_none()) {
        let wanted = identity.of(change)?;
        loop {
            let Some(next) = rest.next() else {
                return Err(PatchError::ElementOrderMismatch {
                    list: Value::Array(changes.to_vec()),
                    order: Value::Array(order.to_vec()),
                });
            };
            if identity.of(next)? == wanted {
                break;
            }
        }
    }
    Ok(())
}

fn list_to_delete_from(name: &str) -> Result<Option<&str>, PatchError> {
    match name.strip_prefix(DELETE_FROM_LIST) {
        None => Ok(None),
        Some(rest) => rest.strip_prefix('/').map(Some).ok_or(PatchError::PrimitiveListFormat),
    }
}

fn delete_from_list(target: &mut Fields, list: &str, gone: &Value) -> Result<(), PatchError> {
    if gone.is_null() {
        target.remove(list);
        return Ok(());
    }
    if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), gone) {
        check_items(items, gone)?;
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

fn merge_field(target: &mut Fields, name: String, value: Value, shape: Option<&dyn Shape>) -> Result<(), PatchError> {
    let field_shape = shape.and_then(|shape| shape.field(&name));
    let merged = match (target.remove(&name), value) {
        (_, Value::Null) => None,
        (Some(Value::Object(current)), Value::Object(fields)) => Some(Value::Object(match &field_shape {
            Some(shape) if shape.replaces() => fields,
            shape => merge_object(current, fields, shape.as_deref())?,
        })),
        (Some(Value::Array(current)), Value::Array(items)) => Some(Value::Array(match &field_shape {
            Some(shape) => merge_list(current, items, &**shape)?,
            None => items,
        })),
        (_, value) => without_directive(without_nulls(&value)),
    };
    if let Some(merged) = merged {
        target.insert(name, merged);
    }
    Ok(())
}

fn merge_list(original: Vec<Value>, patch: Vec<Value>, shape: &dyn Shape) -> Result<Vec<Value>, PatchError> {
    let rule = shape.list_rule();
    if rule == ListRule::Replace {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    check_items(&original, &patch)?;
    let objects = original.iter().chain(&patch).any(Value::is_object);
    match rule {
        ListRule::MergeByKey(key) if objects => merge_by_key(original, patch, key, shape.item().as_deref()),
        _ if objects => Err(PatchError::ListWithoutKey),
        _ => {
            let mut merged = Vec::new();
            for item in original.iter().chain(&patch) {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            arrange(merged, &patch, &original, Identity::Itself)
        }
    }
}

/// All items of a merged list have one type, and none is a list.
fn check_items(original: &[Value], patch: &[Value]) -> Result<(), PatchError> {
    let mut types = original.iter().chain(patch).map(|item| (json_type(item), item.is_f64()));
    let Some(first) = types.next() else { return Ok(()) };
    if first.0 == "array" {
        return Err(PatchError::ListOfLists);
    }
    if types.any(|other| other != first) {
        return Err(PatchError::MixedItems {
            original: Value::Array(original.to_vec()),
            patch: Value::Array(patch.to_vec()),
        });
    }
    Ok(())
}

fn merge_by_key(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    item_shape: Option<&dyn Shape>,
) -> Result<Vec<Value>, PatchError> {
    let identity = Identity::Key(key);
    let mut changes = Vec::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(Value::as_str) {
            None => changes.push(item),
            Some(Some("delete")) => {
                let gone = identity.of(&item)?;
                original.retain(|kept| kept.get(key) != Some(gone));
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => return Err(PatchError::MergeInList),
            Some(_) => {
                let directive = item.get(PATCH).cloned().unwrap_or_default();
                return Err(PatchError::UnknownPatchType { directive, object: item });
            }
        }
    }
    if replace {
        identity.all(&changes)?;
        return Ok(changes);
    }
    let mut merged = original.clone();
    for change in &changes {
        let wanted = identity.of(change)?;
        let found = merged.iter_mut().find(|item| item.get(key) == Some(wanted));
        match (found, change) {
            (Some(Value::Object(current)), Value::Object(fields)) => {
                *current = merge_object(std::mem::take(current), fields.clone(), item_shape)?;
            }
            _ => merged.push(change.clone()),
        }
    }
    arrange(merged, &changes, &original, identity)
}

/// The value to keep of something that was not there before: an object with `$patch` is no value at all.
fn without_directive(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => Some(Value::Object(
            fields.into_iter().filter_map(|(name, value)| Some((name, without_directive(value)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(without_directives(items))),
        plain => Some(plain),
    }
}

fn without_directives(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(without_directive).collect()
}
