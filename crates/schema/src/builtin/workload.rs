//! Kinds that make pods, and disruption budgets over them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::builtin::common::{
    check_at_most_all, check_immutable, check_int_or_percent, check_label_selector, check_not_negative, check_word,
    int_or_percent, is_empty_selector, list, number, selector_matches, text,
};
use crate::builtin::pod;
use crate::errors::{FieldError, shown_fields};
use crate::path::Path;

/// Checks a Deployment.
pub(super) fn check_deployment(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    check_not_negative(spec, "replicas", &path, errors);
    check_selector(spec, "deployment", &path, errors);
    check_selected_template(spec, "ReplicaSet", &path, errors);
    check_strategy(&spec["strategy"], &path.field("strategy"), errors);
    check_not_negative(spec, "minReadySeconds", &path, errors);
    check_not_negative(spec, "revisionHistoryLimit", &path, errors);
    if let Some(deadline) = spec["progressDeadlineSeconds"].as_i64() {
        check_not_negative(spec, "progressDeadlineSeconds", &path, errors);
        if deadline <= spec["minReadySeconds"].as_i64().unwrap_or_default() {
            let field = path.field("progressDeadlineSeconds");
            errors.push(FieldError::invalid(field.shown(), deadline, "must be greater than minReadySeconds"));
        }
    }
    if let Some(old) = old {
        check_immutable(spec, &old["spec"], "selector", &path, errors);
    }
}

/// Checks a ReplicaSet.
pub(super) fn check_replica_set(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    check_not_negative(spec, "replicas", &path, errors);
    check_not_negative(spec, "minReadySeconds", &path, errors);
    check_selector(spec, "deployment", &path, errors);
    check_selected_template(spec, "ReplicaSet", &path, errors);
    if let Some(old) = old {
        check_immutable(spec, &old["spec"], "selector", &path, errors);
    }
}

/// Checks a DaemonSet.
pub(super) fn check_daemon_set(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if let Some(old) = old {
        check_immutable(spec, &old["spec"], "selector", &path, errors);
    }
    check_label_selector(&spec["selector"], &path.field("selector"), errors);
    let labels = &spec["template"]["metadata"]["labels"];
    // No selector matches nothing here, unlike an empty one.
    if spec.get("selector").is_none() || !selector_matches(&spec["selector"], labels) {
        errors.push(unmatched(labels, &path));
    }
    if spec.get("selector").is_some() && is_empty_selector(&spec["selector"]) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(path.field("selector").shown(), spec["selector"].clone(), detail));
    }
    pod::check_template(&spec["template"], &path.field("template"), errors);
    check_runs_always(&spec["template"], "DaemonSet", &path.field("template"), errors);
    check_not_negative(spec, "minReadySeconds", &path, errors);
    check_daemon_strategy(&spec["updateStrategy"], &path.field("updateStrategy"), errors);
    check_not_negative(spec, "revisionHistoryLimit", &path, errors);
}

/// Checks a StatefulSet.
pub(super) fn check_stateful_set(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if !matches!(text(spec, "podManagementPolicy"), "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        let field = path.field("podManagementPolicy");
        errors.push(FieldError::invalid(field.shown(), text(spec, "podManagementPolicy"), detail));
    }
    match text(&spec["updateStrategy"], "type") {
        "RollingUpdate" => {}
        "OnDelete" => {
            if let Some(rolling) = spec["updateStrategy"].get("rollingUpdate") {
                let field = path.field("updateStrategy").field("rollingUpdate");
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                let shown = shown_fields(&[
                    ("Partition", rolling["partition"].clone()),
                    ("MaxUnavailable", rolling["maxUnavailable"].clone()),
                ]);
                errors.push(FieldError::invalid_as(field.shown(), shown, detail));
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let field = path.field("updateStrategy");
            errors.push(FieldError::invalid(field.shown(), spec["updateStrategy"].clone(), detail));
        }
    }
    check_not_negative(spec, "replicas", &path, errors);
    check_not_negative(spec, "minReadySeconds", &path, errors);
    check_selector(spec, "statefulset", &path, errors);
    check_selected_template(&with_claimed_volumes(spec), "StatefulSet", &path, errors);
    if let Some(old) = old
        && frozen_stateful_spec(spec) != frozen_stateful_spec(&old["spec"])
    {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(path.shown(), detail));
    }
}

