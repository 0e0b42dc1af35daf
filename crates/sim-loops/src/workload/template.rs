//! Pods made of templates, and the hash that names a template.

use k8s_openapi::api::core::v1::{ObjectReference, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::write::{PODS, Resource, Write, controller_reference, reference};

/// Characters of names that the API makes up: no vowels, nothing that looks like something else.
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A short text that differs between templates: FNV-1a in 32 bits, spelt in safe characters.
///
/// The real controllers hash Go's own dump of the template, so equal templates give other text there.
pub(crate) fn template_hash(template: &PodTemplateSpec, collisions: i32) -> String {
    let text = serde_json::to_string(template).unwrap_or_default();
    let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = text.as_bytes().iter().fold(0x811c_9dc5, fold);
    let hash = collisions.to_le_bytes().iter().filter(|_| collisions > 0).fold(hash, fold);
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(SAFE[usize::from(digit) % SAFE.len()])).collect()
}

/// Who makes pods, and from what.
pub(crate) struct Maker<'a> {
    pub(crate) resource: Resource,
    pub(crate) owner: &'a ObjectMeta,
    pub(crate) template: &'a PodTemplateSpec,
}

impl Maker<'_> {
    /// The pod of the template, controlled by the owner, with a name that the API completes.
    pub(crate) fn pod(&self) -> Value {
        let PodTemplateSpec { metadata, spec } = self.template;
        let metadata = metadata.as_ref();
        let owner_name = self.owner.name.as_deref().unwrap_or("");
        let mut made = json!({
            "generateName": format!("{owner_name}-"),
            "ownerReferences": [controller_reference(self.resource, self.owner)],
        });
        let mut carry = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                made[field] = value;
            }
        };
        carry("labels", metadata.and_then(|metadata| metadata.labels.as_ref()).map(|labels| json!(labels)));
        carry("annotations", metadata.and_then(|metadata| metadata.annotations.as_ref()).map(|all| json!(all)));
        carry("finalizers", metadata.and_then(|metadata| metadata.finalizers.as_ref()).map(|all| json!(all)));
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec })
    }

    /// The creation of a pod, told as an event of the owner.
    pub(crate) fn create(&self, pod: Value) -> Write {
        Write::Create {
            resource: PODS,
            namespace: self.owner.namespace.clone().unwrap_or_default(),
            object: pod,
            owner: Some(self.owner_reference()),
        }
    }

    pub(crate) fn owner_reference(&self) -> ObjectReference {
        reference(self.resource, self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_names_a_template() {
        let template = |image: &str| -> PodTemplateSpec {
            serde_json::from_value(json!({"spec": {"containers": [{"name": "c", "image": image}]}})).unwrap()
        };
        let hash = template_hash(&template("a"), 0);
        assert_eq!(hash, template_hash(&template("a"), 0));
        assert_ne!(hash, template_hash(&template("b"), 0));
        assert_ne!(hash, template_hash(&template("a"), 1));
        assert!(hash.bytes().all(|byte| SAFE.contains(&byte)), "{hash}");
    }
}
