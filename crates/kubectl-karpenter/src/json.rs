//! The story for programs: one JSON object per line.

use serde::Serialize;

use crate::story::{Line, News};
use crate::summary::Summary;

#[derive(Serialize)]
struct JsonLine<'a> {
    event: &'static str,
    at: f64,
    #[serde(flatten)]
    news: &'a News,
}

#[derive(Serialize)]
struct JsonSummary<'a> {
    event: &'static str,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// A line of the story.
pub fn line(line: &Line) -> String {
    written(&JsonLine { event: line.news.event(), at: line.at.as_millis() as f64 / 1000.0, news: &line.news })
}

/// The last line.
pub fn summary(summary: &Summary) -> String {
    written(&JsonSummary { event: "summary", summary })
}

fn written(value: &impl Serialize) -> String {
    // Names, numbers and lists of them can always be written.
    serde_json::to_string(value).unwrap_or_default()
}
