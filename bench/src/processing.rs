//! The offset tracker, the ack table and the executor beside the plainest code that does the same.

mod executor;
mod fan_out;
mod tracker;

use std::{fmt, time::Duration};

use clap::Parser;

use crate::{
    Result,
    comparison::{Comparison, Ratio},
    sample::Sample,
};

/// Measures what keeps commit points right when records fan out or finish out of order, and prints a table.
#[derive(Clone, Debug, Parser)]
pub(crate) struct ProcessingArguments {
    /// How often each side takes its turn.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// How many records the tracker's and the ack table's turns have. The executor's have fewer.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a row aims at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// At most so many nanoseconds each.
    Nanoseconds(f64),
    /// At least so many times as fast as the other side.
    TimesAsFast(f64),
    /// Both.
    Both { nanoseconds: f64, times: f64 },
    /// It is told for information.
    None,
}

/// One comparison of `operations` done by each side.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) operations: u64,
    pub(crate) comparison: Comparison,
    /// Processor time of what one thread does, so that others on the machine do not count; else time on the clock.
    pub(crate) cost: fn(&Sample) -> Duration,
    pub(crate) aim: Aim,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, beside, operations, comparison, cost, aim } = self;
        #[expect(clippy::cast_precision_loss, reason = "there are far fewer operations than 2^52")]
        let each = |seconds: f64| 1e9 * seconds / *operations as f64;
        let (raw, kstate) = comparison.medians(*cost);
        let Ratio { median, lowest, highest } = comparison.ratio(*cost);
        write!(f, "| {what} | {beside} | {:.1} | {:.1} ", each(raw), each(kstate))?;
        write!(f, "| **{:.2}** | {:.2}–{:.2} ", 1.0 / median, 1.0 / highest, 1.0 / lowest)?;
        let met = |is_met: bool| if is_met { "met" } else { "missed" };
        match *aim {
            Aim::Nanoseconds(aim) => write!(f, "| ≤ {aim} ns: {} |", met(each(kstate) <= aim)),
            Aim::TimesAsFast(times) => write!(f, "| ≥ {times} ×: {} |", met(median.recip() >= times)),
            Aim::Both { nanoseconds, times } => {
                write!(f, "| ≤ {nanoseconds} ns: {}; ", met(each(kstate) <= nanoseconds))?;
                write!(f, "≥ {times} ×: {} |", met(median.recip() >= times))
            }
            Aim::None => write!(f, "| |"),
        }
    }
}

pub(crate) fn run(arguments: &ProcessingArguments) -> Result<()> {
    let ProcessingArguments { rounds, records, .. } = *arguments;
    println!(
        "{rounds} rounds. Medians per record in nanoseconds; how many times as fast, with that of single rounds.\n"
    );
    println!("| kstate | beside | other | kstate | times as fast | rounds | aim |");
    println!("| --- | --- | ---: | ---: | ---: | --- | --- |");
    println!("{}", tracker::compare(rounds, records)?);
    println!("{}", fan_out::compare(rounds, records)?);
    println!("{}", executor::compare_plain_path(rounds, records)?);
    println!("{}", executor::compare_workers(rounds, (records / 500).max(100))?);
    println!("\nBytes for each record in flight:");
    println!("- tracker: {:.1} of {}", tracker::bytes_per_record()?, tracker::WINDOW);
    println!("- ack table, an entry: {:.1}", fan_out::bytes_per_entry()?);
    println!("- a record in the executor, waiting in a lane: {:.0}", executor::bytes_per_record()?);
    Ok(())
}
