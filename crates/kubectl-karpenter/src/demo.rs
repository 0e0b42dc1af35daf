//! `demo`: plays a story on an embedded cluster and tells it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::time::Duration;

use sim::Subscription;
use tokio::sync::mpsc;
use world::fault::PlannedFaults;
use world::{Action, Blows, CloudKind, ControllerSettings, Player, Scenario, World, WorldSettings, sleep_until};

use crate::arguments::DemoArguments;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::progress::Progress;
use crate::serve::{self, Door};
use crate::story::{Announced, Line, News, Started, Teller};
use crate::summary::Summary;
use crate::{json, text};

/// The story that is played if nobody asks for another one.
const BUILT_IN: &str = include_str!("../../../scenarios/inflate.yaml");

/// The name of the controller's process, and how long it takes to come back after a crash.
const CONTROLLER: &str = "karpenter";
const RESTART_PAUSE: Duration = Duration::from_secs(5);

/// Plays and tells a story. The exit code says whether it ended well.
pub fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let scenario = read_scenario(arguments.scenario.as_deref())?;
    let door = arguments.serve.then(|| Door::open(arguments)).transpose()?;
    let output = Output { is_json: arguments.json, paint: Paint::for_output(|name| std::env::var(name).ok()) };
    let story = |door| perform(&scenario, arguments.seed, output, door);
    let summary = match door {
        Some(door) => serve::runtime(arguments.seed)?.block_on(story(Some(door))),
        None => world::run_in_virtual_time(arguments.seed, story(None))
            .unwrap_or_else(|error| Err(serve::no_runtime(&error))),
    }?;
    let ends_empty = arguments.scenario.is_none();
    let is_well = summary.pending_pods == 0 && (summary.nodes == 0 || !ends_empty);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read_scenario(file: Option<&Path>) -> Result<Scenario, Failure> {
    let (name, text) = match file {
        None => ("the built-in story".to_owned(), BUILT_IN.to_owned()),
        Some(file) => {
            let name = format!("`{}`", file.display());
            let unreadable = |error: std::io::Error| {
                let hint = "give the path of a YAML file; docs/scenarios.md shows what belongs in it";
                Failure::misuse(format!("cannot read {name}: {error}"), Some(hint))
            };
            let text = std::fs::read_to_string(file).map_err(unreadable)?;
            (name, text)
        }
    };
    Scenario::parse(&text).map_err(|error| Failure::misuse(format!("{name}: {error}"), error.hint()))
}

/// Where the story goes.
#[derive(Clone, Copy, Debug)]
struct Output {
    is_json: bool,
    paint: Paint,
}

impl Output {
    fn line(self, line: &Line) -> Result<(), Failure> {
        self.write(&if self.is_json { json::line(line) } else { text::line(line, self.paint) })
    }

    fn summary(self, summary: &Summary) -> Result<(), Failure> {
        self.write(&if self.is_json { json::summary(summary) } else { text::summary(summary, self.paint) })
    }

    fn write(self, text: &str) -> Result<(), Failure> {
        let mut output = std::io::stdout().lock();
        let written = writeln!(output, "{text}").and_then(|()| output.flush());
        written.map_err(|error| Failure::trouble(format!("cannot write the story: {error}")))
    }
}

/// Lets a story happen, tells it, and goes on through the door if there is one.
async fn perform(scenario: &Scenario, seed: u64, output: Output, door: Option<Door>) -> Result<Summary, Failure> {
    let mut settings = WorldSettings::new(seed, scenario.cloud);
    // The story is told from changes as they happen; nobody asks for calls of the past.
    settings.keep_history = false;
    let world = World::start(settings);
    let (announcer, announcements) = mpsc::unbounded_channel();
    let mut audience = Audience {
        world: &world,
        news: world.server().subscribe(),
        announcements,
        teller: Teller::default(),
        output,
        progress: Progress::start("playing", scenario.end),
    };
    audience.announce(started(scenario, seed));
    let mut kept = pin!(keep_controller(&world, scenario));
    let story = async {
        let blows = Blows::new(&world, &[CONTROLLER]);
        tokio::select! {
            biased;
            played = play_steps(&world, scenario, announcer) => played,
            // Blows that are over leave the rest of the story to be played.
            never = async { blows.strike_all(&scenario.faults).await; std::future::pending().await } => never,
        }
    };
    audience.tell_while(first(story, kept.as_mut())).await?;
    let summary = audience.finish()?;
    if let Some(door) = door {
        audience.announce(door.announcement(scenario));
        audience.tell_while(first(door.serve(world.server()), kept.as_mut())).await?;
    }
    Ok(summary)
}

