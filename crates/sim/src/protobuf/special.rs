//! Messages whose JSON is not an object of their fields: times, quantities, numbers or texts, and raw JSON.

use jiff::Timestamp;
use serde_json::Value;

use super::utf8;
use super::wire::{self, Field, Reader};

type Read = fn(&[u8]) -> Option<Value>;

/// How a message is read that has a form of its own.
pub(super) fn reader(message: &str) -> Option<Read> {
    match message {
        "meta.v1.Time" => Some(|bytes| time(bytes, 0)),
        "meta.v1.MicroTime" => Some(|bytes| time(bytes, 6)),
        "api.resource.Quantity" => Some(|bytes| first_text(bytes).map(Value::from)),
        "util.intstr.IntOrString" => Some(number_or_text),
        "pkg.runtime.RawExtension" | "meta.v1.FieldsV1" => Some(raw),
        _ => None,
    }
}

fn time(bytes: &[u8], digits: usize) -> Option<Value> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Reader::new(bytes) {
        match field? {
            Field { number: 1, value: wire::Value::Number(number) } => seconds = number.cast_signed(),
            Field { number: 2, value: wire::Value::Number(number) } => nanos = number.cast_signed(),
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Some(Value::Null);
    }
    let time = Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()?;
    Some(if digits == 0 { format!("{time:.0}") } else { format!("{time:.6}") }.into())
}

fn first_text(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    for field in Reader::new(bytes) {
        if let Field { number: 1, value: wire::Value::Bytes(bytes) } = field? {
            text = utf8(bytes)?;
        }
    }
    Some(text)
}

fn number_or_text(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Reader::new(bytes) {
        match field? {
            Field { number: 1, value: wire::Value::Number(kind) } => is_text = kind == 1,
            Field { number: 2, value: wire::Value::Number(value) } => number = value.cast_signed(),
            Field { number: 3, value: wire::Value::Bytes(bytes) } => text = utf8(bytes)?,
            _ => {}
        }
    }
    Some(if is_text { text.into() } else { number.into() })
}

fn raw(bytes: &[u8]) -> Option<Value> {
    for field in Reader::new(bytes) {
        if let Field { number: 1, value: wire::Value::Bytes(json) } = field? {
            return serde_json::from_slice(json).ok();
        }
    }
    Some(Value::Null)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as JSON has them.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                let index = usize::try_from(group >> (18 - 6 * place) & 63).unwrap_or_default();
                text.push(char::from(ALPHABET[index]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
