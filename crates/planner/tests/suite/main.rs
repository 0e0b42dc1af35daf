//! What the planner promises, through its public interface only.

#[cfg(test)]
mod checker;
#[cfg(test)]
mod daemons;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod placement;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenario;
