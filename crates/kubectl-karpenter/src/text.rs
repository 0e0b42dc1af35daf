//! The story for people: the virtual clock at the left, what happened, and its details. No line is wider than a
//! terminal of 120 columns.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::paint::{Paint, Style};
use crate::story::{Decided, Joined, Launched, Line, Machine, News, ObjectName, Offer, Removed, Removing, Started};
use crate::summary::Summary;

/// Widest line, in columns.
const WIDTH: usize = 120;
/// Where the details begin: after the clock and the longest word.
const INDENT: usize = 24;
const WORD: usize = 12;

/// A line of the story, perhaps with further lines below.
pub fn line(line: &Line, paint: Paint) -> String {
    if let News::Started(started) = &line.news {
        return beginning(started, paint);
    }
    let details = details(&line.news).into_iter().flat_map(|detail| wrapped(&detail)).collect::<Vec<_>>();
    let clock = paint.paint(Style::Dim, &clock(line.at));
    let word = line.news.event();
    let gap = " ".repeat(WORD.saturating_sub(word.len()) + 2);
    let word = paint.paint(style(&line.news), word);
    let indent = " ".repeat(INDENT);
    format!("{clock}  {word}{gap}{}", details.join(&format!("\n{indent}")))
}

fn beginning(started: &Started, paint: Paint) -> String {
    let Started { scenario, seed, cloud } = started;
    let title = paint.paint(Style::Bold, &format!("Story {scenario}, seed {seed}"));
    let mut text =
        format!("{title}: an embedded Kubernetes and an embedded {cloud} in this process, in virtual time.\n");
    if cloud == "AWS" {
        text.push_str("Types, zones and on-demand prices are EC2's; spot prices are plausible, not current.\n");
    }
    text
}

fn style(news: &News) -> Style {
    match news {
        News::Started(_) | News::Applied(_) | News::Changed(_) | News::Deleted(_) | News::Scaled(_) => Style::Bold,
        News::Announced(_) => Style::Bold,
        News::Pending(_) => Style::Yellow,
        News::Decided(_) | News::Nominated(_) => Style::Cyan,
        News::Refused(_) | News::Barren(_) | News::Warned(_) => Style::Red,
        News::Launched(_) | News::Registered(_) | News::Initialized(_) => Style::Blue,
        News::Bound(_) => Style::Green,
        News::Emptied(_) | News::Removing(_) | News::Removed(_) => Style::Magenta,
    }
}

fn details(news: &News) -> Vec<String> {
    match news {
        News::Started(_) => Vec::new(),
        News::Applied(applied) | News::Changed(applied) | News::Deleted(applied) => {
            vec![list(&applied.objects.iter().map(object).collect::<Vec<_>>(), WIDTH - INDENT)]
        }
        News::Scaled(scaled) => vec![format!("{} from {} to {}", object(&scaled.object), scaled.from, scaled.to)],
        News::Pending(pending) => {
            let fit = if pending.pods.len() == 1 { "fits" } else { "fit" };
            vec![format!("{} {fit} no node", pods(pending.pods.len(), &pending.workload))]
        }
        News::Decided(decided) => decision(decided),
        News::Nominated(moved) => {
            vec![format!("{} will go to {}", pods(moved.pods.len(), &moved.workload), moved.place)]
        }
        News::Refused(refused) => {
            let get = if refused.pods.len() == 1 { "gets" } else { "get" };
            let first = format!("{} {get} no node", pods(refused.pods.len(), &refused.workload));
            let none = || vec!["there is no nodepool".to_owned()];
            let reasons = if refused.reasons.is_empty() { none() } else { refused.reasons.clone() };
            [first].into_iter().chain(reasons).collect()
        }
        News::Barren(barren) => {
            vec![format!("nodepool \"{}\" can make no node at all: {}", barren.pool, barren.reason)]
        }
        News::Launched(launched) => launch(launched),
        News::Registered(joined) => registered(joined),
        News::Initialized(joined) => vec![initialized(joined)],
        News::Bound(bound) => {
            let nodes: Vec<&str> = bound.nodes.iter().map(String::as_str).collect();
            let to = counted(&nodes, "nodes");
            vec![format!(
                "{} to {to} after waiting {} at most",
                pods(bound.pods.len(), &bound.workload),
                span(bound.waited)
            )]
        }
        News::Emptied(emptied) => {
            let nodes: Vec<&str> = emptied.nodes.iter().map(String::as_str).collect();
            named(&nodes, "nodes", if nodes.len() == 1 { "has no pods left" } else { "have no pods left" })
        }
        News::Removing(removing) => removal(removing),
        News::Removed(removed) => gone(removed),
        News::Warned(warned) => {
            let about: Vec<String> = warned.about.iter().map(object).collect();
            vec![format!("{}: {}", warned.reason, warned.message), list(&about, WIDTH - INDENT)]
        }
        News::Announced(announced) => [&announced.message].into_iter().chain(&announced.commands).cloned().collect(),
    }
}

