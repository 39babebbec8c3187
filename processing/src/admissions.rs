use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use kstate_api::Offset;

/// Times are kept this far apart at least: ages are for people and alarms, and records are many.
const STEP: Duration = Duration::from_millis(10);

/// When the records of a partition were taken, to [`STEP`].
#[derive(Debug, Default)]
pub(crate) struct Admissions {
    /// The records from this offset on were taken at this time or after it, and before the next one's.
    taken: VecDeque<(Offset, Instant)>,
}

impl Admissions {
    /// The record at `offset` is taken, while `lowest` is the lowest in flight.
    #[inline]
    pub(crate) fn admit(&mut self, offset: Offset, now: Instant, lowest: Option<Offset>) {
        if self.taken.back().is_none_or(|(_, last)| now.saturating_duration_since(*last) >= STEP) {
            self.forget(lowest);
            self.taken.push_back((offset, now));
        }
    }

    /// Forgets what nobody asks for any more.
    fn forget(&mut self, lowest: Option<Offset>) {
        let known = self.before(lowest.unwrap_or(Offset::MAX));
        self.taken.drain(..known.saturating_sub(1));
    }

    /// How many times are known of offsets up to `offset`.
    fn before(&self, offset: Offset) -> usize {
        self.taken.partition_point(|(first, _)| *first <= offset)
    }

    /// When the record at `offset`, which is in flight, was taken.
    pub(crate) fn since(&self, offset: Offset) -> Option<Instant> {
        let (_, since) = self.taken.get(self.before(offset).checked_sub(1)?)?;
        Some(*since)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn at(offset: i64) -> Offset {
        Offset::new(offset).unwrap()
    }

    #[test]
    fn each_record_has_its_time_and_those_below_the_lowest_are_forgotten() {
        let (mut admissions, start) = (Admissions::default(), Instant::now());
        let time = |step: u32| start + STEP * step;
        for step in 0..100 {
            // Three records at each time.
            for offset in 0..3 {
                admissions.admit(at(i64::from(3 * step + offset)), time(step), Some(at(0)));
            }
        }
        for step in 0..100 {
            assert_eq!(admissions.since(at(i64::from(3 * step + 2))), Some(time(step)));
        }
        admissions.admit(at(300), time(100), Some(at(296)));
        assert_eq!(admissions.taken.len(), 3);
        assert_eq!(admissions.since(at(296)), Some(time(98)));
        assert_eq!(admissions.since(at(300)), Some(time(100)));
    }

    #[test]
    fn many_records_within_a_step_take_the_room_of_one() {
        let (mut admissions, start) = (Admissions::default(), Instant::now());
        for offset in 0..1000 {
            admissions.admit(at(offset), start + STEP / 1001 * u32::try_from(offset).unwrap(), Some(at(0)));
        }
        assert_eq!(admissions.taken.len(), 1);
        assert_eq!(admissions.since(at(999)), Some(start));
    }
}
