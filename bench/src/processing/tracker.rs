use std::collections::BTreeSet;

use kstate_api::{Offset, PartitionPosition};
use kstate_processing::{Admission, Finish, OffsetTracker, Ticket, TrackerLimits};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{Aim, Row};
use crate::{Result, comparison::interleave, sample::Sample};

pub(crate) const WINDOW: usize = 16_384;

/// What keeps the commit point with a standard collection: the offsets that are not finished.
#[derive(Default)]
struct Pending {
    offsets: BTreeSet<i64>,
    end: i64,
}

impl Pending {
    fn next(&self) -> i64 {
        self.offsets.first().copied().unwrap_or(self.end)
    }
}

fn shuffled() -> Vec<usize> {
    let mut order: Vec<_> = (0..WINDOW).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(7));
    order
}

fn admit(tracker: &mut OffsetTracker, offset: i64) -> Result<Ticket> {
    match tracker.admit(Offset::try_from(offset)?)? {
        Admission::Run(ticket) => Ok(ticket),
        other => Err(format!("{offset}: {other:?}").into()),
    }
}

fn assigned() -> OffsetTracker {
    let mut tracker = OffsetTracker::new(TrackerLimits::default().with_window(WINDOW));
    tracker.resume(PartitionPosition::at(Offset::ZERO));
    tracker
}

/// Fills the window and finishes it in a random order, again and again. Each side tells how often the commit point
/// moved, and where it came to.
pub(crate) fn compare(rounds: u64, records: u64) -> Result<Row> {
    let order = shuffled();
    let windows = records.div_ceil(WINDOW as u64);
    let comparison = interleave(
        rounds,
        || {
            let mut pending = Pending::default();
            Sample::of(|| {
                let mut moves = 0_u64;
                for _ in 0..windows {
                    let base = pending.end;
                    for _ in 0..WINDOW {
                        pending.offsets.insert(pending.end);
                        pending.end += 1;
                    }
                    let mut next = pending.next();
                    for index in &order {
                        pending.offsets.remove(&(base + i64::try_from(*index)?));
                        moves += u64::from(next != pending.next());
                        next = pending.next();
                    }
                }
                Ok((moves, pending.next()))
            })
        },
        || {
            let mut tracker = assigned();
            let mut tickets: Vec<Option<Ticket>> = Vec::with_capacity(WINDOW);
            let mut end = 0;
            Sample::of(|| {
                let mut moves = 0_u64;
                for _ in 0..windows {
                    tickets.clear();
                    for _ in 0..WINDOW {
                        tickets.push(Some(admit(&mut tracker, end)?));
                        end += 1;
                    }
                    for index in &order {
                        let ticket = tickets.get_mut(*index).and_then(Option::take).ok_or("finished twice")?;
                        moves += u64::from(matches!(tracker.finish(ticket), Finish::Advanced(_)));
                    }
                }
                Ok((moves, tracker.next().map_or(0, Offset::get)))
            })
        },
    )?;
    let aim = Aim::Both { nanoseconds: 60.0, times: 3.0 };
    let operations = windows * WINDOW as u64;
    Ok(Row {
        what: "admit + finish, window 16 384, random order",
        beside: "`BTreeSet`",
        operations,
        comparison,
        cost: |one| one.cpu,
        aim,
    })
}

#[expect(clippy::cast_precision_loss, reason = "these are small numbers")]
pub(crate) fn bytes_per_record() -> Result<f64> {
    let mut tracker = assigned();
    let mut tickets = Vec::new();
    for offset in 0..i64::try_from(WINDOW)? {
        tickets.push(admit(&mut tracker, offset)?);
    }
    Ok(tracker.window_bytes() as f64 / tickets.len() as f64)
}
