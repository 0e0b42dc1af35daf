//! A line on standard error for whatever takes longer than a second, where a person looks at a terminal.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::text::clock;

/// Silence that is long enough to make a person wonder.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);
/// To the beginning of the line, and everything on it away.
const CLEAR: &str = "\r\x1b[2K";

#[derive(Debug)]
struct State {
    what: String,
    now: Duration,
    end: Duration,
    last_output: Instant,
    is_shown: bool,
    is_over: bool,
}

/// Shows that something is going on. Ends with this value.
#[derive(Debug)]
pub struct Progress {
    state: Option<Arc<Mutex<State>>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Begins, if standard error is a terminal.
    pub fn start(what: &str, end: Duration) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { state: None };
        }
        let state = State {
            what: what.to_owned(),
            now: Duration::ZERO,
            end,
            last_output: Instant::now(),
            is_shown: false,
            is_over: false,
        };
        let state = Arc::new(Mutex::new(state));
        let drawn = Arc::clone(&state);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(REDRAW);
                let mut state = lock(&drawn);
                if state.is_over {
                    return;
                }
                if state.last_output.elapsed() > PATIENCE {
                    state.is_shown = true;
                    let State { what, now, end, .. } = &*state;
                    write(&format!("{CLEAR}  {what}: {} of {}", clock(*now), clock(*end)));
                }
            }
        });
        Self { state: Some(state) }
    }

    /// Nothing to show.
    pub fn none() -> Self {
        Self { state: None }
    }

    /// The story has come this far.
    pub fn reached(&self, now: Duration) {
        if let Some(state) = &self.state {
            lock(state).now = now;
        }
    }

    /// Does something that writes lines, without the progress line in between.
    pub fn aside<T>(&self, write_lines: impl FnOnce() -> T) -> T {
        let Some(state) = &self.state else { return write_lines() };
        let mut state = lock(state);
        if std::mem::take(&mut state.is_shown) {
            write(CLEAR);
        }
        state.last_output = Instant::now();
        write_lines()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.aside(|| ());
        if let Some(state) = &self.state {
            lock(state).is_over = true;
        }
    }
}

fn write(text: &str) {
    let mut output = std::io::stderr().lock();
    // Nobody is served by an error about a line that only says "still working".
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}
