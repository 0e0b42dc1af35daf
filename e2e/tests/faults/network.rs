//! What lies between the controller and the API server.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::weather::{Fate, News, Weather};
use e2e::{Bed, Controller, ControllerSettings, Target, Wait, keep_running, wait_for, wait_until};

use crate::scene::{
    all_run, alone, ask_for_pods, budget_counts, check_claims, during, is_draining, node_is_gone, node_of_any, scale,
    set,
};

e2e::cluster_tests! {
    an_api_server_that_was_away_is_taken_up_where_it_was_left,
    a_storm_passes,
    old_news_mislead_nobody,
    what_was_made_unheard_is_not_made_again,
    what_is_forgotten_is_listed_again,
}

/// Longer than a lease lasts without its holder; minutes in the embedded world, where they cost nothing.
const AWAY: (Duration, Duration) = (Duration::from_secs(17), Duration::from_secs(8 * 60));

/// The API server is away while nodes are made, and again while one is drained. A leader cannot know whether it still
/// leads; it ends, and its successor goes on as if nothing had happened.
async fn an_api_server_that_was_away_is_taken_up_where_it_was_left(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 5).await?;
    let settings = ControllerSettings::default();
    during(keep_running(bed, "controller", &settings), async {
        wait_for(bed.claims(), "a claim", |claims| !claims.is_empty()).await?;
        bed.lose_api_server().await?;
        bed.endure(AWAY.0, AWAY.1).await;
        bed.restore_api_server().await?;
        let pods = all_run(bed, 5).await?;
        check_claims(&outside, 2).await?;

        let node = node_of_any(&pods)?;
        bed.delete(Target::Node(&node), Wait::No).await?;
        is_draining(bed, &pods).await?;
        bed.lose_api_server().await?;
        bed.endure(AWAY.0, AWAY.1).await;
        bed.restore_api_server().await?;
        budget_counts(bed).await?;
        node_is_gone(bed, &node).await?;
        all_run(bed, 5).await?;
        check_claims(&outside, 3).await
    })
    .await
}

/// How long nothing at all is answered, and how many requests a controller that waits longer each time has made by
/// then: it watches some fifteen kinds, each of which it asks for after a fifth of a second, then twice that, and so on
/// up to ten seconds.
const DARKNESS: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(8));
const REQUESTS_MAX: u64 = 300;
/// How long the storm lasts.
const STORM: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(5 * 60));

/// First every request is refused, then most are: throttled, failed, lost on their way. Nobody hammers on a server in
/// trouble, and when it is over all pods run on just as many nodes as they need.
async fn a_storm_passes(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 5).await?;
    let sky = bed.under_sky().await?;
    sky.set(Weather::all(Fate::Fails));
    let controller = bed.start_controller("controller", &alone()).await?;
    wait_until("the controller to try", async || (sky.requests() > 0).then_some(())).await?;
    bed.endure(DARKNESS.0, DARKNESS.1).await;
    let requests = sky.requests();
    ensure!(requests <= REQUESTS_MAX, "{requests} requests were made in vain in {:?}", DARKNESS.0);

    let shares = vec![
        (25, Fate::Throttled),
        (15, Fate::Fails),
        (10, Fate::Unavailable),
        (10, Fate::RequestLost),
        (5, Fate::AnswerLost),
        (5, Fate::Late),
    ];
    sky.set(Weather { seed: 6, shares, news: News::Fresh });
    bed.endure(STORM.0, STORM.1).await;
    let worst = [Fate::Throttled, Fate::Unavailable, Fate::RequestLost];
    let is_felt = async || worst.iter().all(|fate| sky.met(*fate) > 0).then_some(());
    wait_until("the storm to be felt", is_felt).await?;
    sky.clear();
    let pods = all_run(bed, 5).await?;
    check_claims(&outside, 2).await?;

    let node = node_of_any(&pods)?;
    sky.set(Weather::all(Fate::Throttled));
    bed.delete(Target::Node(&node), Wait::No).await?;
    bed.endure(Duration::from_secs(3), Duration::from_secs(60)).await;
    sky.clear();
    node_is_gone(bed, &node).await?;
    all_run(bed, 5).await?;
    check_claims(&outside, 3).await?;
    controller.stop().await
}

/// How old news are: older than a batch of pods waits for more, and older than an eviction takes.
const STALE: Duration = Duration::from_secs(5);

/// Every watch tells what was seconds ago, and breaks now and then. The controller acts on it all the same, and neither
/// makes a node twice nor ends a pod too many.
async fn old_news_mislead_nobody(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 5).await?;
    let sky = bed.under_sky().await?;
    let controller = bed.start_controller("controller", &alone()).await?;
    sky.set(Weather { news: News::Late(STALE), ..Weather::default() });
    wait_for(bed.claims(), "a claim", |claims| !claims.is_empty()).await?;
    sky.cut_watches();
    let pods = all_run(bed, 5).await?;
    check_claims(&outside, 2).await?;

    let node = node_of_any(&pods)?;
    bed.delete(Target::Node(&node), Wait::No).await?;
    is_draining(bed, &pods).await?;
    sky.cut_watches();
    node_is_gone(bed, &node).await?;
    all_run(bed, 5).await?;
    check_claims(&outside, 3).await?;
    controller.stop().await
}

/// Every third answer is lost although what was asked for is done, and the watches tell of it seconds later: the controller
/// has made claims of which it does not know. It makes them once.
async fn what_was_made_unheard_is_not_made_again(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 5).await?;
    let sky = bed.under_sky().await?;
    let controller = bed.start_controller("controller", &alone()).await?;
    sky.set(Weather { seed: 3, shares: vec![(33, Fate::AnswerLost)], news: News::Late(STALE) });
    all_run(bed, 5).await?;
    ensure!(sky.met(Fate::AnswerLost) > 0, "no answer was lost");
    check_claims(&outside, 2).await?;
    sky.clear();
    all_run(bed, 5).await?;
    check_claims(&outside, 2).await?;
    controller.stop().await
}

/// What happened while all watches were broken is forgotten when they come back: everything is listed again, and work
/// goes on from there.
async fn what_is_forgotten_is_listed_again(bed: &impl Bed) -> Result<()> {
    let outside = set(bed).await?;
    ask_for_pods(bed, 3).await?;
    let sky = bed.under_sky().await?;
    let controller = bed.start_controller("controller", &alone()).await?;
    all_run(bed, 3).await?;

    sky.set(Weather::all(Fate::RequestLost));
    sky.cut_watches();
    scale(bed, 6).await?;
    bed.compact().await?;
    sky.clear();
    all_run(bed, 6).await?;
    check_claims(&outside, 2).await?;
    // In the embedded world nothing stands in the way that could see it.
    let is_seen = bed.kubectl(&["version", "--client"])?.is_some();
    ensure!(!is_seen || sky.expired() > 0, "no watch was told that its time is forgotten");
    controller.stop().await
}
