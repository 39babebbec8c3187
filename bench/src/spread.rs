use std::{fmt, time::Duration};

/// How long the same took again and again.
#[derive(Debug)]
pub(crate) struct Spread {
    sorted: Vec<Duration>,
}

impl Spread {
    pub(crate) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = times.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The time that so many thousandths did not exceed.
    pub(crate) fn quantile(&self, thousandths: usize) -> Duration {
        let index = (self.sorted.len() * thousandths).div_ceil(1_000).saturating_sub(1);
        self.sorted.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(500)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, most, longest) = (self.median(), self.quantile(999), self.quantile(1_000));
        write!(f, "median {median:?}, 99.9 % within {most:?}, longest {longest:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let spread = Spread::of((1..=2_000).rev().map(Duration::from_millis));
        assert_eq!(spread.to_string(), "median 1s, 99.9 % within 1.998s, longest 2s");
        assert_eq!(Spread::of([Duration::from_millis(7)]).median(), Duration::from_millis(7));
        assert_eq!(Spread::of([]).median(), Duration::ZERO);
    }
}
