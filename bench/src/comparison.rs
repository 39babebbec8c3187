use std::{fmt::Debug, time::Duration};

use crate::{Result, sample::Sample};

/// What the two sides cost, round by round.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    raw: Vec<Sample>,
    kstate: Vec<Sample>,
}

/// A ratio kstate/raw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    /// Of the medians.
    pub(crate) median: f64,
    /// Of single rounds.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

/// Lets both sides take turns for `rounds` rounds. What one turn found must be what every other found.
pub(crate) fn interleave<F: PartialEq + Debug>(
    rounds: u64,
    mut raw: impl FnMut() -> Result<(F, Sample)>,
    mut kstate: impl FnMut() -> Result<(F, Sample)>,
) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut first = None;
    for _ in 0..rounds {
        let (raw_found, sample) = raw()?;
        comparison.raw.push(sample);
        let (kstate_found, sample) = kstate()?;
        comparison.kstate.push(sample);
        let expected = first.get_or_insert(raw_found);
        if kstate_found != *expected {
            return Err(format!("kstate found {kstate_found:?}, the raw engine {expected:?}").into());
        }
    }
    Ok(comparison)
}

fn median(samples: &[Sample], of: fn(&Sample) -> Duration) -> f64 {
    let mut seconds: Vec<f64> = samples.iter().map(|sample| of(sample).as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    let at = |index| seconds.get(index).copied().unwrap_or(f64::NAN);
    if seconds.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) }
}

impl Comparison {
    /// The medians of the raw engine and of kstate, in seconds.
    pub(crate) fn medians(&self, of: fn(&Sample) -> Duration) -> (f64, f64) {
        (median(&self.raw, of), median(&self.kstate, of))
    }

    pub(crate) fn ratio(&self, of: fn(&Sample) -> Duration) -> Ratio {
        let (raw, kstate) = self.medians(of);
        let rounds = self.raw.iter().zip(&self.kstate);
        let ratios = rounds.map(|(raw, kstate)| of(kstate).as_secs_f64() / of(raw).as_secs_f64());
        let (lowest, highest) =
            ratios.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| (low.min(ratio), high.max(ratio)));
        Ratio { median: kstate / raw, lowest, highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(milliseconds: u64) -> Sample {
        Sample { wall: Duration::from_millis(milliseconds), cpu: Duration::from_millis(2 * milliseconds) }
    }

    fn turns(milliseconds: &[u64]) -> impl FnMut() -> Result<(u64, Sample)> + '_ {
        let mut samples = milliseconds.iter();
        move || Ok((7, sample(*samples.next().unwrap())))
    }

    #[test]
    fn the_ratio_is_that_of_the_medians_and_its_range_that_of_the_rounds() {
        let comparison = interleave(3, turns(&[10, 40, 20]), turns(&[30, 20, 5])).unwrap();
        let ratio = comparison.ratio(|sample| sample.wall);
        assert_eq!((ratio.median, ratio.lowest, ratio.highest), (1.0, 0.25, 3.0));
        assert_eq!(comparison.medians(|sample| sample.cpu), (0.04, 0.04));
        let even = interleave(2, turns(&[10, 30]), turns(&[10, 10])).unwrap();
        assert_eq!(even.medians(|sample| sample.wall), (0.02, 0.01));
    }

    #[test]
    fn different_findings_are_an_error() {
        let error = interleave(1, || Ok((1, sample(1))), || Ok((2, sample(1)))).unwrap_err();
        assert!(error.to_string().contains("kstate found 2, the raw engine 1"), "{error}");
        let mut findings = [1, 2].into_iter();
        let changing = interleave(2, || Ok((1, sample(1))), || Ok((findings.next().unwrap(), sample(1))));
        assert!(changing.is_err());
    }
}
