//! What the planner promises, through its public interface only.

#[cfg(test)]
mod agreed;
#[cfg(test)]
mod brute;
#[cfg(test)]
mod chance;
#[cfg(test)]
mod checker;
#[cfg(test)]
mod daemons;
#[cfg(test)]
mod exhaustive;
#[cfg(test)]
mod going;
#[cfg(test)]
#[allow(dead_code, reason = "other tests use other parts of the language")]
#[path = "../language/mod.rs"]
mod language;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod money;
#[cfg(test)]
mod placement;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod room;
#[cfg(test)]
mod scenario;
#[cfg(test)]
mod topology;
mod wishes;