fn decision(decided: &Decided) -> Vec<String> {
    let Decided { pool, nodes, pods: counts, requests, types, chosen, runner_up, other_capacity_types } = decided;
    let (nodes, each) = if *nodes == 1 { ("1 node".to_owned(), "") } else { (format!("{nodes} nodes"), " each") };
    let requests = requests.iter().filter(|(name, _)| *name != "pods").map(|(name, amount)| format!("{amount} {name}"));
    let requests = requests.collect::<Vec<_>>().join(", ");
    let requests = if requests.is_empty() { String::new() } else { format!(": {requests}{each}") };
    let others: Vec<String> = runner_up
        .iter()
        .map(|second| format!("runner-up {}", offer(second)))
        .chain(other_capacity_types.iter().map(cheapest))
        .collect();
    let among =
        if *types == 1 { "the only type listed".to_owned() } else { format!("the cheapest of {types} listed types") };
    let mut lines = vec![
        format!("{nodes} of nodepool {pool} for {}{requests}", workloads(counts)),
        format!("{}, {among}", offer(chosen)),
    ];
    if !others.is_empty() {
        lines.push(others.join("; "));
    }
    lines
}

fn cheapest(other: &Offer) -> String {
    format!("{} from {} ({})", other.capacity_type.as_str(), price(other), other.instance_type)
}

fn launch(launched: &Launched) -> Vec<String> {
    let Launched { claims, bought, as_decided, .. } = launched;
    let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
    let mut lines = match claims.as_slice() {
        [claim] => vec![format!("{claim} as {}", offer(bought))],
        several => {
            let each = format!("{} nodeclaims as {} each", several.len(), offer(bought));
            vec![each, list(several, WIDTH - INDENT)]
        }
    };
    if *as_decided == Some(false) {
        lines.push("the cloud's choice among the listed types".to_owned());
    }
    lines
}

fn registered(joined: &Joined) -> Vec<String> {
    let welcome = |machine: &Machine| match &machine.node {
        Some(node) => format!("{} as {node}", machine.claim),
        None => machine.claim.clone(),
    };
    let after = span(joined.after);
    match joined.machines.as_slice() {
        [machine] => vec![format!("{}, {after} after launch", welcome(machine))],
        several => {
            let welcomed: Vec<String> = several.iter().map(welcome).collect();
            vec![format!("{} nodes, {after} after launch at most", several.len()), list(&welcomed, WIDTH - INDENT)]
        }
    }
}

fn initialized(joined: &Joined) -> String {
    let most = if joined.machines.len() == 1 { "" } else { " at most" };
    format!("{}, {} after launch{most}", counted(&names(&joined.machines), "nodes"), span(joined.after))
}

fn removal(removing: &Removing) -> Vec<String> {
    let names = names(&removing.machines);
    let are = if names.len() == 1 { "it is" } else { "they are" };
    let why = match (&removing.reason, removing.pods) {
        (Some(reason), _) => format!("because {are} {reason}"),
        (None, 1) => "with 1 pod".to_owned(),
        (None, pods) => format!("with {pods} pods"),
    };
    named(&names, "nodes", &why)
}