fn started(scenario: &Scenario, seed: u64) -> News {
    let cloud = match scenario.cloud {
        CloudKind::Aws => "AWS",
        CloudKind::Kwok => "KWOK",
    };
    News::Started(Started { scenario: scenario.name.clone(), seed, cloud: cloud.to_owned() })
}

type Outcome = Result<(), Failure>;

/// Does some work as long as the controller can be kept running.
async fn first(work: impl Future<Output = Outcome>, kept: Pin<&mut impl Future<Output = Outcome>>) -> Outcome {
    tokio::select! {
        biased;
        done = work => done,
        failed = kept => failed,
    }
}

/// Keeps the controller running, with the settings and the faults of the story. Ends only if it cannot be started.
async fn keep_controller(world: &World, scenario: &Scenario) -> Outcome {
    let settings = ControllerSettings {
        environment: scenario.settings.clone().into_iter().collect(),
        meddler: Some(PlannedFaults::new(&scenario.faults)),
        ..ControllerSettings::default()
    };
    let kept = world.keep_running(&[CONTROLLER], &settings, RESTART_PAUSE).await;
    kept.map_err(|error| {
        Failure::misuse(format!("the controller does not start: {error:#}"), Some("check `settings` in the story"))
    })
}

/// Does what the story says, each step at its time, and waits for the end.
async fn play_steps(world: &World, scenario: &Scenario, announcer: mpsc::UnboundedSender<News>) -> Outcome {
    let player = Player::new(world);
    for step in &scenario.steps {
        sleep_until(world.clock(), step.at).await;
        if let Some(news) = announcement(&step.action) {
            // The receiver lives as long as the story.
            let _ = announcer.send(news);
        }
        let performed = player.perform(&step.action).await;
        performed.map_err(|error| Failure::trouble(format!("at {}: {error:#}", text::clock(step.at))))?;
    }
    sleep_until(world.clock(), scenario.end).await;
    Ok(())
}

/// What the cloud does by itself is seen in objects only later, if at all.
fn announcement(action: &Action) -> Option<News> {
    let (event, message) = match action {
        Action::Interrupt => ("interruption", "the cloud takes a spot instance back, in two minutes"),
        Action::Crash => ("crash", "an instance ends without a warning"),
        Action::Apply(_) | Action::Scale(_) | Action::Delete(_) | Action::DeleteAny(_) => return None,
    };
    let (message, commands, fields) = (message.to_owned(), Vec::new(), BTreeMap::new());
    Some(News::Announced(Announced { event, message, commands, fields }))
}

/// Who watches a world and tells of it.
struct Audience<'a> {
    world: &'a World,
    news: Subscription,
    announcements: mpsc::UnboundedReceiver<News>,
    teller: Teller,
    output: Output,
    progress: Progress,
}

impl Audience<'_> {
    fn now(&self) -> Duration {
        self.world.clock().elapsed()
    }

    fn announce(&mut self, news: News) {
        self.teller.announce(self.now(), news);
    }

    /// Tells what happens until the work is done.
    async fn tell_while(&mut self, work: impl Future<Output = Outcome>) -> Outcome {
        let mut work = pin!(work);
        loop {
            let (clock, due) = (self.world.clock(), self.teller.next_told());
            // News come first, so that all of a moment is known before time goes on.
            tokio::select! {
                biased;
                Some(event) = self.news.next() => {
                    self.read_plans();
                    self.teller.change(clock.elapsed(), &event);
                }
                Some(news) = self.announcements.recv() => self.announce(news),
                done = &mut work => return done,
                () = sleep_until(clock, due.unwrap_or_default()), if due.is_some() => self.read_plans(),
            }
            self.tell(|teller, now| teller.told(now))?;
        }
    }

    fn read_plans(&mut self) {
        let beginning = self.world.clock().beginning();
        for recorded in self.world.plans().take() {
            let at = recorded.at.duration_since(beginning).try_into().unwrap_or_default();
            self.teller.plan(at, &recorded.snapshot, &recorded.plan);
        }
    }

    /// Tells the rest of the story, and its summary.
    fn finish(&mut self) -> Result<Summary, Failure> {
        self.read_plans();
        self.tell(|teller, _| teller.finish())?;
        self.progress = Progress::none();
        let summary = self.teller.summary(self.now());
        self.output.summary(&summary)?;
        Ok(summary)
    }

    fn tell(&mut self, lines: impl FnOnce(&mut Teller, Duration) -> Vec<Line>) -> Outcome {
        let now = self.now();
        self.progress.reached(now);
        let lines = lines(&mut self.teller, now);
        if lines.is_empty() {
            return Ok(());
        }
        let output = self.output;
        self.progress.aside(|| lines.iter().try_for_each(|line| output.line(line)))
    }
}
