use std::{fmt, io, time::Duration};

use serde::Serialize;

use crate::{outcome::Totals, top_words::WordCount};

/// The result, in the form that goes to other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    words: u64,
    distinct: u64,
    top: Vec<WordCount>,
    restarts: u32,
    restored_records: u64,
    checkpoints: u64,
    seconds: f64,
    #[serde(skip)]
    bytes: u64,
    #[serde(skip)]
    killed: bool,
    #[serde(skip)]
    totals: Totals,
}

impl Report {
    /// Reports `top` and `totals` of an input of `bytes` after `elapsed`; `kills` is `None` if none were asked for.
    pub(crate) fn new(top: Vec<WordCount>, totals: Totals, kills: Option<u32>, bytes: u64, elapsed: Duration) -> Self {
        Self {
            words: totals.words,
            distinct: totals.distinct,
            top,
            restarts: kills.unwrap_or_default(),
            restored_records: totals.restored_records,
            checkpoints: totals.checkpoints,
            // Milliseconds are all that means anything.
            seconds: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
            bytes,
            killed: kills.is_some(),
            totals,
        }
    }

    /// One line of JSON.
    pub(crate) fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        to.write_all(b"\n")
    }

    /// The comparison with the plain count, if there was one.
    pub(crate) fn comparison(&self) -> Option<String> {
        let (words, distinct) = self.totals.plain?;
        let verdict = if self.totals.difference.is_none() { "equal, word by word" } else { "DIFFERENT" };
        Some(format!(
            "counted on Kafka: {} words, {} different; plain count: {words} words, {distinct} different: {verdict}",
            self.words, self.distinct
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.top.first().map_or(0, |most| most.count.to_string().len());
        for WordCount { word, count } in &self.top {
            writeln!(f, "{count:>width$}  {word}")?;
        }
        if !self.top.is_empty() {
            writeln!(f)?;
        }
        let per_second = |amount: u64| if self.seconds > 0.0 { as_f64(amount) / self.seconds } else { 0.0 };
        writeln!(
            f,
            "{} words, {} different, in {:.3} s: {:.0} words/s, {:.2} MB/s",
            self.words,
            self.distinct,
            self.seconds,
            per_second(self.words),
            per_second(self.bytes) / 1e6
        )?;
        let last = if self.totals.committed.is_empty() { "" } else { "; the last one committed" };
        writeln!(f, "{}{last}", counted(self.checkpoints, "checkpoint"))?;
        for task in self.totals.committed.values() {
            let changelog = task.changelog_offset.map_or_else(|| "none".into(), |offset| offset.to_string());
            writeln!(f, "  task {}: source position {}, changelog offset {changelog}", task.task, task.source_next)?;
        }
        if self.killed {
            let restarts = counted(self.restarts.into(), "restart");
            writeln!(f, "{restarts}, {} restored from the changelog", counted(self.restored_records, "record"))?;
        }
        self.comparison().map_or(Ok(()), |comparison| writeln!(f, "{comparison}"))
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// For rates: exact below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "a rate is a rounded number")]
fn as_f64(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::TaskCommitted;

    fn report(kills: Option<u32>) -> Report {
        let top = [("the", 12), ("a", 7)].map(|(word, count)| WordCount { word: word.into(), count }).to_vec();
        let committed = TaskCommitted { task: "0_0".into(), source_next: 4, changelog_offset: Some(9) };
        let totals = Totals {
            words: 19,
            distinct: 2,
            checkpoints: 3,
            restored_records: 5,
            committed: [("0_0".to_owned(), committed)].into(),
            plain: kills.map(|_| (19, 2)),
            difference: None,
        };
        Report::new(top, totals, kills, 2_000_000, Duration::from_micros(500_400))
    }

    #[test]
    fn json_has_the_agreed_shape() {
        let mut line = Vec::new();
        report(Some(2)).write_json(&mut line).unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            r#"{"words":19,"distinct":2,"top":[{"word":"the","count":12},{"word":"a","count":7}],"restarts":2,"restored_records":5,"checkpoints":3,"seconds":0.5}"#
                .to_owned()
                + "\n"
        );
    }

    #[test]
    fn text_is_for_people() {
        let expected = "12  the\n 7  a\n\n19 words, 2 different, in 0.500 s: 38 words/s, 4.00 MB/s\n\
                        3 checkpoints; the last one committed\n  task 0_0: source position 4, changelog offset 9\n";
        assert_eq!(report(None).to_string(), expected);
        let killed = report(Some(2)).to_string();
        assert!(killed.contains("2 restarts, 5 records restored"), "{killed}");
        assert!(killed.ends_with("plain count: 19 words, 2 different: equal, word by word\n"), "{killed}");
    }

    #[test]
    fn nothing_counted_is_a_report_too() {
        let report = Report::new(Vec::new(), Totals::default(), None, 0, Duration::ZERO);
        assert_eq!(report.to_string(), "0 words, 0 different, in 0.000 s: 0 words/s, 0.00 MB/s\n0 checkpoints\n");
    }
}
