//! Custom kinds, and what is special about some built-in ones.

use crate::story::{Story, check, pod};
use expect_test::expect;

const DEFINITION: &str = r#"{"metadata":{"name":"gadgets.example.com"},"spec":{"group":"example.com","names":{"kind":"Gadget","plural":"gadgets","singular":"gadget","listKind":"GadgetList"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1,"default":2}}},"status":{"type":"object","properties":{"seen":{"type":"boolean"}}}}}}}]}}"#;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/gadgets";

#[test]
fn a_definition_makes_a_kind() {
    let story = Story::new();
    let told = story.play(&format!(
        "GET {GADGETS}
         POST {DEFINITIONS} {DEFINITION}
         GET {DEFINITIONS}/gadgets.example.com => /status/conditions/1/type /status/conditions/1/status /status/storedVersions
         GET /apis/example.com/v1 => /resources/0/name
         POST {GADGETS} {{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{{\"name\":\"g\"}},\"spec\":{{}},\"status\":{{\"seen\":true}}}} => /spec/size /status /metadata/generation
         PATCH {GADGETS}/g {{\"spec\":{{\"size\":0}}}}
         PATCH {GADGETS}/g {{\"spec\":{{\"size\":3}}}} => /spec/size /metadata/generation
         PATCH {GADGETS}/g/status {{\"status\":{{\"seen\":true}},\"spec\":{{\"size\":9}},\"metadata\":{{\"labels\":{{\"a\":\"b\"}}}}}} => /spec/size /status /metadata/generation /metadata/labels
         PATCH {GADGETS}/g [strategic] {{}}
         PUT {GADGETS}/g {{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{{\"name\":\"g\"}}}}
         GET {GADGETS} => /items/0/kind
         DELETE {DEFINITIONS}/gadgets.example.com
         GET {GADGETS}"
    ));
    expect![[r#"
        404 ? 
        201 CustomResourceDefinition gadgets.example.com
        200 CustomResourceDefinition gadgets.example.com "Established" "True" ["v1"]
        200 APIResourceList  "gadgets"
        201 Gadget g 2 - 1
        422 Invalid: Gadget.example.com "g" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1 ["FieldValueInvalid Invalid value: 0: spec.size in body should be greater than or equal to 1"]
        200 Gadget g 3 2
        200 Gadget g 3 {"seen":true} 2 -
        415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
        422 Invalid: gadgets.example.com "g" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update ["FieldValueInvalid Invalid value: 0: must be specified for an update"]
        200 GadgetList [g] "Gadget"
        200 Success gadgets.example.com
        404 ? 
    "#]].assert_eq(&told);
}

#[test]
fn a_definition_must_be_usable() {
    let broken = DEFINITION.replace("\"minimum\":1", "\"x-kubernetes-validations\":[{\"rule\":\"self +\"}]");
    let told = Story::new().play(&format!("POST {DEFINITIONS} {broken}\nGET {DEFINITIONS}\nGET {GADGETS}"));
    // The words of the rule's parser are not ours.
    assert!(told.starts_with("422 Invalid: CustomResourceDefinition.apiextensions.k8s.io"), "{told}");
    assert!(told.ends_with("200 CustomResourceDefinitionList []\n404 ? \n"), "{told}");
}

#[test]
fn pods_are_completed() {
    let story = Story::new();
    let pod: serde_json::Value = story.ok(&format!("POST /api/v1/namespaces/default/pods {}", pod("a", "")));
    let lines = |part: &str| -> String {
        let members = pod[part].as_object().unwrap().iter();
        members.map(|(name, value)| format!("{part}.{name} {value}\n")).collect()
    };
    let text = lines("metadata") + &lines("spec") + &lines("status");
    expect![[r#"
        metadata.creationTimestamp "2023-11-14T22:13:20Z"
        metadata.generation 1
        metadata.name "a"
        metadata.namespace "default"
        metadata.resourceVersion "12"
        metadata.uid "9f3c5fb7-77bc-4769-8501-77b39030d978"
        spec.containers [{"image":"i","imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-68rpd","readOnly":true}]}]
        spec.dnsPolicy "ClusterFirst"
        spec.enableServiceLinks true
        spec.preemptionPolicy "PreemptLowerPriority"
        spec.priority 0
        spec.restartPolicy "Always"
        spec.schedulerName "default-scheduler"
        spec.securityContext {}
        spec.serviceAccount "default"
        spec.serviceAccountName "default"
        spec.terminationGracePeriodSeconds 30
        spec.tolerations [{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]
        spec.volumes [{"name":"kube-api-access-68rpd","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]
        status.phase "Pending"
        status.qosClass "BestEffort"
    "#]].assert_eq(&text);
}

#[test]
fn priorities_come_from_classes() {
    let with = |spec: &str| {
        format!(r#"{{"metadata":{{"generateName":"a-"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],{spec}}}}}"#)
    };
    check(
        &format!(
            "POST /apis/scheduling.k8s.io/v1/priorityclasses {{\"metadata\":{{\"name\":\"high\"}},\"value\":1000}}
             POST /api/v1/namespaces/default/pods {} => /spec/priority /spec/preemptionPolicy
             POST /api/v1/namespaces/default/pods {}
             POST /api/v1/namespaces/default/pods {}
             POST /api/v1/namespaces/default/pods {}",
            with("\"priorityClassName\":\"high\""),
            with("\"priorityClassName\":\"low\""),
            with("\"priority\":7"),
            with("\"serviceAccountName\":\"robot\""),
        ),
        expect![[r#"
            201 PriorityClass high
            201 Pod a-68rpd 1000 "PreemptLowerPriority"
            403 Forbidden: pods "a-bpkjq" is forbidden: no PriorityClass with name low was found
            403 Forbidden: pods "a-qxngm" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name
            403 Forbidden: pods "a-lbr2f" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found
        "#]],
    );
}

#[test]
fn jobs_select_their_own_pods() {
    check(
        r#"POST /apis/batch/v1/namespaces/default/jobs {"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}} => /spec/selector/matchLabels /spec/template/metadata/labels/job-name /status"#,
        expect![[r#"
            201 Job j {"batch.kubernetes.io/controller-uid":"9f3c5fb7-77bc-4769-8501-77b39030d978"} "j" {}
        "#]],
    );
}

#[tokio::test]
async fn logs_are_read_and_followed() {
    let story = Story::new();
    let pods = "/api/v1/namespaces/default/pods";
    story.ok(&format!("POST {pods} {}", pod("a", "")));
    assert_eq!(story.play(&format!("GET {pods}/a/log")), "200 ? \n");
    story.ok(&format!("POST {pods}/a/binding {{\"metadata\":{{\"name\":\"a\"}},\"target\":{{\"name\":\"n\"}}}}"));
    let waiting = story.play(&format!("GET {pods}/a/log\nGET {pods}/a/log?container=x"));
    expect![[r#"
        400 BadRequest: container "c" in pod "a" is waiting to start: ContainerCreating
        400 BadRequest: container x is not valid for pod a
    "#]]
    .assert_eq(&waiting);
    story.ok(&format!(
        "PATCH {pods}/a/status {{\"status\":{{\"phase\":\"Running\",\"containerStatuses\":[{{\"name\":\"c\",\"image\":\"i\",\"imageID\":\"\",\"ready\":true,\"restartCount\":0,\"state\":{{\"running\":{{}}}}}}]}}}}"
    ));
    story.server.append_log("default", "a", "c", "one");
    story.server.append_log("default", "a", "c", "two");
    let mut stream = story.watch(&format!("{pods}/a/log?follow=true&tailLines=1"));
    story.server.append_log("default", "a", "c", "three");
    story.ok(&format!("PATCH {pods}/a/status {{\"status\":{{\"phase\":\"Succeeded\"}}}}"));
    let mut text = String::new();
    while let Some(bytes) = stream.try_next() {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    assert_eq!(text, "two\nthree\n");
    assert!(futures::StreamExt::next(&mut stream).await.is_none());
}
