use model::ClaimName;

use super::*;
use crate::metrics::Build;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A claim with conditions written as `Type Status Reason second`.
fn claim(uid: &str, finalizers: &[&str], conditions: &[&str]) -> Subject {
    let read = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        ConditionFacts {
            kind: words[0].to_owned(),
            status: words[1].to_owned(),
            reason: words[2].to_owned(),
            message: words[4..].join(" "),
            since: at(words[3].parse().unwrap()),
        }
    };
    Subject {
        key: Key::Claim(ClaimName::new("c")),
        kind: SubjectKind::Claim,
        about: ObjectReference { name: Some("c".into()), uid: Some(uid.into()), ..ObjectReference::default() },
        own_labels: vec!["class".into(), "pool".into()],
        finalizers: finalizers.iter().map(ToString::to_string).collect(),
        created: at(0),
        deletion: None,
        conditions: conditions.iter().map(read).collect(),
    }
}

fn told(changes: &Changes) -> Vec<String> {
    let transitions = changes.transitions.iter().map(|transition| {
        let counted = match &transition.from {
            Some((status, seconds)) => format!("{status} for {seconds}s"),
            None => "new".to_owned(),
        };
        format!("{counted}: {}", message(transition).unwrap_or_default())
    });
    transitions.chain(changes.finalized.iter().map(|finalizer| format!("Finalized {finalizer}"))).collect()
}

/// OBS-10: what changed, from what to what, why and after how long; finalizers that went.
#[test]
fn transitions_are_told() {
    let mut conditions = Conditions::default();
    let first = claim("u", &["f/a", "f/b"], &["Launched Unknown Awaiting 0", "Ready True Ready 0"]);
    assert_eq!(told(&conditions.note(first)), ["new: "], "what is true from the start is counted, but no event");
    let second = claim("u", &["f/b"], &["Launched True Launched 7", "Ready False NotReady 9 because of it"]);
    let expected = [
        "Unknown for 7s: Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched",
        "True for 9s: Status condition transitioned, Type: Ready, Status: True -> False, Reason: NotReady, \
         Message: because of it",
        "Finalized f/a",
    ];
    assert_eq!(told(&conditions.note(second.clone())), expected);
    assert_eq!(told(&conditions.note(second)), Vec::<String>::new());
    let reworded = claim("u", &["f/b"], &["Launched True Launched 7", "Ready False Other 9 and other words"]);
    assert_eq!(told(&conditions.note(reworded)), Vec::<String>::new(), "another reason is no other status");
    let gone = conditions.forget(&Key::Claim(ClaimName::new("c")), at(20));
    assert_eq!((told(&gone), gone.terminated_after), (vec!["Finalized f/b".to_owned()], None));
}

