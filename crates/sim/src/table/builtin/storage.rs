//! Rows of storage resources.

use serde_json::Value;

use crate::table::read::{Subject, field};

const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_CLASS_ANNOTATIONS: [&str; 2] = [
    "/metadata/annotations/storageclass.kubernetes.io~1is-default-class",
    "/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class",
];

pub(super) fn storage_class(class: Subject<'_>) -> Vec<Value> {
    let is_default = DEFAULT_CLASS_ANNOTATIONS.iter().any(|annotation| class.text(annotation) == "true");
    let mark = if is_default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", class.text("/metadata/name")).into(),
        class.text("/provisioner").into(),
        class.text_or("/reclaimPolicy", "Delete").into(),
        class.text_or("/volumeBindingMode", "Immediate").into(),
        class.flag("/allowVolumeExpansion").unwrap_or_default().into(),
        class.age(),
    ]
}

pub(super) fn csi_node(node: Subject<'_>) -> Vec<Value> {
    vec![node.name(), node.list("/spec/drivers").len().into(), node.age()]
}

pub(super) fn volume_attachment(attachment: Subject<'_>) -> Vec<Value> {
    vec![
        attachment.name(),
        attachment.text("/spec/attacher").into(),
        attachment.text("/spec/source/persistentVolumeName").into(),
        attachment.text("/spec/nodeName").into(),
        attachment.flag("/status/attached").unwrap_or_default().into(),
        attachment.age(),
    ]
}

pub(super) fn persistent_volume(volume: Subject<'_>) -> Vec<Value> {
    let claim = match volume.get("/spec/claimRef") {
        Some(claim) => format!("{}/{}", field(claim, "namespace"), field(claim, "name")),
        None => String::new(),
    };
    vec![
        volume.name(),
        volume.text_or("/spec/capacity/storage", "0").into(),
        access_modes(volume.list("/spec/accessModes")).into(),
        volume.text("/spec/persistentVolumeReclaimPolicy").into(),
        phase(volume).into(),
        claim.into(),
        class_name(volume).into(),
        volume.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        volume.text("/status/reason").into(),
        volume.age(),
        volume.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

pub(super) fn persistent_volume_claim(claim: Subject<'_>) -> Vec<Value> {
    let bound = !claim.text("/spec/volumeName").is_empty();
    let capacity = if bound { claim.text_or("/status/capacity/storage", "0") } else { "" };
    let modes = if bound { access_modes(claim.list("/status/accessModes")) } else { String::new() };
    vec![
        claim.name(),
        phase(claim).into(),
        claim.text("/spec/volumeName").into(),
        capacity.into(),
        modes.into(),
        class_name(claim).into(),
        claim.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        claim.age(),
        claim.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

fn phase<'a>(subject: Subject<'a>) -> &'a str {
    if subject.is_deleted() { "Terminating" } else { subject.text("/status/phase") }
}

fn class_name<'a>(subject: Subject<'a>) -> &'a str {
    match subject.get(CLASS_ANNOTATION).and_then(Value::as_str) {
        Some(class) => class,
        None => subject.text("/spec/storageClassName"),
    }
}

fn access_modes(modes: &[Value]) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let named = short.iter().filter(|(long, _)| modes.iter().any(|mode| mode == long)).map(|(_, short)| *short);
    named.collect::<Vec<_>>().join(",")
}
