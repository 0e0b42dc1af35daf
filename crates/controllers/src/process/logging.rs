//! The log: one JSON object per line, with the keys that log pipelines of Karpenter users expect.
//!
//! [`render`] is pure; [`json_layer`] gathers what it needs from `tracing` and writes the line.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterExt;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::options::LogLevel;

/// The characters of a revision that are logged.
const COMMIT_CHARACTERS: usize = 7;
/// Equal messages of one second that are all written; a loop gone wild must not drown the rest.
const SAMPLE_FIRST: u64 = 100;
/// Of further equal messages in that second, each of this many is written.
const SAMPLE_THEREAFTER: u64 = 100;
/// Keys that every line has; a field of the same name gets a prefix instead of a second meaning.
const RESERVED: [&str; 6] = ["level", "time", "logger", "caller", "message", "commit"];

/// What the log shows.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// The least level that is logged.
    pub level: LogLevel,
    /// The revision the program was built from; its first characters are logged.
    pub commit: String,
    /// The crates (as in module paths) whose debug events and spans are logged; libraries only speak from info on.
    pub own_crates: &'static [&'static str],
}

/// One line before it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The severity.
    pub level: Level,
    /// When it happened.
    pub time: Timestamp,
    /// Which part speaks: `controller`, or `controller.` and a name.
    pub logger: String,
    /// The place in the code, if it is to be shown.
    pub caller: Option<String>,
    /// What happened.
    pub message: String,
    /// The revision the program was built from.
    pub commit: String,
    /// Structured keys in order of appearance; a later one of the same name replaces an earlier one.
    pub fields: Vec<(String, Value)>,
}

/// Writes a record as one line of JSON, with the line's end.
///
/// A key such as `NodeClaim.name` becomes a member of the object `NodeClaim`, as users of the reference find it.
pub fn render(record: &Record) -> String {
    let commit: String = record.commit.chars().take(COMMIT_CHARACTERS).collect();
    let mut pairs: Vec<(String, Value)> = vec![
        ("level".into(), level_name(record.level).into()),
        ("time".into(), time_text(record.time).into()),
        ("logger".into(), record.logger.as_str().into()),
    ];
    if let Some(caller) = &record.caller {
        pairs.push(("caller".into(), caller.as_str().into()));
    }
    pairs.push(("message".into(), record.message.as_str().into()));
    pairs.push(("commit".into(), commit.into()));
    for (key, value) in &record.fields {
        insert(&mut pairs, key, value.clone());
    }
    let members: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
    format!("{{{}}}\n", members.join(","))
}

/// Levels as the reference names them; it has no trace.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

/// ISO 8601 in UTC with milliseconds.
fn time_text(time: Timestamp) -> String {
    format!("{time:.3}")
}

fn insert(pairs: &mut Vec<(String, Value)>, key: &str, value: Value) {
    if let Some((kind, member)) = object_member(key) {
        let at = position_or_push(pairs, kind);
        if let Value::Object(members) = &mut pairs[at].1 {
            members.insert(member.to_owned(), value);
        } else {
            pairs[at].1 = Value::Object(Map::from_iter([(member.to_owned(), value)]));
        }
        return;
    }
    let key = if RESERVED.contains(&key) { format!("field.{key}") } else { key.to_owned() };
    let at = position_or_push(pairs, &key);
    pairs[at].1 = value;
}

fn position_or_push(pairs: &mut Vec<(String, Value)>, key: &str) -> usize {
    pairs.iter().position(|(found, _)| found == key).unwrap_or_else(|| {
        pairs.push((key.to_owned(), Value::Null));
        pairs.len() - 1
    })
}

/// The kind and member of a key such as `Pod.namespace`; kinds begin with a capital, which other dotted keys do not.
fn object_member(key: &str) -> Option<(&str, &str)> {
    key.split_once('.')
        .filter(|(kind, member)| kind.starts_with(|first: char| first.is_ascii_uppercase()) && !member.is_empty())
}

/// Where lines go.
pub struct Outputs {
    lines: Vec<Box<dyn Write + Send>>,
    failures: Vec<Box<dyn Write + Send>>,
}

impl Outputs {
    /// Opens the places named in the options: `stdout`, `stderr`, or files that are appended to.
    pub fn open(paths: &[String], failure_paths: &[String]) -> io::Result<Self> {
        let open_all = |paths: &[String]| paths.iter().map(|path| open(path)).collect::<io::Result<Vec<_>>>();
        Ok(Self { lines: open_all(paths)?, failures: open_all(failure_paths)? })
    }