fn gone(removed: &Removed) -> Vec<String> {
    let Removed { machines, used, cost_usd, .. } = removed;
    let all = if machines.len() == 1 { "" } else { " in all" };
    named(&names(machines), "nodes", &format!("after {}{all} for ${cost_usd:.4}", span(*used)))
}

fn names(machines: &[Machine]) -> Vec<&str> {
    machines.iter().map(Machine::name).collect()
}

/// One thing by its name, several by their number, then what is said of them, and their names below.
fn named(names: &[&str], plural: &str, said: &str) -> Vec<String> {
    match names {
        [name] => vec![format!("{name} {said}")],
        several => vec![format!("{} {plural} {said}", several.len()), list(several, WIDTH - INDENT)],
    }
}

/// One thing by its name, several by their number.
fn counted(names: &[&str], plural: &str) -> String {
    match names {
        [name] => (*name).to_owned(),
        several => format!("{} {plural}", several.len()),
    }
}

/// As many names as fit, and how many are left.
fn list(names: &[impl AsRef<str>], width: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let rest = format!(" and {} more", names.len() - index);
        let separator = if index == 0 { "" } else { ", " };
        let is_last = index + 1 == names.len();
        let needed = columns(&text) + separator.len() + columns(name.as_ref()) + if is_last { 0 } else { rest.len() };
        if index > 0 && needed > width {
            return text + &rest;
        }
        text.push_str(separator);
        text.push_str(name.as_ref());
    }
    text
}

fn object(object: &ObjectName) -> String {
    match object.namespace.as_deref() {
        Some(namespace) if namespace != "default" => format!("{} {namespace}/{}", object.kind, object.name),
        _ => format!("{} {}", object.kind, object.name),
    }
}

fn pods(count: usize, workload: &str) -> String {
    format!("{count} {} ({workload})", if count == 1 { "pod" } else { "pods" })
}

fn workloads(counts: &BTreeMap<String, u64>) -> String {
    let total: u64 = counts.values().sum();
    let word = if total == 1 { "pod" } else { "pods" };
    let workloads: Vec<String> = match counts.len() {
        1 => counts.keys().cloned().collect(),
        _ => counts.iter().map(|(workload, count)| format!("{count} {workload}")).collect(),
    };
    format!("{total} {word} ({})", list(&workloads, WIDTH / 2))
}

fn offer(offer: &Offer) -> String {
    let Offer { instance_type, zone, capacity_type, .. } = offer;
    format!("{instance_type} {} in {zone} at {}", capacity_type.as_str(), price(offer))
}

fn price(offer: &Offer) -> String {
    offer.price.map_or_else(|| "an unknown price".to_owned(), |price| price.to_string())
}

/// Hours, minutes and seconds since the beginning.
pub fn clock(at: Duration) -> String {
    let seconds = at.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A duration with as much detail as anybody needs.
fn span(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0..10 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        10..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a detail at spaces so that it stays within the width.
fn wrapped(detail: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in detail.split(' ') {
        let last = lines.last_mut().map_or(0, |line| columns(line));
        if last > 0 && INDENT + last + 1 + columns(word) > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The end.
pub fn summary(summary: &Summary, paint: Paint) -> String {
    let Summary { pending_pods, nodes, node_hours, cost_usd, pod_wait_seconds: wait, totals } = summary;
    let row = |word: &str, text: &str| format!("  {}  {text}\n", paint.paint(Style::Dim, &format!("{word:<6}")));
    let left = |count: usize| match count {
        0 => paint.paint(Style::Green, "0"),
        some => paint.paint(Style::Red, &some.to_string()),
    };
    let title = paint.paint(Style::Bold, "Summary");
    let mut text = format!("\n{title} after {} of virtual time\n", clock(totals.elapsed));
    text.push_str(&row("pods", &format!("{} got a node, {} pending", totals.bound, left(*pending_pods))));
    text.push_str(&row("waited", &format!("p50 {:.1}s, p99 {:.1}s from creation to binding", wait.p50, wait.p99)));
    text.push_str(&row(
        "nodes",
        &format!("{} launched, {} left, {node_hours:.2} node-hours", totals.launched, left(*nodes)),
    ));
    text.push_str(row("cost", &format!("${cost_usd:.4}")).trim_end());
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
