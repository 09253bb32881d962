//! The forest's time, which is the latest time of any arrival so far, and how long nodes and content
//! hashes live.

/// An unknown time, which is earlier than any other.
pub const NO_TIME: i64 = i64::MIN;

const DAY_MS: i64 = 86_400_000;

/// How long nodes live, in milliseconds; both values are at least 1.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    /// How long a node lives after it was last seen.
    pub retention_ms: i64,
    /// The time when a node was last seen is rounded up to a multiple of this, so that most articles do not rewrite
    /// the nodes of their cluster.
    pub granularity_ms: i64,
}

impl Aging {
    /// Returns the number of the retention period that contains a time.
    pub fn period(&self, time_ms: i64) -> u64 {
        if time_ms == NO_TIME { 0 } else { time_ms.div_euclid(self.retention_ms) as u64 }
    }

    /// Rounds a time up to the granularity.
    pub fn round_up(&self, time_ms: i64) -> i64 {
        if time_ms == NO_TIME {
            return NO_TIME;
        }
        let steps =
            time_ms.div_euclid(self.granularity_ms) + i64::from(time_ms.rem_euclid(self.granularity_ms) > 0);
        steps * self.granularity_ms
    }
}

/// The state of a forest between two arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The number of the last arrival.
    pub seq: i64,
    /// The forest's time, in milliseconds since 1970.
    pub time_ms: i64,
    /// The first known time; nodes created before any time was known are treated as seen at this time.
    pub origin_ms: i64,
}

impl State {
    /// Advances to the next arrival and returns its time. A time that is unknown, or more than a day after `now_ms`,
    /// is replaced by the forest's time.
    pub fn advance(&mut self, time_ms: i64, now_ms: i64) -> i64 {
        self.seq += 1;
        let counts = time_ms != NO_TIME && time_ms <= now_ms.saturating_add(DAY_MS);
        if counts {
            self.time_ms = self.time_ms.max(time_ms);
        }
        if self.origin_ms == NO_TIME {
            self.origin_ms = self.time_ms;
        }
        if counts { time_ms } else { self.time_ms }
    }

    /// Returns the minimum `seen_ms` of a live node or content hash. It is [`NO_TIME`] while no time is
    /// known, and until nodes created before the first known time expire.
    pub fn live_since_ms(&self, aging: &Aging) -> i64 {
        if self.time_ms == NO_TIME {
            return NO_TIME;
        }
        let since_ms = self.time_ms.saturating_sub(aging.retention_ms).saturating_add(1);
        if aging.round_up(self.origin_ms) >= since_ms { NO_TIME } else { since_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_far_future_times_are_ignored() {
        let aging = Aging { retention_ms: 100, granularity_ms: 10 };
        assert_eq!([-11, -10, 0, 1, 10].map(|time| aging.round_up(time)), [-10, -10, 0, 10, 10]);
        let mut state = State { seq: 0, time_ms: NO_TIME, origin_ms: NO_TIME };
        state.advance(DAY_MS + 6, 5);
        state.advance(NO_TIME, 5);
        assert_eq!(state, State { seq: 2, time_ms: NO_TIME, origin_ms: NO_TIME });
        state.advance(1, 5);
        state.advance(109, 5);
        assert_eq!([state.advance(7, 5), state.advance(DAY_MS + 6, 5)], [7, 109]);
        assert_eq!(state, State { seq: 6, time_ms: 109, origin_ms: 1 });
        assert_eq!(state.live_since_ms(&aging), NO_TIME);
        state.advance(110, 5);
        assert_eq!(state.live_since_ms(&aging), 11);
    }
}