    /// Writes lines to one place and forgets failures; for programs that embed the log.
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        Self { lines: vec![Box::new(writer)], failures: vec![] }
    }

    fn write(&mut self, line: &str) {
        for output in &mut self.lines {
            let Err(error) = output.write_all(line.as_bytes()).and_then(|()| output.flush()) else { continue };
            for failure in &mut self.failures {
                // There is nowhere left to say that this failed too.
                let _ = writeln!(failure, "cannot write the log: {error}");
            }
        }
    }
}

fn open(path: &str) -> io::Result<Box<dyn Write + Send>> {
    Ok(match path {
        "stdout" => Box::new(io::stdout()),
        "stderr" => Box::new(io::stderr()),
        file => {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("log file `{file}`: {error}"));
            Box::new(OpenOptions::new().create(true).append(true).open(file).map_err(named)?)
        }
    })
}

/// The layer that writes events as JSON lines; `clock` tells the time of each.
///
/// Spans of our own crates lend their fields to the events inside them at every level, so that an error is never
/// without its `controller` and its object.
pub fn json_layer<S>(
    settings: LogSettings,
    outputs: Outputs,
    clock: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    let LogSettings { level, own_crates, .. } = settings;
    let filter = filter_fn(move |metadata| is_logged(metadata, level, own_crates));
    let sink = Mutex::new(Sink { outputs, sampler: Sampler::default() });
    JsonLayer { settings, clock, sink }.with_filter(filter.and(LevelFilter::DEBUG))
}

fn is_logged(metadata: &Metadata<'_>, level: LogLevel, own_crates: &[&str]) -> bool {
    let own = is_own(metadata, own_crates);
    if metadata.is_span() {
        return own;
    }
    let least = match level {
        LogLevel::Debug if own => Level::DEBUG,
        LogLevel::Debug | LogLevel::Info => Level::INFO,
        LogLevel::Error => Level::ERROR,
    };
    *metadata.level() <= least
}

fn is_own(metadata: &Metadata<'_>, own_crates: &[&str]) -> bool {
    let module = metadata.module_path().unwrap_or_default();
    let name = module.split_once("::").map_or(module, |(name, _)| name);
    own_crates.contains(&name)
}

/// `controller` for our own code, with the target appended where one was given or a library speaks.
fn logger_name(metadata: &Metadata<'_>, own_crates: &[&str]) -> String {
    if is_own(metadata, own_crates) && metadata.module_path() == Some(metadata.target()) {
        "controller".to_owned()
    } else {
        format!("controller.{}", metadata.target())
    }
}

/// The last folder and the file, which is enough to find the place and says nothing of the build machine.
fn caller(metadata: &Metadata<'_>) -> Option<String> {
    let path: Vec<&str> = metadata.file()?.rsplitn(3, ['/', '\\']).take(2).collect();
    let place = path.into_iter().rev().collect::<Vec<_>>().join("/");
    Some(metadata.line().map_or_else(|| place.clone(), |line| format!("{place}:{line}")))
}

struct JsonLayer<C> {
    settings: LogSettings,
    clock: C,
    sink: Mutex<Sink>,
}

struct Sink {
    outputs: Outputs,
    sampler: Sampler,
}

/// Counts equal messages within one second.
#[derive(Default)]
struct Sampler {
    second: i64,
    seen: BTreeMap<(Level, String), u64>,
}

impl Sampler {
    fn admits(&mut self, record: &Record) -> bool {
        let second = record.time.as_second();
        if second != self.second {
            self.second = second;
            self.seen.clear();
        }
        let count = self.seen.entry((record.level, record.message.clone())).or_default();
        *count += 1;
        *count <= SAMPLE_FIRST || (*count - SAMPLE_FIRST).is_multiple_of(SAMPLE_THEREAFTER)
    }
}

impl<S, C> Layer<S> for JsonLayer<C>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    C: Fn() -> Timestamp + Send + Sync + 'static,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.pairs.extend(of_span.pairs.iter().cloned());
            }
        }
        event.record(&mut fields);
        let record = Record {
            level: *metadata.level(),
            time: (self.clock)(),
            logger: logger_name(metadata, self.settings.own_crates),
            caller: (self.settings.level == LogLevel::Debug).then(|| caller(metadata)).flatten(),
            message: fields.message.unwrap_or_default(),
            commit: self.settings.commit.clone(),
            fields: fields.pairs,
        };
        // A panic while another line was written leaves nothing half-done that matters here.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if sink.sampler.admits(&record) {
            sink.outputs.write(&render(&record));
        }
    }
}

/// The fields of a span or an event, as JSON.
#[derive(Default)]
struct Fields {
    message: Option<String>,
    pairs: Vec<(String, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = Some(text),
            (name, value) => self.pairs.push((name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Many errors already end in their cause's text.
            if !text.ends_with(&next) {
                let _ = write!(text, ": {next}");
            }
            cause = error.source();
        }
        self.add(field, text.into());
    }
}

#[cfg(test)]
#[path = "logging_tests.rs"]
mod tests;
