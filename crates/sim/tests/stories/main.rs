//! The server from outside: requests in, answers and watch events out, told as stories.

#![allow(clippy::unwrap_used)]

mod clients;
mod collecting;
mod deleting;
mod disrupting;
mod kinds;
mod objects;
mod reading;
mod story;
mod watching;
