//! What Kubernetes objects may look like: which resources there are, how a body is read, completed and checked, and
//! the documents in which an API server tells its clients about that.
//!
//! Built-in kinds come from the OpenAPI documents of the real API server, which are part of this crate; custom kinds
//! from their definitions. The messages are those of the real one. Everything is a function of its arguments: this
//! crate will never know a store, a client, a clock or chance.

mod builtin;
mod bundled;
mod custom;
mod definitions;
mod documents;
mod errors;
mod json;
mod kind;
mod metadata;
mod names;
mod path;
mod quantity;
mod resource;
mod schemas;
mod shape;
mod times;
mod typed;

pub use errors::{DecodeError, FieldError, FieldErrorKind, aggregate};
pub use kind::{Decoded, FieldValidation, KindSchema, Scope};
pub use resource::{PrinterColumn, ResourceInfo, ScalePaths, Subresource};
pub use schemas::{Document, Schemas};
pub use shape::{ListRule, Shape};
