//! Seeded requests: mostly sensible, often not.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::kinds::{KINDS, Kind};
use crate::normal::GENERATED;
use crate::request::{Body, Request};
use crate::spoil;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

const KINDS_PER_EPISODE: usize = 3;
/// So many requests of an episode make objects, so that the others find some.
const CREATED_FIRST: usize = 6;

/// Makes the requests of one episode. All objects of an episode carry its label, and live in its namespace or have its
/// number in their names, so that episodes do not meet.
pub(crate) struct Generator {
    rng: Rng,
    seed: u64,
    /// A few resources, so that objects are met again.
    kinds: Vec<&'static Kind>,
    made: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let kinds = rng.choose_multiple(KINDS, KINDS_PER_EPISODE);
        Self { rng, seed, kinds, made: 0 }
    }

    /// The episode's namespace.
    pub(crate) fn namespace(&self) -> String {
        format!("episode-{}", self.seed)
    }

    /// A selector of the episode's objects.
    pub(crate) fn selector(&self) -> String {
        format!("episode={}", self.seed)
    }

    /// The request that makes the episode's namespace.
    pub(crate) fn beginning(&self) -> Request {
        Request::new("POST", "/api/v1/namespaces")
            .json(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace(), "labels": self.labels("none")}}))
    }

    /// Collections to watch throughout the episode.
    pub(crate) fn watched(&self) -> Vec<&'static Kind> {
        ["configmaps", "pods", "deployments", "nodes", "nodepools"]
            .iter()
            .filter_map(|plural| KINDS.iter().find(|kind| kind.plural == *plural))
            .collect()
    }

    /// A request that makes a last object of a kind, so that watchers know when they have seen everything.
    pub(crate) fn ending(&self, kind: &Kind, name: &str) -> Request {
        let labels = self.labels("none");
        let object = kind.object(&mut Rng::with_seed(0), name, labels);
        Request::new("POST", kind.collection(&self.namespace())).json(object)
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Request {
        let kind = self.kinds[self.rng.usize(..self.kinds.len())];
        self.made += 1;
        if self.made <= CREATED_FIRST {
            return self.create(kind);
        }
        match self.rng.u8(..100) {
            0..20 => self.create(kind),
            20..30 => self.read(kind),
            30..42 => self.list(kind),
            42..56 => self.update(kind),
            56..74 => self.patch(kind),
            74..84 => self.delete(kind),
            84..86 => self.delete_collection(kind),
            86..91 if kind.scale => self.scale(kind),
            91..95 if kind.plural == "pods" => self.pod_action(),
            86..95 => self.create(kind),
            _ => {
                let namespace = self.namespace();
                spoil::request(&mut self.rng, &namespace)
            }
        }
    }

    fn labels(&self, app: &str) -> Value {
        json!({"episode": self.seed.to_string(), "app": app})
    }

    /// One of a few names, so that objects meet again.
    fn name(&mut self, kind: &Kind) -> String {
        let letter = ["a", "b"][self.rng.usize(..2)];
        if kind.namespaced { letter.to_owned() } else { format!("{letter}-{}", self.seed) }
    }

    fn path(&mut self, kind: &Kind) -> String {
        let name = self.name(kind);
        format!("{}/{name}", kind.collection(&self.namespace()))
    }

    fn object(&mut self, kind: &Kind) -> Value {
        let name = self.name(kind);
        let app = ["web", "data"][self.rng.usize(..2)];
        let labels = self.labels(app);
        let mut object = kind.object(&mut self.rng, &name, labels);
        if let Some(namespace) = object.pointer_mut("/involvedObject/namespace") {
            *namespace = self.namespace().into();
        }
        object
    }

    /// Sometimes a dry run, sometimes a mode of field validation.
    fn write_options(&mut self, mut request: Request) -> Request {
        if self.rng.u8(..8) == 0 {
            request = request.query("dryRun", "All");
        }
        match self.rng.u8(..8) {
            0 => request.query("fieldValidation", "Strict"),
            1 => request.query("fieldValidation", "Ignore"),
            2 => request.query("fieldManager", "tester"),
            _ => request,
        }
    }

    fn create(&mut self, kind: &Kind) -> Request {
        let mut object = self.object(kind);
        match self.rng.u8(..10) {
            0 => {
                let fields = object["metadata"].as_object_mut();
                fields.and_then(|fields| fields.remove("name"));
                object["metadata"]["generateName"] = GENERATED.into();
                // Nobody could tell the objects of both servers apart by such names, so none is kept.
                return Request::new("POST", kind.collection(&self.namespace())).query("dryRun", "All").json(object);
            }
            1..4 => spoil::object(&mut self.rng, kind, &mut object),
            _ => {}
        }
        let request = Request::new("POST", kind.collection(&self.namespace())).json(object);
        self.write_options(request)
    }

    fn read(&mut self, kind: &Kind) -> Request {
        let mut path = self.path(kind);
        if kind.status && self.rng.u8(..4) == 0 {
            path.push_str("/status");
        }
        let request = Request::new("GET", path);
        match self.rng.u8(..6) {
            0 => request.accept(TABLE),
            1 => request.accept(PARTIAL),
            _ => request,
        }
    }

    fn list(&mut self, kind: &Kind) -> Request {
        let everywhere = self.rng.u8(..5) == 0;
        let path = if everywhere { kind.everywhere() } else { kind.collection(&self.namespace()) };
        let mut request = Request::new("GET", path);
        let choice = self.rng.u8(..6);
        let selector = match choice {
            0 => format!("{},app=web", self.selector()),
            1 => format!("{},app in (web,none)", self.selector()),
            2 => format!("{},app notin (web),!other", self.selector()),
            _ => self.selector(),
        };
        if !kind.namespaced || everywhere || choice < 4 {
            request = request.query("labelSelector", selector);
        }
        // The real server keeps objects of its own in other namespaces, which would be the rest of a page here.
        match self.rng.u8(..8) {
            0 if !everywhere => request.query("limit", "1"),
            1 if !everywhere => {
                let next = format!("@next {}", request.path);
                request.query("limit", "1").query("continue", next)
            }
            2 => request.query("limit", "500").query("resourceVersion", "0"),
            3 => {
                let name = self.name(kind);
                request.query("fieldSelector", format!("metadata.name={name}"))
            }
            4 => request.accept(TABLE),
            5 => request.accept(PARTIAL_LIST),
            _ => request,
        }
    }

    fn update(&mut self, kind: &Kind) -> Request {
        let path = self.path(kind);
        let mut change = if self.rng.u8(..5) == 0 { json!({}) } else { (kind.changes)(&mut self.rng) };
        match self.rng.u8(..6) {
            0 => change["metadata"]["resourceVersion"] = format!("@first-version {path}").into(),
            1 => change["metadata"]["resourceVersion"] = Value::Null,
            _ => {}
        }
        let target = if kind.status && self.rng.u8(..3) == 0 { format!("{path}/status") } else { path.clone() };
        let mut otherwise = self.object(kind);
        otherwise["metadata"]["name"] = path.rsplit('/').next().into();
        let body = Body::Seen { path, otherwise, change };
        let request = Request::new("PUT", target).body("application/json", body);
        self.write_options(request)
    }

    fn patch(&mut self, kind: &Kind) -> Request {
        let mut path = self.path(kind);
        let change = match self.rng.u8(..6) {
            0 => json!({"metadata": {"labels": {"app": "web", "new": "1"}}}),
            1 => json!({"metadata": {"annotations": {"note": null}, "finalizers": null}}),
            _ => (kind.changes)(&mut self.rng),
        };
        if kind.status && (change.get("status").is_some() || self.rng.u8(..8) == 0) && self.rng.bool() {
            path.push_str("/status");
        }
        let request = Request::new("PATCH", path);
        let request = match self.rng.u8(..10) {
            0..4 => request.body("application/merge-patch+json", Body::Json(change)),
            4..7 => request.body("application/strategic-merge-patch+json", Body::Json(change)),
            _ => {
                let operations = spoil::operations(&mut self.rng);
                request.body("application/json-patch+json", Body::Json(operations))
            }
        };
        self.write_options(request)
    }

    fn delete(&mut self, kind: &Kind) -> Request {
        let path = self.path(kind);
        let request = Request::new("DELETE", path.clone());
        // Nobody would empty a namespace on the bare API server.
        if kind.plural == "namespaces" {
            return request.query("dryRun", "All");
        }
        let options = |fields: Value| {
            let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            if let (Some(options), Some(fields)) = (options.as_object_mut(), fields.as_object()) {
                options.extend(fields.clone());
            }
            options
        };
        match self.rng.u8(..10) {
            0 => request.json(options(json!({"preconditions": {"uid": format!("@uid {path}")}}))),
            1 => request.json(options(json!({"preconditions": {"resourceVersion": format!("@first-version {path}")}}))),
            2 => request.json(options(json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}))),
            3 => request.json(options(json!({"gracePeriodSeconds": 0}))),
            4 => request.query("gracePeriodSeconds", "7"),
            5 => request.query("dryRun", "All"),
            6 => request.json(options(json!({"propagationPolicy": "Background"}))),
            _ => request,
        }
    }

    fn delete_collection(&mut self, kind: &Kind) -> Request {
        let request = Request::new("DELETE", kind.collection(&self.namespace()));
        // On the real server this verb does not exist for namespaces, so anything goes.
        let selector = format!("{},app=data", self.selector());
        request.query("labelSelector", selector)
    }

    fn scale(&mut self, kind: &Kind) -> Request {
        let path = format!("{}/scale", self.path(kind));
        // Always another number: one that changes nothing would still change who manages it, on the real server only.
        let replicas = if self.rng.u8(..4) == 0 { json!(-2) } else { json!(10 + self.made) };
        let change = json!({"spec": {"replicas": replicas}});
        let request = match self.rng.u8(..4) {
            0 => return Request::new("GET", path),
            1 => {
                let name = path.rsplit('/').nth(1).unwrap_or_default();
                let mut scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}});
                if kind.namespaced {
                    scale["metadata"]["namespace"] = self.namespace().into();
                }
                scale["spec"] = change["spec"].clone();
                Request::new("PUT", path).json(scale)
            }
            2 => Request::new("PATCH", path).body("application/merge-patch+json", Body::Json(change)),
            _ => Request::new("PATCH", path).body("application/strategic-merge-patch+json", Body::Json(change)),
        };
        self.write_options(request)
    }

    fn pod_action(&mut self) -> Request {
        let name = ["a", "b"][self.rng.usize(..2)];
        let pod = format!("/api/v1/namespaces/{}/pods/{name}", self.namespace());
        let grace_seconds = [0, 5][self.rng.usize(..2)];
        match self.rng.u8(..3) {
            0 => Request::new("POST", format!("{pod}/binding")).json(json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "machine"},
            })),
            1 => Request::new("POST", format!("{pod}/eviction")).json(json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
                "deleteOptions": {"gracePeriodSeconds": grace_seconds},
            })),
            _ => Request::new("POST", format!("{pod}/eviction")).query("dryRun", "All").json(json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
            })),
        }
    }
}
