//! How many tests passed, over all the test programs of a run.

use std::fmt;

/// What every libtest program says last.
const RESULT: &str = "test result: ";

/// The sum of what the test programs reported.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// Takes in one line of a test program's output, which may be any line.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix(RESULT) else { return };
        // "ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s"
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Counts tests that could not be run here.
    pub(crate) fn add_skipped(&mut self, count: usize) {
        self.skipped += u64::try_from(count).unwrap_or(u64::MAX);
    }

    /// A step that failed without a failed test counts as one.
    pub(crate) fn note_failed_step(&mut self) {
        self.failed = self.failed.max(1);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn adds_up_what_libtest_reports() {
        let mut tally = Tally::default();
        for line in [
            "running 5 tests",
            "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test a::test_result: passed ... ok",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.20s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.to_string(), "4 passed, 2 failed, 2 skipped");
    }

    #[test]
    fn a_failed_step_never_closes_on_no_failure() {
        let mut tally = Tally::default();
        tally.note_failed_step();
        assert_eq!(tally.to_string(), "0 passed, 1 failed, 0 skipped");
        tally.read("test result: FAILED. 0 passed; 2 failed; 0 ignored");
        tally.note_failed_step();
        assert_eq!(tally.to_string(), "0 passed, 3 failed, 0 skipped");
    }
}
