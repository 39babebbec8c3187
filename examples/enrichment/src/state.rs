use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{CursorExt as _, ReadOnlyKeyValueStoreExt as _, Result};
use kstate_kafka::app::Queries;

use crate::orders::Orders;

/// The store of the enriched orders, by number.
pub(crate) const ENRICHED: &str = "enriched";
/// The store of how many orders each customer has.
pub(crate) const COUNTS: &str = "counts";

type Rows = BTreeMap<String, String>;

/// What is in the stores.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    enriched: Rows,
    counts: Rows,
}

impl State {
    /// What should be there, reckoned one order after the other.
    pub(crate) fn expected(orders: Orders) -> Self {
        let (mut enriched, mut counts) = (Rows::new(), BTreeMap::<String, u32>::new());
        for (customer, number) in orders.iter() {
            let Some(number) = number else { continue };
            let count = counts.entry(customer.clone()).or_default();
            *count += 1;
            let address = Orders::address(&customer);
            enriched.insert(number.to_string(), format!("order {count} of {customer}, {address}"));
        }
        let counts = counts.into_iter().map(|(customer, count)| (customer, count.to_string())).collect();
        Self { enriched, counts }
    }

    /// What is committed, as soon as that is this, or after `limit`. Each store has a commit of its own, so what is
    /// seen before may be ahead in one and behind in the other.
    pub(crate) fn await_in(&self, queries: &Queries, limit: Duration) -> Result<Self> {
        let deadline = Instant::now() + limit;
        loop {
            let found = Self { enriched: rows(queries, ENRICHED)?, counts: rows(queries, COUNTS)? };
            if found == *self || Instant::now() >= deadline {
                return Ok(found);
            }
            thread::sleep(crate::TICK);
        }
    }

    /// The first difference is the error.
    pub(crate) fn compare(&self, found: &Self) -> std::result::Result<(), String> {
        for (store, expected, found) in
            [(ENRICHED, &self.enriched, &found.enriched), (COUNTS, &self.counts, &found.counts)]
        {
            let differs = |key: &&String| expected.get(*key) != found.get(*key);
            if let Some(key) = expected.keys().chain(found.keys()).find(differs) {
                return Err(format!("{store} of {key}: {:?}, not {:?}", found.get(key), expected.get(key)));
            }
        }
        Ok(())
    }
}

fn rows(queries: &Queries, store: &str) -> Result<Rows> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut rows = Rows::new();
    for (_, snapshot) in queries.snapshots(store)? {
        let mut cursor = snapshot.all()?;
        while let Some((key, value)) = cursor.next_row()? {
            rows.insert(text(key), text(value));
        }
    }
    Ok(rows)
}
