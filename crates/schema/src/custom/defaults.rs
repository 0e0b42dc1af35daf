//! Filling in what a definition gives when a field is absent.

use serde_json::{Map, Value};

use crate::custom::schema::{Additional, Structural};

/// Puts in every default, where the object that would hold it is there.
pub(crate) fn complete(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(object) => complete_object(schema, object),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    if item.is_null()
                        && !schema.nullable
                        && let Some(default) = &schema.default
                    {
                        *item = default.clone();
                    }
                    complete(schema, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn complete_object(schema: &Structural, object: &mut Map<String, Value>) {
    for (name, field) in &schema.properties {
        let Some(default) = &field.default else { continue };
        // A null that may not be one counts as absent.
        if object.get(name).is_none_or(|value| value.is_null() && !field.nullable) {
            object.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in object.iter_mut() {
        if let Some(field) = schema.properties.get(name) {
            complete(field, value);
        } else if let Some(Additional::Values(values)) = &schema.additional {
            if value.is_null()
                && !values.nullable
                && let Some(default) = &values.default
            {
                *value = default.clone();
            }
            complete(values, value);
        }
    }
}

/// Takes out nulls that may not be null and have no default: they count as absent.
pub(crate) fn drop_nulls(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|name, value| {
                let droppable = |field: &Structural| !field.nullable && field.default.is_none();
                !(value.is_null() && schema.properties.get(name).is_some_and(droppable))
            });
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.child(name) {
                    drop_nulls(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
