//! Reading: one object, or many at one revision.

use crate::answer::Answer;
use crate::call::{Call, Reply};
use crate::output::ListFacts;
use crate::query::{VersionMatch, list_option_refused};
use crate::selector::Selector;
use crate::status_body::Status;
use crate::store::{Collection, CollectionId, Stored};
use std::sync::Arc;

/// One object.
pub(crate) fn get(call: &mut Call<'_>) -> Result<Reply, Status> {
    if let Some(asked) = call.query.resource_version(call.resource())? {
        refuse_future(call, asked)?;
    }
    Ok(Reply::Object { code: 200, stored: call.existing()? })
}

/// Where a page of a list begins, and of which revision it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    revision: u64,
    /// The key of the last object of the page before.
    after: Option<String>,
}

/// Many objects, all as they were at one revision; with a limit, one page of them.
pub(crate) fn list(call: &mut Call<'_>) -> Result<Reply, Status> {
    if call.query.text("sendInitialEvents").is_some() {
        return Err(list_option_refused(
            "FieldValueForbidden",
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
        ));
    }
    let selector = call.selector()?;
    let limit = call.query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let page = page(call, limit.is_some())?;
    let id = call.id();
    let forgotten = call.store.forgotten(&id);
    if page.revision < forgotten {
        return Err(match page.after {
            Some(_) => Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new \
                 list without the continue parameter.",
            ),
            None => Status::expired(format!("The resourceVersion for the provided list is too old: {}", page.revision)),
        });
    }
    let now = call.store.now();
    let namespace = call.target.namespace.as_deref();
    let collection = call.store.collection(&id);
    let everything = Selector::default();
    let mut matching = collection.into_iter().flat_map(|collection| select(collection, &selector, namespace, &page));
    let objects: Vec<&Stored> = matching.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    // With a selector the rest would have to be counted; the real server does not, so clients do not expect it.
    let left = if selector.is_everything() { matching.count() } else { 0 };
    // A full page is followed by another if anything at all is behind it, selected or not: the real server does not
    // look further than it must.
    let last = objects.last().filter(|_| limit == Some(objects.len()));
    let more = last.filter(|last| {
        let rest = Page { revision: page.revision, after: Some(last.header.key()) };
        left > 0 || collection.is_some_and(|it| select(it, &everything, namespace, &rest).next().is_some())
    });
    let facts = ListFacts {
        revision: page.revision,
        next: more.map(|last| token(page.revision, last)),
        remaining: Some(left).filter(|left| *left > 0),
    };
    let body = call.form.list(&objects, &facts, now);
    Ok(Reply::Ready(Answer::document(200, "application/json", body)))
}

/// All matching objects behind the page's beginning.
fn select<'a>(
    collection: &'a Collection,
    selector: &'a Selector,
    namespace: Option<&'a str>,
    page: &Page,
) -> impl Iterator<Item = &'a Stored> {
    let fits = move |stored: &&Stored| {
        (namespace.is_none() || stored.header.namespace.as_deref() == namespace) && selector.matches(&stored.header)
    };
    collection.at(page.revision, page.after.as_deref()).map(|stored| &**stored).filter(fits)
}

fn page(call: &Call<'_>, has_limit: bool) -> Result<Page, Status> {
    let version = call.query.resource_version(call.resource()).map_err(|refused| {
        let field = refused.message.rsplit_once("resourceVersion: ").map_or("", |(_, problem)| problem);
        Status::bad_request(format!("invalid resource version: resourceVersion: {field}"))
    })?;
    let version_match = call.query.version_match()?;
    let current = call.store.revision();
    if let Some(token) = call.query.text("continue") {
        if version.is_some_and(|version| version != 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        return read_token(token).ok_or_else(|| {
            Status::bad_request("invalid continue token: continue key is not valid: this server did not give it")
        });
    }
    if version_match.is_some() && version.is_none() {
        return Err(list_option_refused(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    if version_match == Some(VersionMatch::Exact) && version == Some(0) {
        return Err(list_option_refused(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ));
    }
    if let Some(asked) = version {
        refuse_future(call, asked)?;
    }
    let revision = match (version, version_match) {
        (Some(asked), Some(VersionMatch::Exact)) => asked,
        // Without a match rule, a page of a named revision is exact: that is how it has always been.
        (Some(asked), None) if has_limit && asked > 0 => asked,
        _ => current,
    };
    Ok(Page { revision, after: None })
}

/// The store cannot wait for a revision that is not there yet.
fn refuse_future(call: &Call<'_>, asked: u64) -> Result<(), Status> {
    let current = call.store.revision();
    if asked > current { Err(Status::too_large_version(asked, current)) } else { Ok(()) }
}

/// Names the next page: the revision, and the last key of this one, in hexadecimal digits so that nobody reads it.
fn token(revision: u64, last: &Stored) -> String {
    let plain = format!("{revision}:{}", last.header.key());
    plain.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn read_token(token: &str) -> Option<Page> {
    let digits: Option<Vec<u8>> =
        (0..token.len()).step_by(2).map(|at| u8::from_str_radix(token.get(at..at + 2)?, 16).ok()).collect();
    let plain = String::from_utf8(digits?).ok()?;
    let (revision, key) = plain.split_once(':')?;
    Some(Page { revision: revision.parse().ok()?, after: Some(key.to_owned()) })
}

/// The objects that a deletion of many is about.
pub(crate) fn selected(call: &Call<'_>) -> Result<Vec<Arc<Stored>>, Status> {
    let selector = call.selector()?;
    let namespace = call.target.namespace.as_deref();
    let collection = call.store.collection(&CollectionId::of(call.info));
    let objects = collection.into_iter().flat_map(|collection| collection.objects.values());
    Ok(objects
        .filter(|stored| namespace.is_none() || stored.header.namespace.as_deref() == namespace)
        .filter(|stored| selector.matches(&stored.header))
        .cloned()
        .collect())
}
