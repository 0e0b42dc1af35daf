//! Objects of Kubernetes, read without the parts that nobody here asks for.
//!
//! Most of a pod is about what runs in it and who wrote which field. None of that is ever built in memory: the reader
//! passes over it. What is passed over is written down by type and field, so that a label named `env` is safe.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The fields that are passed over, by type.
const UNREAD: &[(&str, &[&str])] = &[
    ("ObjectMeta", &["managedFields"]),
    (
        "Container",
        &[
            "args",
            "command",
            "env",
            "envFrom",
            "image",
            "imagePullPolicy",
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "securityContext",
            "startupProbe",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "volumeDevices",
            "volumeMounts",
            "workingDir",
        ],
    ),
    ("ContainerStatus", &["containerID", "image", "imageID", "lastState", "state", "volumeMounts"]),
    (
        "PodSpec",
        &[
            "dnsConfig",
            "dnsPolicy",
            "ephemeralContainers",
            "hostAliases",
            "imagePullSecrets",
            "securityContext",
            "serviceAccount",
            "serviceAccountName",
        ],
    ),
    ("PodStatus", &["ephemeralContainerStatuses", "hostIP", "hostIPs", "podIP", "podIPs"]),
    ("NodeStatus", &["addresses", "daemonEndpoints", "images", "nodeInfo", "volumesAttached", "volumesInUse"]),
];

fn unread(type_name: &str) -> &'static [&'static str] {
    UNREAD.iter().find(|(name, _)| *name == type_name).map_or(&[], |(_, fields)| fields)
}

/// An object that was read so.
#[derive(Clone, Debug)]
pub(super) struct Lean<K>(pub(super) K);

impl<K: Resource> Resource for Lean<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Lean<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::deserialize(Reader(deserializer)).map(Self)
    }
}

/// Reads on through an inner reader, and keeps an eye on every value inside.
struct Reader<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Reader<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Watching { visitor, unread: &[] })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Watching { visitor, unread: unread(name) })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Watching { visitor, unread: &[] })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Watching { visitor, unread: &[] })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_seq(Watching { visitor, unread: &[] })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Watching { visitor, unread: &[] })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct identifier
    }
}

/// A visitor that is shown everything but what is passed over.
struct Watching<V> {
    visitor: V,
    unread: &'static [&'static str],
}

/// Hands a plain value on.
macro_rules! hand_on {
    ($($method:ident: $value:ty),+ $(,)?) => {
        $(fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Watching<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(formatter)
    }

    hand_on! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str,
        visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Reader(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Reader(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Items(inner))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Fields { inner, unread: self.unread })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(data)
    }
}

struct Items<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Value(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct Fields<A> {
    inner: A,
    unread: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        if self.unread.is_empty() {
            return self.inner.next_key_seed(seed);
        }
        while let Some(name) = self.inner.next_key_seed(Name { seed, unread: self.unread })? {
            match name {
                Read::Wanted(key) => return Ok(Some(key)),
                Read::PassedOver(unused) => seed = unused,
            }
            self.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.next_value_seed(Value(seed))
    }
}

/// Reads the name of a field.
struct Name<K> {
    seed: K,
    unread: &'static [&'static str],
}

/// What a name turned out to be.
enum Read<K, V> {
    Wanted(V),
    /// Nobody asks for the field; whoever reads the names goes on to the next.
    PassedOver(K),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<K> {
    type Value = Read<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Name<K> {
    type Value = Read<K, K::Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        if self.unread.contains(&name) {
            return Ok(Read::PassedOver(self.seed));
        }
        self.seed.deserialize(name.into_deserializer()).map(Read::Wanted)
    }
}

struct Value<T>(T);

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Value<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(Reader(deserializer))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;

    use super::*;

    /// What nobody asks for is not there, and everything else is.
    #[test]
    fn only_what_is_asked_for_is_read() {
        let metadata = json!({
            "name": "web", "namespace": "default", "labels": {"env": "prod", "managedFields": "mine"},
            "annotations": {"image": "kept"},
        });
        let container = json!({
            "name": "main", "resources": {"requests": {"cpu": "250m"}}, "ports": [{"containerPort": 80, "hostPort": 80}],
        });
        let lean = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {
                "containers": [container], "priority": -5, "hostNetwork": true,
                "tolerations": [{"operator": "Exists", "tolerationSeconds": 3}],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "overhead": {"memory": "1Gi"},
            },
            "status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z",
                "containerStatuses": [{"name": "main", "ready": true, "restartCount": 2, "image": "", "imageID": "",
                    "allocatedResources": {"cpu": "1"}}]},
        });
        let mut whole = lean.clone();
        whole["metadata"]["managedFields"] = json!([{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}}]);
        whole["spec"]["serviceAccountName"] = json!("web");
        whole["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "B"}]);
        whole["spec"]["containers"][0]["image"] = json!("web:1");
        whole["status"]["containerStatuses"][0]["image"] = json!("web:1");
        whole["status"]["containerStatuses"][0]["state"] = json!({"running": {"startedAt": "2026-01-02T03:04:05Z"}});
        whole["status"]["podIPs"] = json!([{"ip": "10.0.0.1"}]);
        for text in [whole.to_string(), serde_json::to_string_pretty(&whole).unwrap()] {
            let read: Lean<Pod> = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(&read.0).unwrap(), lean);
        }
        let read: Lean<Pod> = serde_json::from_value(whole).unwrap();
        assert_eq!(serde_json::to_value(&read.0).unwrap(), lean);
        let node =
            json!({"metadata": {"name": "n"}, "status": {"images": [{"names": ["a"]}], "capacity": {"cpu": "4"}}});
        let read: Lean<Node> = serde_json::from_value(node).unwrap();
        let status = read.0.status.unwrap();
        assert_eq!((status.images, status.capacity.map(|capacity| capacity.len())), (None, Some(1)));
    }

    /// A mistake in what is read is told as it would be without us.
    #[test]
    fn mistakes_are_told() {
        let wrong = json!({"metadata": {"name": 5}});
        let (ours, theirs) = (serde_json::from_value::<Lean<Pod>>(wrong.clone()), serde_json::from_value::<Pod>(wrong));
        assert_eq!(ours.unwrap_err().to_string(), theirs.unwrap_err().to_string());
    }
}
