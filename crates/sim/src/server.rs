//! The server: one request in, one answer out.

use crate::accept;
use crate::answer::Answer;
use crate::call::{Call, Reply};
use crate::event::Subscription;
use crate::hands::Hands;
use crate::history::{Record, Verb};
use crate::output::{Form, to_bytes};
use crate::path::{self, Destination, Target};
use crate::query::{self, Query};
use crate::service::ApiService;
use crate::status_body::{GroupResource, Status};
use crate::store::Store;
use crate::watch::Bookmarks;
use crate::{bootstrap, definitions, delete, eviction, list, logs, namespaces, pods, scale, watch, write};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue, WARNING};
use http::{HeaderMap, Method};
use jiff::Timestamp;
use schema::{ResourceInfo, Schemas, Subresource};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a server is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Where uids, generated names and watch durations come from.
    pub seed: u64,
    /// Whether calls are recorded.
    pub keep_history: bool,
    /// How many changes of each resource are kept; older revisions are answered with 410.
    pub watch_window: usize,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { seed: 0, keep_history: false, watch_window: 4096 }
    }
}

/// An API server in memory. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    core: Arc<Mutex<Core>>,
}

struct Core {
    schemas: Schemas,
    store: Store,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiServer")
    }
}

impl ApiServer {
    /// A server with the objects that every cluster has from the beginning.
    pub fn new(settings: ServerSettings, clock: Clock) -> Self {
        let ServerSettings { seed, keep_history, watch_window } = settings;
        let schemas = Schemas::bundled();
        let mut store = Store::new(clock, seed, watch_window, keep_history);
        bootstrap::fill(&schemas, &mut store);
        Self { core: Arc::new(Mutex::new(Core { schemas, store })) }
    }

    /// Answers one request. `actor` is the name of the user, kept in the history.
    pub fn handle(&self, actor: &str, request: http::Request<Bytes>) -> Answer {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let Destination::Resource(target) = path::parse(path) else {
            return self.document(&parts.method, path, &parts.headers);
        };
        let query = query::parse(parts.uri.query());
        let request = Request { actor, method: &parts.method, target, query, headers: &parts.headers, body: &body };
        self.lock().handle(self, &request)
    }

    fn document(&self, method: &Method, path: &str, headers: &HeaderMap) -> Answer {
        if method != Method::GET {
            return refused(&Status::method_unknown());
        }
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            return Answer::document(200, "text/plain; charset=utf-8", Bytes::from_static(b"ok"));
        }
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
        match self.lock().schemas.document(path, accept) {
            Some(document) => Answer::document(200, &document.content_type, Bytes::from(document.body)),
            None => page_not_found(),
        }
    }

    /// A service that answers at once and without faults.
    pub fn service(&self, actor: &str) -> ApiService {
        ApiService::new(self.clone(), actor)
    }

    /// A client on [`ApiServer::service`]. Must be called inside a runtime.
    pub fn client(&self, actor: &str) -> kube::Client {
        kube::Client::new(self.service(actor), "default")
    }

    /// Typed calls for loops of this process.
    pub fn act(&self, actor: &'static str) -> Hands {
        Hands::new(self.clone(), actor)
    }

    /// Everything that happens in the store from now on, after everything that is there.
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.lock().store.subscribe())
    }

    /// All calls so far, in order; empty if none are kept.
    pub fn history(&self) -> Vec<Arc<Record>> {
        self.lock().store.records.clone().unwrap_or_default()
    }

    /// The calls after the first `count`, for those who read the history step by step.
    pub fn history_after(&self, count: usize) -> Vec<Arc<Record>> {
        let core = self.lock();
        core.store.records.as_ref().and_then(|records| records.get(count..)).unwrap_or_default().to_vec()
    }

    /// Every revision older than now answers 410 from now on.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.lock().store.revision()
    }

    /// Writes a line to a container's log, as its kubelet would.
    pub fn append_log(&self, namespace: &str, pod: &str, container: &str, line: &str) {
        let mut core = self.lock();
        let now = core.store.now();
        core.store.logs.append(namespace, pod, container, line, now);
    }

    /// Sends a bookmark; false if the watch has ended.
    pub(crate) fn send_bookmark(&self, bookmarks: &Bookmarks) -> bool {
        bookmarks.send(&self.lock().store)
    }

    /// Works on the store.
    pub(crate) fn with_store<T>(&self, work: impl FnOnce(&mut Store, &Schemas) -> T) -> T {
        let core = &mut *self.lock();
        work(&mut core.store, &core.schemas)
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic in the middle of a call leaves whole objects behind, so the store can go on.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Request<'a> {
    actor: &'a str,
    method: &'a Method,
    target: Target,
    query: Query,
    headers: &'a HeaderMap,
    body: &'a Bytes,
}

