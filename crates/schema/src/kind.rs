//! One kind: how its objects are read, completed and checked.

use serde_json::Value;

use crate::builtin;
use crate::bundled::{self, Bundle};
use crate::custom::{self, Structural};
use crate::errors::{DecodeError, FieldError, FieldErrorKind, quote};
use crate::json::{Json, make_integral};
use crate::metadata::{self, MetadataRule};
use crate::names::NameRule;
use crate::path::Path;
use crate::resource::ScalePaths;
use crate::shape::Shape;
use crate::typed;

/// What happens to fields that are unknown or stand twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped without a word.
    Ignore,
    /// They are dropped, and the client is told.
    Warn,
    /// The request fails.
    Strict,
}

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The object itself.
    Main,
    /// Its status.
    Status,
    /// Its number of replicas.
    Scale,
}

/// A body that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, without what its kind does not know.
    pub object: Value,
    /// What the client should be told, for [`FieldValidation::Warn`].
    pub warnings: Vec<String>,
}

/// Everything known about the objects of one kind in one version.
#[derive(Debug)]
pub struct KindSchema {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Where a custom kind keeps its number of replicas.
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) source: Source,
}

/// Where the knowledge comes from.
pub(crate) enum Source {
    BuiltIn(&'static Bundle),
    Custom(Box<Structural>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn(bundle) => write!(formatter, "BuiltIn({})", bundle.path),
            Self::Custom(_) => formatter.write_str("Custom"),
        }
    }
}

impl KindSchema {
    /// Reads a body. Values of a wrong JSON type are errors for built-in kinds; for custom ones
    /// [`validate`](Self::validate) finds them, as in the real API server. Unknown and repeated fields are left out,
    /// and are warnings or errors by `mode`.
    pub fn decode(&self, body: &[u8], mode: FieldValidation) -> Result<Decoded, DecodeError> {
        let json: Json =
            serde_json::from_slice(body).map_err(|error| self.unrecognised(&syntax(body, &error), body))?;
        match &json {
            Json::Object(_) => {}
            other => {
                let problem = format!("json: cannot unmarshal {} into Go value of type {TYPE_META}", other.sort());
                return Err(self.unrecognised(&problem, body));
            }
        }
        for key in ["apiVersion", "kind"] {
            if let Some(found) = json.get(key).filter(|found| !matches!(found, Json::Text(_) | Json::Null)) {
                let problem =
                    format!("json: cannot unmarshal {} into Go struct field .{key} of type string", found.sort());
                return Err(self.unrecognised(&problem, body));
            }
        }
        self.decode_json(json, mode)
    }

    /// Reads a value, as [`decode`](Self::decode) reads a body: for what a patch made.
    pub fn decode_value(&self, value: Value, mode: FieldValidation) -> Result<Decoded, DecodeError> {
        match value {
            Value::Object(_) => self.decode_json(value.into(), mode),
            other => self.decode(other.to_string().as_bytes(), mode),
        }
    }

    fn decode_json(&self, json: Json, mode: FieldValidation) -> Result<Decoded, DecodeError> {
        self.check_identity(&json)?;
        let (mut object, misfit, strict) = match &self.source {
            Source::BuiltIn(bundle) => {
                let arena = bundle.arena();
                let node = self.node();
                let (object, findings) = typed::decode(arena, node, json);
                (object, findings.misfit, findings.strict)
            }
            Source::Custom(schema) => self.decode_custom(schema, json),
        };
        if let Some(problem) = misfit {
            return Err(self.unfit(problem));
        }
        if mode == FieldValidation::Strict && !strict.is_empty() {
            return Err(self.unfit(format!("strict decoding error: {}", strict.join(", "))));
        }
        // A custom object that names another kind is turned away later, with that name.
        for (key, value) in [("apiVersion", self.api_version()), ("kind", self.kind.clone())] {
            if object.get(key).is_none_or(|found| found.as_str().is_none_or(str::is_empty)) {
                object[key] = value.into();
            }
        }
        let warnings = if mode == FieldValidation::Warn { strict } else { Vec::new() };
        Ok(Decoded { object, warnings })
    }

