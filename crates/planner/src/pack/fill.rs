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
    /// By filler and resource, the most that a unit of it is worth to this one or any later.
    rates: Vec<f64>,
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
        let worths = fillers.iter().flat_map(|filler| std::iter::repeat_n(filler.worth, width));
        let mut rates: Vec<f64> = demands.iter().zip(worths).map(|(demand, worth)| rate(*demand, worth)).collect();
        for later in (width..rates.len()).rev() {
            rates[later - width] = rates[later - width].max(rates[later]);
        }
        let begun = &work.shapes[first];
        let first = (&*begun.demand, work.worth[first], begun.crowd);
        Self { width, fillers, demands, rates, first, free: Vec::with_capacity(width) }
    }

    /// What the pods are worth that a node of a type with some room would hold, filled in turn. Anything below `wanted`
    /// is told as less than that.
    pub(super) fn value_on(&mut self, candidate: Candidate, room: &[i64], wanted: f64) -> f64 {
        let Self { width, fillers, demands, rates, first: (begun, worth, crowd), free } = self;
        free.clear();
        free.extend(room.iter().zip(*begun).map(|(room, demand)| room - demand));
        let (mut value, mut crowded) = (*worth, Vec::from_iter(*crowd));
        let mut later = demands.as_slice();
        for (position, filler) in fillers.iter().enumerate() {
            let demand;
            (demand, later) = later.split_at(*width);
            if !holds(free, demand) || filler.menu.price_of(candidate.kind).is_none_or(|own| own > candidate.price) {
                continue;
            }
            let mut pods = copies(demand, free).min(filler.waiting);
            if let Some(crowd) = filler.crowd {
                pods = pods.min(i64::from(!crowded.contains(&crowd)));
                crowded.push(crowd);
            }
            add_times(free, demand, -pods);
            value += filler.worth * pods as f64;
            // No more than what is left of the scarcest resource is worth to pods that make most of it. What none is left
            // of and somebody asks none of says nothing, and is not a number.
            let of_resource = |(free, rate): (&i64, &f64)| (*free).max(0) as f64 * rate;
            let most =
                free.iter().zip(&rates[(position + 1) * *width..]).map(of_resource).fold(f64::INFINITY, f64::min);
            if value + most < wanted {
                break;
            }
        }
        value
    }
}

/// What a unit of a resource is worth to pods that ask for so much of it; without end where they ask for none.
fn rate(demand: i64, worth: f64) -> f64 {
    if worth <= 0.0 {
        0.0
    } else if demand <= 0 {
        f64::INFINITY
    } else {
        worth / demand as f64
    }
}
