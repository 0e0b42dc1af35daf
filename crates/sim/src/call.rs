//! One request on its way through the server.

use crate::answer::Answer;
use crate::output::Form;
use crate::path::Target;
use crate::query::Query;
use crate::selector::Selector;
use crate::status_body::{GroupResource, Status};
use crate::store::{CollectionId, Store, Stored};
use bytes::Bytes;
use http::HeaderMap;
use schema::{ResourceInfo, Schemas};
use serde_json::Value;
use std::sync::Arc;

/// Everything that the work on one request needs.
pub(crate) struct Call<'a> {
    pub(crate) schemas: &'a Schemas,
    pub(crate) store: &'a mut Store,
    pub(crate) info: &'a ResourceInfo,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    pub(crate) form: Form,
    /// Said to the client beside the answer.
    pub(crate) warnings: Vec<String>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// An object of the resource asked for.
    Object {
        /// The HTTP status code.
        code: u16,
        /// The object.
        stored: Arc<Stored>,
    },
    /// An object of another kind, such as a scale; `changed` is the object of the resource behind it, if it changed.
    Other {
        /// The HTTP status code.
        code: u16,
        /// The object that is answered.
        object: Value,
        /// The object that was changed.
        changed: Option<Arc<Stored>>,
    },
    /// No object, but a success (or a refusal with a success's code) worth a body.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The body.
        status: Status,
        /// The object that was changed or deleted.
        changed: Option<Arc<Stored>>,
    },
    /// Something ready to go out.
    Ready(Answer),
}

impl Call<'_> {
    pub(crate) fn resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.info.group, resource: &self.info.plural }
    }

    pub(crate) fn id(&self) -> CollectionId {
        CollectionId::of(self.info)
    }

    pub(crate) fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    pub(crate) fn selector(&self) -> Result<Selector, Status> {
        Selector::parse(self.info, self.query.text("labelSelector"), self.query.text("fieldSelector"))
    }

    /// The object that the request names.
    pub(crate) fn existing(&self) -> Result<Arc<Stored>, Status> {
        self.store
            .get(&self.id(), self.namespace(), self.name())
            .cloned()
            .ok_or_else(|| Status::not_found(self.resource(), self.name()))
    }

    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.info.group == group && self.info.plural == resource
    }
}
