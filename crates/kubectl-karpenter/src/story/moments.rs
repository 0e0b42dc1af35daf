//! Moments: equal things that happen within two seconds are told together.

use std::collections::VecDeque;
use std::time::Duration;

use super::news::{Line, News};

/// Long enough for the pods of one workload to be created and judged, shorter than a batch and its solve.
const MOMENT: Duration = Duration::from_secs(2);

/// Lines that may still grow, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    open: VecDeque<Line>,
}

impl Moments {
    /// Adds to a line of the same moment, or begins another one.
    pub(crate) fn add(&mut self, at: Duration, news: News) {
        let mut news = news;
        for line in self.open.iter_mut().rev().take_while(|line| at.saturating_sub(line.at) <= MOMENT) {
            match line.news.absorb(news) {
                None => return,
                Some(same) => news = same,
            }
        }
        // Plans are read a little after they were made; their lines still stand in the order of time.
        let position = self.open.partition_point(|line| line.at <= at);
        self.open.insert(position, Line { at, news });
    }

    /// Lines that cannot grow any more, in order.
    pub(crate) fn closed(&mut self, now: Duration) -> Vec<Line> {
        let count = self.open.partition_point(|line| line.at + MOMENT < now);
        self.open.drain(..count).collect()
    }

    /// When the next line can be told.
    pub(crate) fn next_closing(&self) -> Option<Duration> {
        self.open.front().map(|line| line.at + MOMENT + Duration::from_millis(1))
    }

    /// All lines, grown or not.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        self.open.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::PodsOf;

    fn pending(workload: &str, pod: &str) -> News {
        News::Pending(PodsOf { workload: workload.to_owned(), pods: vec![pod.to_owned()] })
    }

    #[test]
    fn equal_things_of_one_moment_are_one_line() {
        let mut moments = Moments::default();
        for (millis, workload, pod) in [(0, "a", "a-0"), (10, "b", "b-0"), (1900, "a", "a-1"), (2100, "a", "a-2")] {
            moments.add(Duration::from_millis(millis), pending(workload, pod));
        }
        assert_eq!(moments.next_closing(), Some(Duration::from_millis(2001)));
        assert_eq!(moments.closed(Duration::from_millis(2000)), Vec::new());
        let told: Vec<(u128, News)> =
            moments.finish().into_iter().map(|line| (line.at.as_millis(), line.news)).collect();
        let both = News::Pending(PodsOf { workload: "a".to_owned(), pods: vec!["a-0".to_owned(), "a-1".to_owned()] });
        assert_eq!(told, [(0, both), (10, pending("b", "b-0")), (2100, pending("a", "a-2"))]);
    }
}