/// OBS-03, OBS-04: transitions of all kinds of objects are counted by the new status, and timed by the old and the new;
/// how long objects took to go is timed too.
#[test]
fn transitions_are_counted_by_kind() {
    let naming = Naming { node_class: "class".to_owned(), well_known: Vec::new() };
    let word = |text: &str| text.to_owned();
    let build = Build { version: word("v"), goversion: word("g"), goarch: word("a"), commit: word("c") };
    let metrics = Metrics::new(&build, naming);
    let claimed = r#"class="small",karpenter_sh_nodepool="web""#;
    let table = [
        (SubjectKind::Claim, &["small", "web"][..], "nodeclaim_", format!(",{claimed}")),
        (SubjectKind::Pool, &[], "nodepool_", String::new()),
        (
            SubjectKind::Node,
            &["small", "web", "true"],
            "node_",
            format!(r#",{claimed},karpenter_sh_initialized="true""#),
        ),
        (SubjectKind::Buffer, &[], "capacitybuffer_", String::new()),
    ];
    for (kind, own_labels, ..) in &table {
        let own_labels: Vec<String> = own_labels.iter().map(ToString::to_string).collect();
        let subject = Subject { kind: *kind, own_labels, ..claim("u", &[], &["Ready False Broken 9"]) };
        let transition = Transition { to: subject.conditions[0].clone(), from: Some(("True".to_owned(), 7.0)) };
        count(&metrics, &subject, &transition);
        count_termination(&metrics, &subject, 3.0);
    }
    let older = |kind: &str| ("", format!(r#",group="karpenter.sh",kind="{kind}""#));
    let older = [older("NodeClaim"), older("NodePool")];
    let text = metrics.scrape();
    for (kind, own) in table.map(|(.., kind, own)| (kind, own)).into_iter().chain(older) {
        let name = format!("operator_{kind}status_condition_transition");
        let counted = format!(r#"{name}s_total{{type="Ready",status="False",reason="Broken"{own}}} 1"#);
        let timed = format!(r#"{name}_seconds_sum{{type="Ready",status="True",to_status="False"{own}}} 7"#);
        let own = if own.is_empty() { own } else { format!("{{{}}}", &own[1..]) };
        let ended = format!("operator_{kind}termination_duration_seconds_sum{own} 3");
        for line in [counted, timed, ended] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}

/// OBS-03, OBS-04: every condition is told with its status, its reason and its age, under the name of its kind and under
/// the older one.
#[test]
fn conditions_are_told_as_they_are() {
    let mut conditions = Conditions::default();
    conditions.note(claim("u", &[], &["Launched True Launched 7", "Ready False Broken 9 it fell"]));
    let mut page = Page::default();
    let naming = Naming { node_class: "class".to_owned(), well_known: Vec::new() };
    conditions.tell(&naming, at(20), &mut page);
    let text = page.into_text();
    let told: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let launched = r#"namespace="",name="c",type="Launched",status="True",reason="Launched""#;
    let ready = r#"namespace="",name="c",type="Ready",status="False",reason="Broken""#;
    let forms = [
        ("nodeclaim_", r#",class="class",karpenter_sh_nodepool="pool""#),
        ("", r#",group="karpenter.sh",kind="NodeClaim""#),
    ];
    let expected = forms.map(|(kind, own)| {
        [
            format!("operator_{kind}status_condition_count{{{launched}{own}}} 1"),
            format!("operator_{kind}status_condition_count{{{ready}{own}}} 1"),
            format!("operator_{kind}status_condition_current_status_seconds{{{launched}{own}}} 13"),
            format!("operator_{kind}status_condition_current_status_seconds{{{ready}{own}}} 11"),
        ]
    });
    assert_eq!(told, expected.concat());
}

/// OBS-03, OBS-04: an object that goes is told of for as long as it takes, and counted when it is gone.
#[test]
fn terminations_are_timed() {
    let mut conditions = Conditions::default();
    conditions.note(Subject { deletion: Some(at(10)), ..claim("u", &["f"], &[]) });
    let mut page = Page::default();
    let naming = Naming { node_class: "class".to_owned(), well_known: Vec::new() };
    conditions.tell(&naming, at(15), &mut page);
    let text = page.into_text();
    let expected = r#"operator_nodeclaim_termination_current_time_seconds{namespace="",name="c",class="class",karpenter_sh_nodepool="pool"} 5"#;
    assert!(text.contains(expected), "{text}");
    let older =
        r#"operator_termination_current_time_seconds{namespace="",name="c",group="karpenter.sh",kind="NodeClaim"} 5"#;
    assert!(text.contains(older), "{text}");
    assert_eq!(conditions.forget(&Key::Claim(ClaimName::new("c")), at(30)).terminated_after, Some(20.0));
}

/// Another object of the same name is another object.
#[test]
fn a_new_object_of_the_same_name_has_no_past() {
    let mut conditions = Conditions::default();
    conditions.note(claim("u", &["f"], &["Ready True Ready 0"]));
    assert_eq!(told(&conditions.note(claim("v", &[], &["Ready Unknown Awaiting 5"]))), Vec::<String>::new());
}