    fn decode_custom(&self, schema: &Structural, json: Json) -> (Value, Option<String>, Vec<String>) {
        let mut repeated = Vec::new();
        let written = json.get("metadata").cloned();
        let mut object = json.into_value("", &mut repeated);
        make_integral(&mut object);
        let mut strict: Vec<_> = repeated.iter().map(|path| format!("duplicate field {}", quote(path))).collect();
        let mut unknown = Vec::new();
        custom::prune(schema, &mut object, true, "", &mut unknown);
        let mut misfit = None;
        if let Some(written) = written {
            let arena = Bundle::at("api/v1").map(Bundle::arena);
            if let Some((arena, node)) = arena.and_then(|arena| Some((arena, arena.named("meta.v1.ObjectMeta")?))) {
                let (mut metadata, findings) = typed::decode(arena, node, written);
                typed::write_zeros(arena, node, &mut metadata);
                object["metadata"] = metadata;
                misfit = findings.misfit;
                let inside = findings.strict.iter().filter_map(|text| text.strip_prefix("unknown field \""));
                strict.extend(inside.map(|rest| format!("unknown field \"metadata.{rest}")));
            }
        }
        unknown.sort();
        strict.extend(unknown.iter().map(|path| format!("unknown field {}", quote(path))));
        custom::drop_nulls(schema, &mut object);
        (object, misfit, strict)
    }

    /// A body may leave out its kind and version, but not name others.
    fn check_identity(&self, json: &Json) -> Result<(), DecodeError> {
        let found_kind = json.get("kind").and_then(Json::as_text).filter(|text| !text.is_empty());
        let found_version = json.get("apiVersion").and_then(Json::as_text).filter(|text| !text.is_empty());
        let api_version = self.api_version();
        let (kind, version) = (found_kind.unwrap_or(&self.kind), found_version.unwrap_or(&api_version));
        if version == api_version && kind == self.kind {
            return Ok(());
        }
        if let Source::Custom(_) = self.source {
            // Another kind in the right version is told by `validate`.
            return if version == api_version {
                Ok(())
            } else {
                Err(DecodeError::Version { found: version.to_owned(), expected: api_version })
            };
        }
        let short = version.rsplit('/').next().unwrap_or_default();
        let problem = if is_known(version, kind) {
            let internal = self.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
            format!("converting ({short}.{kind}) to ({internal}.{}): unknown conversion", self.kind)
        } else {
            format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
        };
        Err(DecodeError::Unfit {
            found: kind.to_owned(),
            found_version: short.to_owned(),
            kind: self.kind.clone(),
            problem,
        })
    }

    fn unrecognised(&self, problem: &str, body: &[u8]) -> DecodeError {
        let problem = format!("couldn't get version/kind; json parse error: {problem} ({})", summary(body));
        DecodeError::Syntax { kind: self.kind.clone(), problem }
    }

