//! Messages by hand, and what becomes of them.

use expect_test::{Expect, expect};

use super::special::base64;
use super::to_json;

/// A field with bytes in it.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[number << 3 | 2, length], content].concat()
}

/// A field with a small number in it.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes(1, &type_meta), bytes(2, message)].concat()
}

fn check(body: &[u8], expected: Expect) {
    expected.assert_eq(&to_json(body).map_or_else(|| "nothing".to_owned(), |object| object.to_string()));
}

#[test]
fn objects() {
    let metadata = bytes(1, &[bytes(1, b"web"), bytes(8, &[])].concat());
    let entry = [bytes(1, b"key"), bytes(2, b"value")].concat();
    check(
        &envelope("v1", "ConfigMap", &[metadata.clone(), bytes(2, &entry), bytes(3, &bytes(1, b"empty"))].concat()),
        expect![[
            r#"{"apiVersion":"v1","binaryData":{"empty":""},"data":{"key":"value"},"kind":"ConfigMap","metadata":{"name":"web"}}"#
        ]],
    );
    let minimum = bytes(1, &[number(1, 1), bytes(3, b"50%")].concat());
    let maximum = bytes(3, &[number(1, 0), number(2, 3)].concat());
    check(
        &envelope("policy/v1", "PodDisruptionBudget", &[metadata, bytes(2, &[minimum, maximum].concat())].concat()),
        expect![[
            r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"spec":{"maxUnavailable":3,"minAvailable":"50%"}}"#
        ]],
    );
    check(
        &envelope("apps/v1", "DeleteOptions", &[number(1, 5), bytes(5, b"All")].concat()),
        expect![[r#"{"apiVersion":"apps/v1","dryRun":["All"],"gracePeriodSeconds":5,"kind":"DeleteOptions"}"#]],
    );
}

#[test]
fn parts_of_their_owner_and_times() {
    let volume = [bytes(1, b"scratch"), bytes(2, &bytes(2, &[]))].concat();
    check(
        &envelope("v1", "Pod", &bytes(2, &bytes(1, &volume))),
        expect![[r#"{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"emptyDir":{},"name":"scratch"}]}}"#]],
    );
    let renewed = bytes(4, &[number(1, 90), number(2, 1)].concat());
    check(
        &envelope("coordination.k8s.io/v1", "Lease", &bytes(2, &renewed)),
        expect![[
            r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"1970-01-01T00:01:30.000000Z"}}"#
        ]],
    );
}

#[test]
fn nonsense() {
    check(b"{}", expect!["nothing"]);
    check(b"k8s\0\xff", expect!["nothing"]);
    check(&envelope("v1", "Unknown", &[]), expect!["nothing"]);
    check(&envelope("v1", "ConfigMap", b"\x0a\x05x"), expect!["nothing"]);
}

#[test]
fn bytes_are_base64() {
    let table = ["", "a", "ab", "abc", "abcd"].map(|text| base64(text.as_bytes())).join(" ");
    expect![" YQ== YWI= YWJj YWJjZA=="].assert_eq(&table);
}