/// What the history keeps of a reply.
struct Outcome {
    answer: Answer,
    name: Option<String>,
    object: Option<Bytes>,
}

impl Core {
    fn handle(&mut self, server: &ApiServer, request: &Request<'_>) -> Answer {
        let target = &request.target;
        let Some(info) = self.schemas.resource(&target.group, &target.version, &target.resource) else {
            return self.nothing_at(target);
        };
        let verb = match verb(request, info) {
            Ok(verb) => verb,
            Err(status) if status.code == 404 => return self.nothing_at(target),
            Err(status) => return refused(&status),
        };
        let mut warnings = Vec::new();
        let result = run(&self.schemas, &mut self.store, server, info, request, verb, &mut warnings);
        let mut outcome =
            result.unwrap_or_else(|status| Outcome { answer: refused(&status), name: None, object: None });
        add_warnings(outcome.answer.headers_mut(), &warnings);
        self.record(request, verb, &outcome);
        if target.resource == definitions::RESOURCE && target.group == definitions::GROUP && verb.is_write() {
            definitions::follow(&mut self.schemas, &mut self.store);
        }
        outcome.answer
    }

    /// A path that leads nowhere: in a built-in group it is answered by the group, elsewhere by nobody.
    fn nothing_at(&self, target: &Target) -> Answer {
        let mut resources = self.schemas.resources();
        let in_group = |info: &ResourceInfo| info.group == target.group && info.version == target.version;
        match resources.any(|info| in_group(info) && !info.is_custom) {
            true => refused(&Status::no_such_path()),
            false => page_not_found(),
        }
    }

    fn record(&mut self, request: &Request<'_>, verb: Verb, outcome: &Outcome) {
        let record = Record {
            at: self.store.now(),
            actor: request.actor.to_owned(),
            verb,
            group: request.target.group.clone(),
            resource: request.target.resource.clone(),
            namespace: request.target.namespace.clone(),
            name: request.target.name.clone().or_else(|| outcome.name.clone()),
            subresource: request.target.subresource.clone(),
            dry_run: request.query.text("dryRun").is_some(),
            code: outcome.answer.code(),
            object: outcome.object.clone(),
            revision: self.store.revision(),
            body: verb.is_write().then(|| request.body.clone()),
        };
        if let Some(records) = &mut self.store.records {
            records.push(Arc::new(record));
        }
    }
}

/// What the request wants of the resource, if the resource offers it.
fn verb(request: &Request<'_>, info: &ResourceInfo) -> Result<Verb, Status> {
    let target = &request.target;
    if target.namespace.is_some() && !info.namespaced {
        return Err(Status::no_such_path());
    }
    if target.namespace.is_none() && info.namespaced && target.name.is_some() {
        return Err(Status::no_such_path());
    }
    let watching = request.query.flag("watch")?;
    let verb = match (request.method.as_str(), target.name.is_some()) {
        ("GET", true) => Verb::Get,
        ("GET", false) if watching => Verb::Watch,
        ("GET", false) => Verb::List,
        ("POST", false) => Verb::Create,
        ("POST", true) if target.subresource.is_some() => Verb::Create,
        ("PUT", true) => Verb::Update,
        ("PATCH", true) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return Err(Status::method_unknown()),
    };
    if let Some(part) = &target.subresource {
        let known = info.subresources.iter().find(|known| known.segment() == part).ok_or_else(Status::no_such_path)?;
        return if subresource_verbs(known).contains(&verb) { Ok(verb) } else { Err(Status::method_unknown()) };
    }
    let in_namespace = target.namespace.is_some() || !info.namespaced;
    if matches!(verb, Verb::Create | Verb::DeleteCollection) && !in_namespace {
        return Err(Status::method_unknown());
    }
    if info.verbs.iter().any(|known| known == verb.as_str()) { Ok(verb) } else { Err(Status::method_unknown()) }
}