    fn unfit(&self, problem: String) -> DecodeError {
        DecodeError::Unfit {
            found: self.kind.clone(),
            found_version: self.version.clone(),
            kind: self.kind.clone(),
            problem,
        }
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The place of the kind in its bundle. Every built-in kind has one: a test looks at them all.
    fn node(&self) -> usize {
        match &self.source {
            Source::BuiltIn(bundle) => bundle.arena().kind(&self.group, &self.version, &self.kind).unwrap_or_default(),
            Source::Custom(_) => 0,
        }
    }

    /// Takes out everything that the kind does not know.
    pub fn prune(&self, object: &mut Value) {
        match &self.source {
            Source::BuiltIn(bundle) => {
                let (read, _) = typed::decode(bundle.arena(), self.node(), object.take().into());
                *object = read;
            }
            Source::Custom(schema) => {
                custom::prune(schema, object, true, "", &mut Vec::new());
                custom::drop_nulls(schema, object);
            }
        }
    }

    /// Fills in what the kind gives when a field is absent, and brings the object into the form in which the API
    /// server writes it.
    pub fn default(&self, object: &mut Value) {
        match &self.source {
            Source::BuiltIn(bundle) => {
                let (arena, node) = (bundle.arena(), self.node());
                // Fields that are always there have defaults inside of them.
                typed::write_zeros(arena, node, object);
                builtin::complete(arena, node, &self.kind, object);
                typed::write_zeros(arena, node, object);
            }
            Source::Custom(schema) => {
                custom::complete(schema, object);
                custom::drop_nulls(schema, object);
            }
        }
    }

    /// Everything that is wrong with `new`, which replaces `old` if there is one. Both are complete: read,
    /// defaulted, and for an update with the fields that the write may not touch taken over from `old`.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>, scope: Scope) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match &self.source {
            Source::BuiltIn(_) => builtin::check(self, new, old, scope, &mut errors),
            Source::Custom(schema) => self.validate_custom(schema, new, old, scope, &mut errors),
        }
        errors
    }

    fn validate_custom(
        &self,
        schema: &Structural,
        new: &Value,
        old: Option<&Value>,
        scope: Scope,
        errors: &mut Vec<FieldError>,
    ) {
        if new["kind"] != self.kind.as_str() {
            errors.push(FieldError::invalid("kind", new["kind"].clone(), format!("must be {}", self.kind)));
        }
        if new["apiVersion"] != self.api_version() {
            let detail = format!("must be {}", self.api_version());
            errors.push(FieldError::invalid("apiVersion", new["apiVersion"].clone(), detail));
        }
        let rule = MetadataRule { names: NameRule::Subdomain, namespaced: self.namespaced, strict_finalizers: false };
        metadata::check(rule, new, old, errors);
        match scope {
            Scope::Main | Scope::Scale => custom::check(schema, new, old, &Path::root(), errors),
            Scope::Status => {
                if let (Some(schema), Some(new)) = (schema.properties.get("status"), new.get("status")) {
                    let old = old.and_then(|old| old.get("status"));
                    custom::check(schema, new, old, &Path::part("status"), errors);
                }
            }
        }
        if let Some(paths) = &self.scale {
            check_scale(paths, new, errors);
        }
        custom::check_lists(schema, new, &Path::root(), errors);
        let blocks = |error: &FieldError| {
            matches!(
                error.kind,
                FieldErrorKind::NotSupported
                    | FieldErrorKind::Required
                    | FieldErrorKind::TooLong
                    | FieldErrorKind::TooMany
                    | FieldErrorKind::TypeInvalid
            )
        };
        if !custom::has_rules(schema) {
            return;
        }
        if errors.iter().any(blocks) {
            let detail = "some validation rules were not checked because the object was invalid; correct the \
                          existing errors to complete validation";
            errors.push(FieldError::invalid("<nil>", Value::Null, detail));
        } else {
            custom::check_rules(schema, new, old, &Path::root(), errors);
        }
    }

    /// The shape of the kind, for strategic merge patches.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        match &self.source {
            Source::BuiltIn(bundle) => Shape::of(bundle.arena(), self.node()),
            Source::Custom(_) => Shape::unknown(),
        }
    }
}

/// Numbers of replicas are whole, and neither negative nor huge.
fn check_scale(paths: &ScalePaths, object: &Value, errors: &mut Vec<FieldError>) {
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        let Some(found) = object.pointer(&path.replace('.', "/")) else { continue };
        match (found.as_i64(), found) {
            (Some(count), _) if count < 0 => {
                errors.push(FieldError::invalid(path, count, "should be a non-negative integer"));
            }
            (Some(count), _) if count > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path, count, detail));
            }
            (Some(_), _) => {}
            (None, found) => {
                let (shown, go_type) = match found {
                    Value::Number(number) => (number.to_string(), "float64"),
                    Value::String(text) => (text.clone(), "string"),
                    Value::Bool(value) => (value.to_string(), "bool"),
                    Value::Null => ("<nil>".to_owned(), "<nil>"),
                    Value::Array(_) => (found.to_string(), "[]interface {}"),
                    Value::Object(_) => (found.to_string(), "map[string]interface {}"),
                };
                let detail = format!("{path} accessor error: {shown} is of the type {go_type}, expected int64");
                errors.push(FieldError::invalid(path, 0, detail));
            }
        }
    }
}

/// The type as which the API server first reads every body.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Whether a built-in kind has this name.
fn is_known(api_version: &str, kind: &str) -> bool {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let list = bundled::discovery().get(&format!("{root}/{api_version}"));
    let mut entries = list.and_then(|list| list["resources"].as_array()).into_iter().flatten();
    entries.any(|entry| entry["kind"] == kind)
}

/// What the Go parser says about a text that is no JSON.
fn syntax(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let found = line.get(error.column().saturating_sub(1)).copied().unwrap_or_default();
    format!("invalid character '{}' looking for beginning of value", char::from(found))
}

/// The beginning of a body, for a message about it.
fn summary(body: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 30;
    let (start, more) = if body.len() > SHOWN_BYTES_MAX { (&body[..SHOWN_BYTES_MAX], " ...") } else { (body, "") };
    match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}
