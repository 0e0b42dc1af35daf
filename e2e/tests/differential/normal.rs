//! Taking out of an answer what may differ from server to server: names that a server gives, and times.

use regex::Regex;
use serde_json::Value;

/// What generated names begin with.
pub(crate) const GENERATED: &str = "made-";
/// Columns of tables that count time.
const TIMES: [&str; 4] = ["Age", "Last Seen", "First Seen", "Duration"];

/// Finds uids and times in texts.
#[derive(Debug)]
pub(crate) struct Normaliser {
    uid: Regex,
    time: Regex,
    /// In messages and tokens only: elsewhere a number is a number.
    version: Regex,
    /// An object printed into a message: it shows versions, and who wrote which field.
    printed: Regex,
    generated: Regex,
    /// How a pod's spec was to be changed, line by line; we say only that it was.
    change: Regex,
}

impl Normaliser {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            uid: Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")?,
            time: Regex::new(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")?,
            version: Regex::new(r"(ResourceVersion in [a-z ]*(?:: |\())[0-9]+")?,
            change: Regex::new(r"(?s)(previously negative\)\n).*")?,
            printed: Regex::new(r#"Invalid value: "(\{|map\[)(\\.|[^"\\])*": "#)?,
            generated: Regex::new(&format!("{GENERATED}[a-z0-9]{{5}}"))?,
        })
    }

    /// The value with stable words in the place of what may differ.
    pub(crate) fn normal(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) if fields.get("kind").is_some_and(|kind| kind == "Table") => self.table(fields),
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter().map(|item| self.normal(item)).collect::<Vec<_>>().into(),
            Value::String(text) => Value::String(self.text(text)),
            plain => plain.clone(),
        }
    }

    /// The text with stable words in the place of uids and times.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = self.uid.replace_all(text, "<uid>");
        let text = self.time.replace_all(&text, "<time>");
        let text = self.version.replace_all(&text, "$1<version>");
        let text = self.change.replace_all(&text, "$1");
        let text = self.printed.replace_all(&text, "Invalid value: <object>: ");
        self.generated.replace_all(&text, format!("{GENERATED}<suffix>")).into_owned()
    }

    fn object(&self, fields: &serde_json::Map<String, Value>) -> Value {
        let normal = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "managedFields" | "selfLink")).map(
            |(name, value)| {
                let value = match (name.as_str(), value) {
                    ("resourceVersion", Value::String(version)) if !version.is_empty() => "<version>".into(),
                    ("continue", Value::String(token)) if !token.is_empty() => "<token>".into(),
                    ("causes", Value::Array(causes)) => self.causes(causes),
                    _ => self.normal(value),
                };
                (name.clone(), value)
            },
        );
        Value::Object(normal.collect())
    }

    /// The real server checks metadata several times and lists a mistake each time; its message names it once.
    fn causes(&self, causes: &[Value]) -> Value {
        let mut unique: Vec<Value> = Vec::new();
        for cause in causes.iter().map(|cause| self.normal(cause)) {
            if !unique.contains(&cause) {
                unique.push(cause);
            }
        }
        unique.into()
    }

    fn table(&self, fields: &serde_json::Map<String, Value>) -> Value {
        let Value::Object(mut table) = self.object(fields) else { return Value::Null };
        let mut timed = Vec::new();
        for (index, column) in
            table.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            if column["name"].as_str().is_some_and(|name| TIMES.contains(&name)) {
                timed.push(index);
            }
            // What a column says is for people; ours is in our own words.
            if let Some(column) = column.as_object_mut() {
                column.remove("description");
            }
        }
        for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            for index in &timed {
                if let Some(cell) = row.get_mut("cells").and_then(|cells| cells.get_mut(*index)) {
                    *cell = if cell.is_string() { "<age>".into() } else { cell.clone() };
                }
            }
        }
        Value::Object(table)
    }
}
