use std::time::Duration;

const CUSTOMERS: u32 = 100;
/// One look-up of so many is slow.
const ONE_IN: u32 = 50;
const TIMES_AS_SLOW: u32 = 20;

/// The orders of a run, which are the same each time, and what looking up takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    count: u32,
    look_up: Duration,
}

impl Orders {
    pub(crate) const fn new(count: u32, look_up: Duration) -> Self {
        Self { count, look_up }
    }

    pub(crate) const fn count(self) -> u32 {
        self.count
    }

    /// The customer and the number of each that can be processed, and [`None`] for the poison, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = (String, Option<u32>)> {
        let poison = self.count / 2;
        (0..self.count).map(move |number| (customer(number), (number != poison).then_some(number)))
    }

    /// The customer and the value of the one that cannot.
    pub(crate) fn poison(self) -> (String, String) {
        (customer(self.count / 2), "poison".to_owned())
    }

    pub(crate) fn address(customer: &str) -> String {
        format!("1 {customer} Street")
    }

    pub(crate) const fn look_up_time_of(self, number: u32) -> Duration {
        if number % ONE_IN == 1 { self.look_up.saturating_mul(TIMES_AS_SLOW) } else { self.look_up }
    }

    /// How long all look-ups together take.
    pub(crate) fn look_up_time(self) -> Duration {
        self.iter().filter_map(|(_, number)| number).map(|number| self.look_up_time_of(number)).sum()
    }
}

fn customer(number: u32) -> String {
    format!("customer-{}", number * 7919 % CUSTOMERS)
}
