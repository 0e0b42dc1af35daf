//! How long the controllers are busy with each pass, in real time.
//!
//! The controllers put every pass into a span called `reconcile` that names its controller. A pass is busy while its span
//! is entered: waiting for the API server does not count, solving does, because worlds solve inline.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::world::PlanLog;

const SPAN: &str = "reconcile";
const PROVISIONER: &str = "provisioner";

/// Passes that ended since somebody asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passes(Arc<Mutex<Taken>>);

/// What passes took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// Provisioning passes in which a plan was made, each in milliseconds: snapshot, plan, and all that follows from it
    /// until its claims are asked for.
    pub(crate) decisions: Vec<f64>,
    /// All passes, by controller: how many, and how long together.
    pub(crate) controllers: BTreeMap<String, (u64, Duration)>,
}

impl Passes {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The passes since the last call.
    pub(crate) fn take(&self) -> Taken {
        std::mem::take(&mut self.lock())
    }

    /// Somebody who listens to spans for as long as it is the default.
    pub(crate) fn watch(&self, elapsed: fn() -> Duration, plans: PlanLog) -> impl Subscriber + Send + Sync {
        use tracing_subscriber::layer::SubscriberExt;
        tracing_subscriber::registry().with(Stopwatch { passes: self.clone(), elapsed, plans })
    }
}

struct Stopwatch {
    passes: Passes,
    elapsed: fn() -> Duration,
    plans: PlanLog,
}

/// A pass under way.
struct Pass {
    controller: String,
    plans_before: u64,
    entered: Duration,
    busy: Duration,
}

struct ControllerName(String);

impl Visit for ControllerName {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "controller" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Stopwatch {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_span() && metadata.name() == SPAN
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut name = ControllerName(String::new());
        attributes.record(&mut name);
        let pass =
            Pass { controller: name.0, plans_before: self.plans.made(), entered: Duration::ZERO, busy: Duration::ZERO };
        span.extensions_mut().insert(pass);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(pass) = span.extensions_mut().get_mut::<Pass>() {
            pass.entered = (self.elapsed)();
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(pass) = span.extensions_mut().get_mut::<Pass>() {
            pass.busy += (self.elapsed)().saturating_sub(pass.entered);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(pass) = span.extensions_mut().remove::<Pass>() else { return };
        let mut taken = self.passes.lock();
        if pass.controller == PROVISIONER && self.plans.made() > pass.plans_before {
            taken.decisions.push(pass.busy.as_secs_f64() * 1e3);
        }
        let (count, busy) = taken.controllers.entry(pass.controller).or_default();
        *count += 1;
        *busy += pass.busy;
    }
}