fn subresource_verbs(subresource: &Subresource) -> &'static [Verb] {
    match subresource {
        Subresource::Status | Subresource::Scale(_) => &[Verb::Get, Verb::Update, Verb::Patch],
        Subresource::Eviction | Subresource::Binding => &[Verb::Create],
        Subresource::Log => &[Verb::Get],
        Subresource::Finalize => &[Verb::Update],
    }
}

fn run(
    schemas: &Schemas,
    store: &mut Store,
    server: &ApiServer,
    info: &ResourceInfo,
    request: &Request<'_>,
    verb: Verb,
    warnings: &mut Vec<String>,
) -> Result<Outcome, Status> {
    let part = request.target.subresource.as_deref();
    request.query.check_known(verb, part)?;
    let output =
        if part == Some("log") { accept::Output::Whole } else { accept::negotiate(request.headers, info.is_custom)? };
    let mut call = Call {
        schemas,
        store,
        info,
        target: &request.target,
        query: &request.query,
        headers: request.headers,
        body: request.body,
        form: Form::new(info, output, &request.query)?,
        warnings: Vec::new(),
    };
    let reply = dispatch(&mut call, server, verb);
    warnings.append(&mut call.warnings);
    Ok(outcome(&call, verb, reply?))
}

fn dispatch(call: &mut Call<'_>, server: &ApiServer, verb: Verb) -> Result<Reply, Status> {
    match (verb, call.target.subresource.as_deref()) {
        (Verb::Get, Some("scale")) => scale::get(call),
        (Verb::Update, Some("scale")) => scale::update(call),
        (Verb::Patch, Some("scale")) => scale::patch(call),
        (Verb::Get, Some("log")) => logs::get(call),
        (Verb::Create, Some("eviction")) => eviction::create(call),
        (Verb::Create, Some("binding")) => pods::bind(call),
        (Verb::Update, Some("finalize")) => namespaces::finalize(call),
        (Verb::Get, _) => list::get(call),
        (Verb::List, _) => list::list(call),
        (Verb::Watch, _) => watch::start(call, server).map(Reply::Ready),
        (Verb::Create, _) => write::create(call),
        (Verb::Update, _) => write::update(call),
        (Verb::Patch, _) => write::patch(call),
        (Verb::Delete, _) => delete::delete(call),
        (Verb::DeleteCollection, _) => delete::delete_collection(call),
    }
}

fn outcome(call: &Call<'_>, verb: Verb, reply: Reply) -> Outcome {
    let now = call.store.now();
    let kept = |stored: &crate::store::Stored| verb.is_write().then(|| stored.json.clone());
    match reply {
        Reply::Object { code, stored } => Outcome {
            answer: Answer::document(code, "application/json", call.form.object(&stored, now)),
            name: Some(stored.header.name.clone()),
            object: kept(&stored),
        },
        Reply::Other { code, object, changed } => Outcome {
            answer: Answer::document(code, "application/json", to_bytes(&object)),
            name: None,
            object: changed.as_deref().and_then(kept),
        },
        Reply::Status { code, status, changed } => Outcome {
            answer: Answer::document(code, "application/json", to_bytes(&status)),
            name: None,
            object: changed.as_deref().and_then(kept),
        },
        Reply::Ready(answer) => Outcome { answer, name: None, object: None },
    }
}

/// A refusal as an answer.
pub(crate) fn refused(status: &Status) -> Answer {
    let mut answer = Answer::document(status.code, "application/json", to_bytes(status));
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        answer.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(retry));
    }
    answer
}

/// What the real server says to paths that lead nowhere.
fn page_not_found() -> Answer {
    Answer::document(404, "text/plain; charset=utf-8", Bytes::from_static(b"404 page not found\n"))
}

fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
}

/// A resource by its parts, for messages about kinds that are not the call's own.
pub(crate) fn resource_named(resource: &'static str) -> GroupResource<'static> {
    GroupResource { group: "", resource }
}
