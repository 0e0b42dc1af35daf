//! The part of JSONPath that printer columns use: fields (with `\.` for a dot in a name), `['field']`, indices,
//! slices, wildcards, and filters that compare one field with a literal.

use serde_json::Value;

/// A path that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Slice { start: Option<i64>, end: Option<i64> },
    Index(i64),
    Wildcard,
    Filter { left: Path, comparison: Comparison, right: Value },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Two characters before one, so that `<=` is not taken for `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Path {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`; `None` if it is not one we know.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inner) => {
                    let end = closing_bracket(inner)?;
                    (bracket(&inner[..end])?, &inner[end + 1..])
                }
                None => field(rest.strip_prefix('.').or(steps.is_empty().then_some(rest))?)?,
            };
            steps.push(step);
            rest = after;
        }
        Some(Self(steps))
    }

    /// Everything that the path leads to; nothing if a step does not fit the value.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.0.iter().fold(vec![value], |found, step| found.into_iter().flat_map(|value| step.walk(value)).collect())
    }
}

impl Step {
    fn walk<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
            (Self::Wildcard, Value::Object(fields)) => fields.values().collect(),
            (Self::Wildcard, Value::Array(items)) => items.iter().collect(),
            (Self::Index(index), Value::Array(items)) => {
                from_end(*index, items.len()).and_then(|index| items.get(index)).into_iter().collect()
            }
            (Self::Slice { start, end }, Value::Array(items)) => {
                let start = from_end(start.unwrap_or(0), items.len());
                let end = end.map_or(Some(items.len()), |end| from_end(end, items.len()));
                start.zip(end).and_then(|(start, end)| items.get(start..end)).unwrap_or_default().iter().collect()
            }
            (Self::Filter { left, comparison, right }, Value::Array(items)) => {
                items.iter().filter(|item| comparison.holds(&left.find(item), right)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn from_end(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index + i64::try_from(length).ok()? } else { index };
    usize::try_from(index).ok()
}

impl Comparison {
    fn holds(self, left: &[&Value], right: &Value) -> bool {
        let [left] = left else { return false };
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => left.partial_cmp(right),
            (Value::Bool(left), Value::Bool(right)) => left.partial_cmp(right),
            (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => None,
        };
        if self == Self::Exists {
            return true;
        }
        order.is_some_and(|order| match self {
            Self::Exists => true,
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }
}

/// Reads a field name up to the next step.
fn field(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = position;
                break;
            }
            other => name.push(other),
        }
    }
    let step = match name.as_str() {
        "" => return None,
        "*" => Step::Wildcard,
        _ => Step::Field(name),
    };
    Some((step, &text[end..]))
}

/// Where the bracket that was opened just before this text closes.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (position, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(position),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// Reads what stands between brackets.
fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return filter_step(filter);
    }
    if text == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(Value::String(name)) = literal(text) {
        return Some(Step::Field(name));
    }
    match text.split_once(':') {
        Some((start, end)) => {
            let bound = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
            Some(Step::Slice { start: bound(start)?, end: bound(end)? })
        }
        None => text.parse().ok().map(Step::Index),
    }
}

fn filter_step(text: &str) -> Option<Step> {
    let split = COMPARISONS.iter().find_map(|(sign, comparison)| {
        let (left, right) = text.split_once(sign)?;
        Some((left, *comparison, right))
    });
    let (left, comparison, right) = match split {
        Some((left, comparison, right)) => (left, comparison, literal(right.trim())?),
        None => (text, Comparison::Exists, Value::Null),
    };
    let left = Path::parse(left.trim().strip_prefix('@')?)?;
    Some(Step::Filter { left, comparison, right })
}

fn literal(text: &str) -> Option<Value> {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return Some(Value::from(inner.replace(&format!("\\{quote}"), &quote.to_string())));
        }
    }
    match text {
        "true" => Some(Value::from(true)),
        "false" => Some(Value::from(false)),
        _ => text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from)).ok(),
    }
}
