//! Every pod has a service account, and a volume with its token.

use crate::call::Call;
use crate::status_body::Status;
use crate::store::CollectionId;
use crate::strategy::token_volume_name;
use crate::write::text;
use serde_json::{Value, json};

const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(crate) fn admit(call: &mut Call<'_>, pod: &mut Value) -> Result<(), Status> {
    // A pod that a kubelet mirrors from its own files has none.
    if pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some() {
        return Ok(());
    }
    let account = match text(&pod["spec"], "serviceAccountName") {
        "" => "default".to_owned(),
        name => name.to_owned(),
    };
    let found = call.store.get(&CollectionId::new("", "serviceaccounts"), call.namespace(), &account).cloned();
    let Some(found) = found else {
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount \"{account}\" not found",
            call.namespace().unwrap_or_default()
        );
        return Err(Status::forbidden(call.resource(), text(&pod["metadata"], "name"), &why));
    };
    let Some(spec) = pod["spec"].as_object_mut() else { return Ok(()) };
    spec.insert("serviceAccountName".to_owned(), json!(account));
    spec.insert("serviceAccount".to_owned(), json!(account));
    let wanted = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    let offered = found.value()["automountServiceAccountToken"].as_bool();
    if wanted.or(offered).unwrap_or(true) {
        mount_token(call, &mut pod["spec"]);
    }
    Ok(())
}

fn mount_token(call: &mut Call<'_>, spec: &mut Value) {
    let lists = ["initContainers", "containers"];
    let lacks = |container: &Value| {
        let mounts = container["volumeMounts"].as_array();
        !mounts.is_some_and(|mounts| mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH))
    };
    if !lists.iter().any(|list| spec[*list].as_array().is_some_and(|containers| containers.iter().any(lacks))) {
        return;
    }
    let name = token_volume_name(call.store);
    for list in lists {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if lacks(container) {
                push(container, "volumeMounts", json!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH }));
            }
        }
    }
    push(spec, "volumes", token_volume(&name));
}

fn push(object: &mut Value, list: &str, item: Value) {
    match object[list].as_array_mut() {
        Some(items) => items.push(item),
        None => object[list] = json!([item]),
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                {
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": [{ "key": "ca.crt", "path": "ca.crt" }],
                    }
                },
                {
                    "downwardAPI": {
                        "items": [{
                            "path": "namespace",
                            "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
                        }],
                    }
                },
            ],
        },
    })
}
