use std::{collections::HashMap, time::Instant};

use kstate_processing::{AckSettings, AckTable, Branch, FanOut, Role};

use super::{Aim, Row};
use crate::{Result, comparison::interleave, sample::Sample};

const BRANCHES: u64 = 4;
/// How many events are open at a time.
const OPEN: u64 = 1024;

/// Opens events with four branches each, and answers first branch by first branch, second by second, and so on. Each
/// side tells how many were settled, and the sum of their numbers.
pub(crate) fn compare(rounds: u64, records: u64) -> Result<Row> {
    let turns = records.div_ceil(OPEN);
    let edge = FanOut::new([Role::Required; 4])?;
    let comparison = interleave(
        rounds,
        || {
            let mut open = HashMap::<u64, u64>::new();
            Sample::of(|| {
                let mut settled = (0, 0);
                for turn in 0..turns {
                    let events = turn * OPEN..(turn + 1) * OPEN;
                    open.extend(events.clone().map(|event| (event, BRANCHES)));
                    for _ in 0..BRANCHES {
                        for event in events.clone() {
                            let left = open.get_mut(&event).ok_or("settled twice")?;
                            *left -= 1;
                            if *left == 0 {
                                open.remove(&event);
                                settled = (settled.0 + 1, settled.1 + event);
                            }
                        }
                    }
                }
                Ok(settled)
            })
        },
        || {
            let mut table = AckTable::<u64, String>::new(AckSettings::default())?;
            let mut branches: [Vec<Branch>; 4] = Default::default();
            let now = Instant::now();
            Sample::of(|| {
                let mut settled = (0, 0);
                for turn in 0..turns {
                    for event in turn * OPEN..(turn + 1) * OPEN {
                        let opened = table.open(event, &edge, now).map_err(|_| "the table is full")?;
                        branches.iter_mut().zip(opened).for_each(|(branches, branch)| branches.push(branch));
                    }
                    for branch in branches.iter_mut().flat_map(|branches| branches.drain(..)) {
                        table.ack(branch);
                        while let Some(settlement) = table.next_settlement() {
                            settled = (settled.0 + 1, settled.1 + settlement.root);
                        }
                    }
                }
                Ok(settled)
            })
        },
    )?;
    let (what, beside) = ("a 4-way fan-out, opened, answered, settled", "`HashMap` of counters");
    Ok(Row { what, beside, operations: turns * OPEN, comparison, cost: |one| one.cpu, aim: Aim::Nanoseconds(100.0) })
}

#[expect(clippy::cast_precision_loss, reason = "these are small numbers")]
pub(crate) fn bytes_per_entry() -> Result<f64> {
    let mut table = AckTable::<u64, String>::new(AckSettings::default())?;
    let edge = FanOut::new([Role::Required; 4])?;
    let mut open = Vec::new();
    for event in 0..16_384 {
        open.push(table.open(event, &edge, Instant::now()).map_err(|_| "the table is full")?);
    }
    Ok(table.bytes() as f64 / open.len() as f64)
}
