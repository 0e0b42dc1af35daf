//! What fills up a node that is begun, tried on one type after the other.

use super::work::Work;
use crate::amounts::{add_times, copies, holds};
use crate::menus::{Candidate, Menu, PoolView};

/// Pods of one shape that may join the node.
struct Filler<'p> {
    waiting: i64,
    worth: f64,
    menu: &'p Menu,
    crowd: Option<usize>,
}

/// Shapes with pods that wait, in the order in which they join a node that is begun with the first of them. Hundreds of
/// types are asked about the same shapes, so that what they ask for lies in a row.
pub(super) struct Fillers<'p> {
    width: usize,
    fillers: Vec<Filler<'p>>,
    /// By filler.
    demands: Vec<i64>,
    /// By filler, the least that it or any later one asks for of each resource.
    least: Vec<i64>,
    /// What the pod asks for that the node is begun with, what it is worth, and its crowd.
    first: (&'p [i64], f64, Option<usize>),
    /// What is left on the node that is tried.
    free: Vec<i64>,
}

impl<'p> Fillers<'p> {
    pub(super) fn new(pool: &'p PoolView<'_>, work: &'p Work, first: usize, others: &[usize]) -> Self {
        let width = work.shapes[first].demand.len();
        let (mut fillers, mut demands) = (Vec::with_capacity(others.len()), Vec::with_capacity(others.len() * width));
        for index in others {
            let shape = &work.shapes[*index];
            let waiting = shape.remaining - i64::from(*index == first);
            if waiting != 0 {
                let (worth, menu) = (work.worth[*index], pool.menu(shape.menu));
                fillers.push(Filler { waiting, worth, menu, crowd: shape.crowd });
                demands.extend_from_slice(&shape.demand);
            }
        }
        let mut least = demands.clone();
        for later in (width..least.len()).rev() {
            least[later - width] = least[later - width].min(least[later]);
        }
        let begun = &work.shapes[first];
        let first = (&*begun.demand, work.worth[first], begun.crowd);
        Self { width, fillers, demands, least, first, free: Vec::with_capacity(width) }
    }

    /// What the pods are worth that a node of a type with some room would hold, filled in turn.
    pub(super) fn value_on(&mut self, candidate: Candidate, room: &[i64]) -> f64 {
        let Self { width, fillers, demands, least, first: (begun, worth, crowd), free } = self;
        free.clear();
        free.extend(room.iter().zip(*begun).map(|(room, demand)| room - demand));
        let (mut value, mut crowded) = (*worth, Vec::from_iter(*crowd));
        for (position, filler) in fillers.iter().enumerate() {
            let own = position * *width..(position + 1) * *width;
            let demand = &demands[own.clone()];
            if !holds(free, demand) {
                // Neither this nor any later pod is as small as what is left.
                if !holds(free, &least[own]) {
                    break;
                }
                continue;
            }
            if filler.menu.price_of(candidate.kind).is_none_or(|own| own > candidate.price) {
                continue;
            }
            let mut pods = copies(demand, free).min(filler.waiting);
            if let Some(crowd) = filler.crowd {
                pods = pods.min(i64::from(!crowded.contains(&crowd)));
                crowded.push(crowd);
            }
            add_times(free, demand, -pods);
            value += filler.worth * pods as f64;
        }
        value
    }
}
