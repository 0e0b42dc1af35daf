//! What holds whatever is asked.

use std::collections::{BTreeMap, BTreeSet};

use aws_sim::{
    AllocationStrategy, Aws, AwsEvent, AwsSettings, CapacityPlan, CapacityType, EventKind, FleetRequest, InstanceId,
    InstanceState, PoolKey,
};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::market::{ZONES, at, region, request};

const TYPES: [&str; 4] = ["large", "medium", "small", "steady"];

/// Something that is done to AWS.
#[derive(Clone, Debug)]
enum Deed {
    Launch { spot: bool, count: u32, token: Option<u8>, pools: Vec<(usize, usize)> },
    Terminate { nth: usize },
    Interrupt { nth: usize },
    Withdraw { kind: usize, zone: usize },
    Wait { seconds: i64 },
}

fn deed() -> impl Strategy<Value = Deed> {
    let pools = vec((0..TYPES.len(), 0..ZONES.len()), 1..5);
    let token = prop_oneof![Just(None), any::<u8>().prop_map(|token| Some(token % 4))];
    prop_oneof![
        4 => (any::<bool>(), 1_u32..4, token, pools)
            .prop_map(|(spot, count, token, pools)| Deed::Launch { spot, count, token, pools }),
        2 => (0_usize..40).prop_map(|nth| Deed::Terminate { nth }),
        1 => (0_usize..40).prop_map(|nth| Deed::Interrupt { nth }),
        1 => (0..TYPES.len(), 0..ZONES.len()).prop_map(|(kind, zone)| Deed::Withdraw { kind, zone }),
        3 => (0_i64..200).prop_map(|seconds| Deed::Wait { seconds }),
    ]
}

fn fleet(spot: bool, count: u32, token: Option<u8>, pools: &[(usize, usize)]) -> FleetRequest {
    let words: Vec<String> = pools.iter().map(|(kind, zone)| format!("{}/{}", TYPES[*kind], ZONES[*zone])).collect();
    let (strategy, capacity_type) = if spot {
        (AllocationStrategy::PriceCapacityOptimized, CapacityType::Spot)
    } else {
        (AllocationStrategy::LowestPrice, CapacityType::OnDemand)
    };
    let client_token = token.map(|token| token.to_string());
    FleetRequest { count, client_token, ..request(strategy, capacity_type, &words.join(" ")) }
}

fn scarce(seed: u64) -> AwsSettings {
    let capacity = CapacityPlan { plenty_min: 0, plenty_max: 4, rules: Vec::new() };
    AwsSettings { capacity, ..AwsSettings::new(seed, "us-east-1", ZONES) }
}

/// Does everything in turn; all events, and every answer to a token.
fn carry_out(aws: &mut Aws, deeds: &[Deed]) -> (Vec<AwsEvent>, BTreeMap<String, Vec<Vec<InstanceId>>>) {
    let mut seconds = 0;
    let mut events = Vec::new();
    let mut by_token: BTreeMap<String, Vec<Vec<InstanceId>>> = BTreeMap::new();
    for deed in deeds {
        let nth = |aws: &Aws, nth: usize| aws.instances().nth(nth).map(|instance| instance.id.clone());
        match deed {
            Deed::Launch { spot, count, token, pools } => {
                let answer = aws.create_fleet(at(seconds), &fleet(*spot, *count, *token, pools));
                if let (Ok(answer), Some(token)) = (answer, token) {
                    let ids = answer.instances.into_iter().map(|instance| instance.id).collect();
                    by_token.entry(token.to_string()).or_default().push(ids);
                }
            }
            Deed::Terminate { nth: place } => {
                let id = nth(aws, *place);
                id.into_iter().for_each(|id| drop(aws.terminate_instances(at(seconds), &[id])));
            }
            Deed::Interrupt { nth: place } => {
                let id = nth(aws, *place);
                id.into_iter().for_each(|id| drop(aws.interrupt(at(seconds), &id)));
            }
            Deed::Withdraw { kind, zone } => {
                let pool = PoolKey::new(TYPES[*kind], ZONES[*zone], CapacityType::Spot);
                aws.withdraw_capacity(at(seconds), &pool, 1);
            }
            Deed::Wait { seconds: wait } => {
                seconds += wait;
                events.extend(aws.advance(at(seconds)));
            }
        }
    }
    while let Some(next) = aws.next_change() {
        events.extend(aws.advance(next));
    }
    (events, by_token)
}

fn state_of(event: &AwsEvent) -> Option<InstanceState> {
    match event.kind {
        EventKind::StateChanged(state) => Some(state),
        EventKind::InterruptionWarning { .. } | EventKind::RebalanceRecommendation | EventKind::Forgotten => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_are_orderly(seed in any::<u64>(), deeds in vec(deed(), 1..40)) {
        let mut aws = region(scarce(seed));
        let (events, by_token) = carry_out(&mut aws, &deeds);
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        let born: Vec<&InstanceId> =
            events.iter().filter(|event| state_of(event) == Some(InstanceState::Pending)).map(|event| &event.instance).collect();
        prop_assert_eq!(born.iter().collect::<BTreeSet<_>>().len(), born.len(), "ids are unique");
        for id in born {
            let states: Vec<InstanceState> =
                events.iter().filter(|event| event.instance == *id).filter_map(state_of).collect();
            prop_assert!(states.is_sorted() && states.iter().collect::<BTreeSet<_>>().len() == states.len());
        }
        for answers in by_token.values() {
            prop_assert!(answers.iter().all(|answer| *answer == answers[0]), "one token, one set of instances");
        }
    }

    #[test]
    fn pools_give_only_what_they_have(seed in any::<u64>(), deeds in vec(deed(), 1..40)) {
        let at_start = region(scarce(seed));
        let mut aws = region(scarce(seed));
        carry_out(&mut aws, &deeds);
        let mut held: BTreeMap<PoolKey, u32> = BTreeMap::new();
        aws.instances().filter(|instance| instance.is_alive()).for_each(|one| *held.entry(one.pool()).or_default() += 1);
        for (pool, held) in held {
            prop_assert!(held + aws.free_capacity(&pool) <= at_start.free_capacity(&pool), "{pool}");
        }
    }

    #[test]
    fn one_seed_gives_one_history(seed in any::<u64>(), deeds in vec(deed(), 1..30)) {
        let (mut one, mut other) = (region(scarce(seed)), region(scarce(seed)));
        prop_assert_eq!(carry_out(&mut one, &deeds), carry_out(&mut other, &deeds));
        prop_assert_eq!(one.calls(), other.calls());
        prop_assert_eq!(one.bill(at(100_000)), other.bill(at(100_000)));
    }
}
