//! The one thin place that carries writes to the API.

use bytes::Bytes;
use http::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Deserialize;
use serde_json::{Value, json};
use sim::{Answer, ApiServer};

use crate::key::Key;
use crate::pace::EventDetail;
use crate::tasks::Actor;
use crate::tellings::Tellings;
use crate::write::{PODS, Part, Resource, Telling, Weight, Write};

/// What the API said to a write that it did not take.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: u16,
    pub(crate) message: String,
}

/// Carries writes out, and tells what came of them.
pub(crate) struct Carrier {
    server: ApiServer,
    detail: EventDetail,
    tellings: Tellings,
}

impl Carrier {
    pub(crate) fn new(server: ApiServer, detail: EventDetail) -> Self {
        Self { server, detail, tellings: Tellings::default() }
    }

    /// Carries one write out. What is already so is no refusal.
    pub(crate) fn carry(&mut self, actor: &Actor, write: Write, now: Timestamp) -> Result<(), Refused> {
        match write {
            Write::Create { resource, namespace, object, owner } => {
                self.create(actor, resource, (&namespace, &object), owner, now)
            }
            Write::Patch { resource, key, part, patch } => {
                let path = path(resource, &key, part);
                let answer = self.send(actor, Method::PATCH, &path, "application/merge-patch+json", &patch);
                unless(answer, 404).map(drop)
            }
            Write::ReplaceStatus { resource, key, mut object } => {
                object["apiVersion"] = json!(resource.api_version);
                object["kind"] = json!(resource.kind);
                let path = path(resource, &key, Part::Status);
                unless(self.send(actor, Method::PUT, &path, "application/json", &object), 404).map(drop)
            }
            Write::Delete { resource, key, uid, grace_seconds, owner } => {
                let mut options = json!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": "Background",
                    "preconditions": {"uid": uid},
                });
                if let Some(seconds) = grace_seconds {
                    options["gracePeriodSeconds"] = json!(seconds);
                }
                let path = path(resource, &key, Part::Main);
                unless(self.send(actor, Method::DELETE, &path, "application/json", &options), 404)?;
                if let Some(about) = owner {
                    self.tell(
                        actor,
                        about,
                        (Weight::Detail, "SuccessfulDelete"),
                        &format!("Deleted pod: {}", key.name),
                        now,
                    );
                }
                Ok(())
            }
            Write::Bind { key, uid, node } => {
                let body = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let path = format!("{}/binding", path(PODS, &key, Part::Main));
                self.send(actor, Method::POST, &path, "application/json", &body).map(drop)
            }
            Write::Tell(telling) => self.write_event(actor, telling, now),
            Write::Log { key, container, line } => {
                self.server.append_log(&key.namespace, &key.name, &container, &line);
                Ok(())
            }
        }
    }

    fn create(
        &mut self,
        actor: &Actor,
        resource: Resource,
        (namespace, object): (&str, &Value),
        owner: Option<ObjectReference>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let answer = self.send(actor, Method::POST, &collection(resource, namespace), "application/json", object);
        let Some(about) = owner else { return unless(answer, 409).map(drop) };
        match answer {
            Ok(body) => {
                if self.detail == EventDetail::All {
                    let message = format!("Created pod: {}", created_name(&body));
                    self.tell(actor, about, (Weight::Detail, "SuccessfulCreate"), &message, now);
                }
                Ok(())
            }
            Err(refused) => {
                let message = format!("Error creating: {}", refused.message);
                self.tell(actor, about, (Weight::Warning, "FailedCreate"), &message, now);
                Err(refused)
            }
        }
    }

    fn tell(
        &mut self,
        actor: &Actor,
        about: ObjectReference,
        (weight, reason): (Weight, &'static str),
        message: &str,
        now: Timestamp,
    ) {
        let telling = Telling { about, weight, reason, message: message.to_owned() };
        // An event that cannot be written is lost, as everywhere.
        let _ = self.write_event(actor, telling, now);
    }

    fn write_event(&mut self, actor: &Actor, telling: Telling, now: Timestamp) -> Result<(), Refused> {
        let is_wanted = match self.detail {
            EventDetail::None => false,
            EventDetail::Few => telling.weight != Weight::Detail,
            EventDetail::All => true,
        };
        if !is_wanted {
            return Ok(());
        }
        match self.tellings.write(actor, telling, now) {
            Some(Write::Create { resource, namespace, object, .. }) => {
                let path = collection(resource, &namespace);
                // A namespace that is going away takes no events; that must not hold up what was told about.
                let _ = self.send(actor, Method::POST, &path, "application/json", &object);
                Ok(())
            }
            Some(Write::Patch { resource, key, part, patch }) => {
                let path = path(resource, &key, part);
                let answer = self.send(actor, Method::PATCH, &path, "application/merge-patch+json", &patch);
                if answer.is_err() {
                    self.tellings.forget(&key);
                }
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn send(
        &self,
        actor: &Actor,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Bytes, Refused> {
        let refused = |code: u16, message: String| Refused { code, message };
        let body = serde_json::to_vec(body).map_err(|error| refused(400, error.to_string()))?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", "application/json")
            .body(Bytes::from(body))
            .map_err(|error| refused(400, error.to_string()))?;
        match self.server.handle(&actor.user, request) {
            Answer::Document(response) if response.status().is_success() => Ok(response.into_body()),
            Answer::Document(response) => {
                let code = response.status().as_u16();
                Err(refused(code, status_message(response.body())))
            }
            Answer::Watch(parts, _) => Err(refused(parts.status.as_u16(), "a stream was answered".to_owned())),
        }
    }
}

/// Takes one refusal for agreement.
fn unless(answer: Result<Bytes, Refused>, code: u16) -> Result<Bytes, Refused> {
    match answer {
        Err(refused) if refused.code == code => Ok(Bytes::new()),
        answer => answer,
    }
}

fn collection(resource: Resource, namespace: &str) -> String {
    match namespace {
        "" => format!("{}/{}", resource.root, resource.plural),
        namespace => format!("{}/namespaces/{namespace}/{}", resource.root, resource.plural),
    }
}

fn path(resource: Resource, key: &Key, part: Part) -> String {
    let part = match part {
        Part::Main => "",
        Part::Status => "/status",
    };
    format!("{}/{}{part}", collection(resource, &key.namespace), key.name)
}

fn created_name(body: &Bytes) -> String {
    #[derive(Deserialize)]
    struct Created {
        metadata: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_slice::<Created>(body).map(|created| created.metadata.name).unwrap_or_default()
}

fn status_message(body: &Bytes) -> String {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        message: String,
    }
    let status = serde_json::from_slice::<Status>(body);
    status.map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |status| status.message)
}