/// The spec with a volume for each claim that its pods will have.
fn with_claimed_volumes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let claimed = list(&spec, "volumeClaimTemplates").iter().map(|claim| claim["metadata"]["name"].clone());
    let claimed: Vec<Value> = claimed.collect();
    if claimed.is_empty() {
        return spec;
    }
    let names: BTreeSet<_> = claimed.iter().map(Value::to_string).collect();
    let pod = &mut spec["template"]["spec"];
    let others = list(pod, "volumes").iter().filter(|volume| !names.contains(&volume["name"].to_string())).cloned();
    let claims = claimed.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let volumes: Vec<_> = claims.chain(others).collect();
    pod["volumes"] = volumes.into();
    spec
}

fn frozen_stateful_spec(spec: &Value) -> Value {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let mut spec = spec.clone();
    if let Value::Object(fields) = &mut spec {
        fields.retain(|key, _| !MUTABLE.contains(&key.as_str()));
    }
    spec
}

/// Checks a Job.
pub(super) fn check_job(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    check_job_spec(spec, &path, errors);
    if let Some(selector) = spec.get("selector") {
        check_label_selector(selector, &path.field("selector"), errors);
        let labels = &spec["template"]["metadata"]["labels"];
        if !selector_matches(selector, labels) {
            errors.push(unmatched(labels, &path));
        }
    }
    let Some(old) = old.map(|old| &old["spec"]) else { return };
    if text(spec, "completionMode") != "Indexed" {
        check_immutable(spec, old, "completions", &path, errors);
    }
    check_immutable(spec, old, "selector", &path, errors);
    if old["suspend"] != true {
        check_immutable(spec, old, "template", &path, errors);
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        check_immutable(spec, old, key, &path, errors);
    }
}

fn check_job_spec(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        check_not_negative(spec, key, path, errors);
    }
    check_word(spec, "completionMode", &["NonIndexed", "Indexed"], false, path, errors);
    if text(spec, "completionMode") == "Indexed" && spec.get("completions").is_none() {
        let field = path.field("completions");
        errors.push(FieldError::required(field.shown(), "when completion mode is Indexed"));
    }
    pod::check_template(&spec["template"], &path.field("template"), errors);
    let field = path.field("template").field("spec").field("restartPolicy");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "Always" | "" => {
            errors.push(FieldError::required(field.shown(), "valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(FieldError::not_supported(field.shown(), other, &["OnFailure", "Never"])),
    }
}

/// Checks a CronJob.
pub(super) fn check_cron_job(new: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if text(spec, "schedule").is_empty() {
        errors.push(FieldError::required(path.field("schedule").shown(), ""));
    }
    check_not_negative(spec, "startingDeadlineSeconds", &path, errors);
    check_word(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], true, &path, errors);
    check_job_spec(&spec["jobTemplate"]["spec"], &path.field("jobTemplate").field("spec"), errors);
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        check_not_negative(spec, key, &path, errors);
    }
}

/// Checks a PodDisruptionBudget.
pub(super) fn check_budget(new: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&new["spec"], Path::of("spec"));
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = shown_fields(&[
            ("MinAvailable", spec["minAvailable"].clone()),
            ("Selector", spec["selector"].clone()),
            ("MaxUnavailable", spec["maxUnavailable"].clone()),
            ("UnhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"].clone()),
        ]);
        errors.push(FieldError::invalid_as(path.shown(), shown, detail));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        check_int_or_percent(spec, key, &path, errors);
        check_at_most_all(spec, key, &path, errors);
    }
    check_label_selector(&spec["selector"], &path.field("selector"), errors);
    check_word(spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"], false, &path, errors);
}

/// Checks the status of a PodDisruptionBudget.
pub(super) fn check_budget_status(new: &Value, errors: &mut Vec<FieldError>) {
    for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        check_not_negative(&new["status"], key, &Path::of("status"), errors);
    }
}

