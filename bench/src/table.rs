use std::fmt;

use crate::{
    arguments::Arguments,
    comparison::{Comparison, Ratio},
};

/// The results, as a Markdown table.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    subject: String,
    workload: String,
    /// How many operations each turn had.
    operations: usize,
    comparison: Comparison,
    /// The largest ratio of times that is good enough.
    aim: Option<f64>,
}

impl Table {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let Arguments { records, rounds, commit_every, cache_mib, .. } = arguments;
        let title = format!(
            "{records} records, commits of {commit_every}, caches of {cache_mib} MiB, {rounds} rounds. Medians per operation \
             in microseconds; ratios of medians kstate/raw, with those of single rounds."
        );
        Self::titled(title)
    }

    pub(crate) const fn titled(title: String) -> Self {
        Self { title, rows: Vec::new() }
    }

    pub(crate) fn push(
        &mut self,
        subject: String,
        workload: &str,
        operations: usize,
        comparison: Comparison,
        aim: Option<f64>,
    ) {
        let row = Row { subject, workload: workload.into(), operations, comparison, aim };
        eprintln!("{row}");
        self.rows.push(row);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, workload, operations, comparison, aim } = self;
        #[expect(clippy::cast_precision_loss, reason = "there are far fewer operations than 2^52")]
        let per_operation = |seconds: f64| 1e6 * seconds / *operations as f64;
        let (raw, kstate) = comparison.medians(|sample| sample.wall);
        let (raw_cpu, kstate_cpu) = comparison.medians(|sample| sample.cpu);
        let Ratio { median, lowest, highest } = comparison.ratio(|sample| sample.wall);
        write!(f, "| {subject} | {workload} | {:.2} | {:.2} ", per_operation(raw), per_operation(kstate))?;
        write!(f, "| **{median:.2}** | {lowest:.2}–{highest:.2} ")?;
        write!(f, "| {:.2} | {:.2} ", per_operation(raw_cpu), per_operation(kstate_cpu))?;
        write!(f, "| {:.2} ", comparison.ratio(|sample| sample.cpu).median)?;
        match aim {
            Some(aim) => write!(f, "| ≤ {aim:.2}: {} |", if median <= *aim { "met" } else { "missed" }),
            None => write!(f, "| |"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        writeln!(f, "| engine | workload | raw | kstate | ratio | rounds | raw CPU | kstate CPU | CPU ratio | aim |")?;
        writeln!(f, "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}
