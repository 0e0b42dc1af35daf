//! Query parameters, known ones only: each verb has its list, anything else is refused.

use crate::history::Verb;
use crate::path::decode_percent;
use crate::status_body::{Cause, GroupResource, Status};
use schema::FieldValidation;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the query of a request says, read and checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    parameters: BTreeMap<String, String>,
}

/// How a list's revision is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    NotOlderThan,
    Exact,
}

const EVERYWHERE: [&str; 3] = ["pretty", "timeout", "includeObject"];
const READING: [&str; 1] = ["resourceVersion"];
const LISTING: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const WRITING: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCHING: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETING: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const LOGGING: [&str; 9] = [
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "timestamps",
];

/// Reads the pairs of a query; a name that comes twice keeps its first value, as the real server does.
pub(crate) fn parse(query: Option<&str>) -> Query {
    let mut parameters = BTreeMap::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let read = |text: &str| decode_percent(&text.replace('+', " "));
        parameters.entry(read(name)).or_insert_with(|| read(value));
    }
    Query { parameters }
}

impl Query {
    /// Refuses parameters that the verb does not know.
    pub(crate) fn check_known(&self, verb: Verb, subresource: Option<&str>) -> Result<(), Status> {
        let known: Vec<&str> = match (verb, subresource) {
            (Verb::Get, Some("log")) => LOGGING.to_vec(),
            (Verb::Get, _) => READING.to_vec(),
            (Verb::List | Verb::Watch, _) => LISTING.to_vec(),
            (Verb::Create | Verb::Update, _) => WRITING.to_vec(),
            (Verb::Patch, _) => PATCHING.to_vec(),
            (Verb::Delete, _) => DELETING.to_vec(),
            (Verb::DeleteCollection, _) => [LISTING.as_slice(), DELETING.as_slice()].concat(),
        };
        match self
            .parameters
            .keys()
            .find(|name| !known.contains(&name.as_str()) && !EVERYWHERE.contains(&name.as_str()))
        {
            Some(name) => Err(Status::bad_request(format!("unknown query parameter \"{name}\" for {}", verb.as_str()))),
            None => Ok(()),
        }
    }

    /// A parameter that is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A yes or no; `?follow` alone means yes.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Status> {
        match self.parameters.get(name).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("false" | "0" | "f") => Ok(false),
            Some("true" | "1" | "" | "t") => Ok(true),
            Some(other) => Err(Status::bad_request(format!("invalid value \"{other}\" of query parameter \"{name}\""))),
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        self.text(name)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing \"{value}\": invalid syntax")))
            })
            .transpose()
    }

    /// A revision of the store; `Some(0)` stands for "any".
    pub(crate) fn resource_version(&self, resource: GroupResource<'_>) -> Result<Option<u64>, Status> {
        self.text("resourceVersion")
            .map(|value| {
                value.parse().map_err(|_| {
                    let cause = Cause {
                        reason: "FieldValueInvalid".to_owned(),
                        message: format!(
                            "Invalid value: \"{value}\": strconv.ParseUint: parsing \"{value}\": invalid syntax"
                        ),
                        field: "resourceVersion".to_owned(),
                    };
                    Status::invalid(resource.group, resource.resource, "", vec![cause])
                })
            })
            .transpose()
    }

    pub(crate) fn version_match(&self) -> Result<Option<VersionMatch>, Status> {
        match self.text("resourceVersionMatch") {
            None => Ok(None),
            Some("Exact") => Ok(Some(VersionMatch::Exact)),
            Some("NotOlderThan") => Ok(Some(VersionMatch::NotOlderThan)),
            Some(other) => Err(list_option_refused(
                "FieldValueNotSupported",
                "resourceVersionMatch",
                &format!("Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\", \"\""),
            )),
        }
    }

    /// Whether nothing is to be kept.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.text("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(dry_run_refused(other)),
        }
    }

    /// What unknown and doubled fields lead to.
    pub(crate) fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.text("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some(other) => Err(Status::invalid(
                "meta.k8s.io",
                "CreateOptions",
                "",
                vec![Cause {
                    reason: "FieldValueNotSupported".to_owned(),
                    message: format!(
                        "Unsupported value: \"{other}\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                    ),
                    field: "fieldValidation".to_owned(),
                }],
            )),
        }
    }

    /// How long a watch may last, if the client said it.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Status> {
        Ok(self.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
    }
}

/// The refusal of a dry run that is none.
pub(crate) fn dry_run_refused(value: &str) -> Status {
    let cause = Cause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: [\"{value}\"]: supported values: \"All\""),
        field: "dryRun".to_owned(),
    };
    Status::invalid("meta.k8s.io", "CreateOptions", "", vec![cause])
}

/// The refusal of options of a list or watch that do not go together.
pub(crate) fn list_option_refused(reason: &str, field: &str, message: &str) -> Status {
    let cause = Cause { reason: reason.to_owned(), message: message.to_owned(), field: field.to_owned() };
    Status::invalid("meta.k8s.io", "ListOptions", "", vec![cause])
}
