//! What goes into the state and what comes out, as text.

#[cfg(test)]
mod bound;
#[cfg(test)]
mod buffers;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod daemons;
#[cfg(test)]
mod default_spread;
#[cfg(test)]
mod demand;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod overlays;
#[cfg(test)]
mod places;
#[cfg(test)]
mod pools;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod script;
#[cfg(test)]
mod volumes;