/// Checks the counts in the status of a Deployment, ReplicaSet or StatefulSet: no part is more than the whole.
pub(super) fn check_counts(new: &Value, parts: &[&str], errors: &mut Vec<FieldError>) {
    let (status, path) = (&new["status"], Path::of("status"));
    for key in ["observedGeneration", "replicas"].iter().chain(parts) {
        check_not_negative(status, key, &path, errors);
    }
    for key in parts.iter().filter(|key| number(status, key) > number(status, "replicas")) {
        let detail = "cannot be greater than status.replicas";
        errors.push(FieldError::invalid(path.field(key).shown(), number(status, key), detail));
    }
    let available = number(status, "availableReplicas");
    if available > number(status, "readyReplicas") {
        let field = path.field("availableReplicas");
        let whole = if new["kind"] == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        errors.push(FieldError::invalid(field.shown(), available, format!("cannot be greater than {whole}")));
    }
}

fn check_selector(spec: &Value, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.field("selector");
    let Some(selector) = spec.get("selector") else {
        errors.push(FieldError::required(path.shown(), ""));
        return;
    };
    check_label_selector(selector, &path, errors);
    if is_empty_selector(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(path.shown(), selector.clone(), detail));
    }
}

fn check_selected_template(spec: &Value, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let template = &spec["template"];
    let labels = &template["metadata"]["labels"];
    // An empty selector was complained about; none at all matches nothing.
    let matches = |selector: &Value| is_empty_selector(selector) || selector_matches(selector, labels);
    if !spec.get("selector").is_some_and(matches) {
        errors.push(unmatched(labels, path));
    }
    let path = path.field("template");
    pod::check_template(template, &path, errors);
    check_runs_always(template, kind, &path, errors);
}

fn unmatched(labels: &Value, path: &Path) -> FieldError {
    let field = path.field("template").field("metadata").field("labels");
    FieldError::invalid(field.shown(), labels.clone(), "`selector` does not match template `labels`")
}

fn check_runs_always(template: &Value, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let path = path.field("spec");
    let policy = text(&template["spec"], "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(path.field("restartPolicy").shown(), policy, &["Always"]));
    }
    if template["spec"].get("activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(path.field("activeDeadlineSeconds").shown(), detail));
    }
}

fn check_strategy(strategy: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let rolling_path = path.field("rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if strategy.get("rollingUpdate").is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(rolling_path.shown(), detail));
            }
        }
        "RollingUpdate" => {
            let rolling = &strategy["rollingUpdate"];
            check_int_or_percent(rolling, "maxUnavailable", &rolling_path, errors);
            check_int_or_percent(rolling, "maxSurge", &rolling_path, errors);
            if int_or_percent(&rolling["maxUnavailable"]) == 0 && int_or_percent(&rolling["maxSurge"]) == 0 {
                let field = rolling_path.field("maxUnavailable");
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(field.shown(), rolling["maxUnavailable"].clone(), detail));
            }
            check_at_most_all(rolling, "maxUnavailable", &rolling_path, errors);
        }
        _ => {
            errors.push(FieldError::not_supported(path.shown(), strategy.clone(), &["Recreate", "RollingUpdate"]));
        }
    }
}

fn check_daemon_strategy(strategy: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (rolling, path) = (&strategy["rollingUpdate"], path.field("rollingUpdate"));
            for key in ["maxUnavailable", "maxSurge"] {
                check_int_or_percent(rolling, key, &path, errors);
            }
            for key in ["maxUnavailable", "maxSurge"] {
                check_at_most_all(rolling, key, &path, errors);
            }
            match (int_or_percent(&rolling["maxUnavailable"]) != 0, int_or_percent(&rolling["maxSurge"]) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    let field = path.field("maxSurge");
                    errors.push(FieldError::invalid(field.shown(), rolling["maxSurge"].clone(), detail));
                }
                (false, false) => {
                    let field = path.field("maxUnavailable");
                    errors.push(FieldError::required(field.shown(), "cannot be 0 when maxSurge is 0"));
                }
                (true, false) | (false, true) => {}
            }
        }
        other => {
            let supported = ["RollingUpdate", "OnDelete"];
            errors.push(FieldError::not_supported(path.field("type").shown(), other, &supported));
        }
    }
}
