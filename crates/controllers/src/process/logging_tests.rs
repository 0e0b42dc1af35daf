//! Lines as text.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;

use super::{LogSettings, Outputs, Record, Sampler, json_layer, render};
use crate::process::LogLevel;

fn record(fields: &[(&str, Value)]) -> Record {
    Record {
        level: Level::INFO,
        time: "2026-01-02T03:04:05.006789Z".parse().unwrap(),
        logger: "controller".into(),
        caller: None,
        message: "created nodeclaim".into(),
        commit: "0123456789abcdef".into(),
        fields: fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    }
}

/// OBS-12: the keys of a line, in order.
#[test]
fn a_line_has_level_time_logger_message_commit_and_fields() {
    assert_eq!(
        render(&record(&[("controller", json!("provisioner")), ("pods", json!(3))])),
        r#"{"level":"INFO","time":"2026-01-02T03:04:05.006Z","logger":"controller","message":"created nodeclaim","commit":"0123456","controller":"provisioner","pods":3}"#.to_owned()
            + "\n"
    );
}

/// OBS-12: levels are upper case, and the caller stands before the message.
#[test]
fn levels_and_caller() {
    let levels = [(Level::ERROR, "ERROR"), (Level::WARN, "WARN"), (Level::INFO, "INFO"), (Level::DEBUG, "DEBUG")];
    for (level, name) in levels {
        let line = render(&Record { level, caller: Some("src/here.rs:7".into()), ..record(&[]) });
        assert_eq!(
            line,
            format!(
                r#"{{"level":"{name}","time":"2026-01-02T03:04:05.006Z","logger":"controller","caller":"src/here.rs:7","message":"created nodeclaim","commit":"0123456"}}"#
            ) + "\n"
        );
    }
}

#[test]
fn fields_replace_nest_and_never_collide() {
    let cases: [(&[(&str, Value)], &str); 5] = [
        (&[("a", json!(1)), ("b", json!(2)), ("a", json!(3))], r#""a":3,"b":2"#),
        (
            &[("Pod.name", json!("web")), ("x", json!(true)), ("Pod.namespace", json!("shop"))],
            r#""Pod":{"name":"web","namespace":"shop"},"x":true"#,
        ),
        (&[("Node", json!("plain")), ("Node.name", json!("n"))], r#""Node":{"name":"n"}"#),
        (&[("http.method", json!("GET")), ("Odd.", json!(1))], r#""http.method":"GET","Odd.":1"#),
        (&[("level", json!(5)), ("quote\"d", json!("line\nend"))], r#""field.level":5,"quote\"d":"line\nend""#),
    ];
    for (fields, expected) in cases {
        let line = render(&record(fields));
        assert!(line.ends_with(&format!("\"commit\":\"0123456\",{expected}}}\n")), "{line}");
        assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
    }
}

#[test]
fn equal_messages_are_sampled_by_the_second() {
    let mut sampler = Sampler::default();
    let mut admitted = |second: i64, times: usize| {
        let time = jiff::Timestamp::from_second(second).unwrap();
        (0..times).filter(|_| sampler.admits(&Record { time, ..record(&[]) })).count()
    };
    assert_eq!(admitted(1, 350), 102);
    assert_eq!(admitted(2, 50), 50);
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that `speak` leaves behind at a level, without the keys that are equal in all.
fn lines(level: LogLevel, own_crates: &'static [&'static str], speak: impl FnOnce()) -> Vec<String> {
    let captured = Captured::default();
    let settings = LogSettings { level, commit: "abcdefgh".into(), own_crates };
    let clock = || jiff::Timestamp::from_second(0).unwrap();
    let layer = json_layer(settings, Outputs::to_writer(captured.clone()), clock);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), speak);
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    text.lines()
        .map(|line| {
            line.replace(r#""time":"1970-01-01T00:00:00.000Z","#, "")
                .replace(r#","commit":"abcdefg""#, "")
                .replace('"', "")
        })
        .collect()
}

const OWN: &[&str] = &[env!("CARGO_CRATE_NAME")];

/// OBS-12: events carry their own fields and those of the spans around them, whatever the level.
#[test]
fn spans_lend_their_fields() {
    let speak = || {
        let outer = tracing::info_span!("reconcile", controller = "nodeclaim.lifecycle", NodeClaim.name = "small");
        let _outer = outer.enter();
        let inner = tracing::debug_span!("launch", "provider-id" = tracing::field::Empty, attempt = 1_u64);
        inner.record("provider-id", "kwok://1");
        let _inner = inner.enter();
        let cause = io::Error::other("no route");
        tracing::error!(error = &cause as &dyn std::error::Error, attempt = 2, "launching {}", "failed");
    };
    let expected = "{level:ERROR,logger:controller,message:launching failed,controller:nodeclaim.lifecycle,\
                    NodeClaim:{name:small},attempt:2,provider-id:kwok://1,error:no route}";
    assert_eq!(lines(LogLevel::Error, OWN, speak), [expected]);
    assert_eq!(lines(LogLevel::Info, OWN, speak), [expected]);
}

/// OBS-12: the level decides what is written, and libraries are silent below info.
#[test]
fn levels_filter() {
    let speak = || {
        tracing::debug!(target: "aside", "d");
        tracing::info!("i");
        tracing::error!(price = 0.5, ready = true, label = ?Some(1), "e");
    };
    let error = "{level:ERROR,logger:controller,message:e,price:0.5,ready:true,label:Some(1)}";
    assert_eq!(lines(LogLevel::Error, OWN, speak), [error]);
    assert_eq!(lines(LogLevel::Info, OWN, speak), ["{level:INFO,logger:controller,message:i}", error]);
    let all = lines(LogLevel::Debug, OWN, speak);
    assert_eq!(all.len(), 3);
    assert!(all[0].starts_with("{level:DEBUG,logger:controller.aside,caller:process/logging_tests.rs:"), "{}", all[0]);
    let foreign = lines(LogLevel::Debug, &["other"], speak);
    assert_eq!(foreign.len(), 2);
    assert!(foreign[0].starts_with(&format!("{{level:INFO,logger:controller.{}", module_path!())), "{}", foreign[0]);
}

#[test]
fn outputs_open_streams_and_files() {
    let folder = std::env::temp_dir().join(format!("logging-{}", std::process::id()));
    let missing = folder.join("deeper/log").display().to_string();
    let error = Outputs::open(&["stdout".into(), missing.clone()], &["stderr".into()]).err().unwrap();
    assert!(error.to_string().contains(&missing), "{error}");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("log").display().to_string();
    for line in ["one\n", "two\n"] {
        Outputs::open(std::slice::from_ref(&file), &[]).unwrap().write(line);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    std::fs::remove_dir_all(&folder).unwrap();
}
