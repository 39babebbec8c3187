use std::{str, thread};

use kstate_kafka::app::{OutputRecord, OwnedRecord};
use kstate_processing::{ProcessError, Processor, ProcessorFn, Work};

use crate::orders::Orders;

/// The stores, by the order in which the app is given them.
const ENRICHED: usize = 0;
const COUNTS: usize = 1;

/// Finds the customer's address, and says which of the customer's orders this is. Workers do it at the same time, but
/// never two for one customer, so nobody else changes the count between its `get` and its `put`.
pub(crate) fn enricher(orders: Orders) -> impl Processor<Record = OwnedRecord, Output = OutputRecord> {
    ProcessorFn::new(move |record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
        let record = record.get();
        let customer = str::from_utf8(record.key().unwrap_or_default())?;
        // Nobody can read the poison: each attempt ends here.
        let order: u32 = str::from_utf8(record.value().unwrap_or_default())?.parse()?;
        let address = look_up(orders, customer, order);
        let before: u32 = match work.get(COUNTS, customer.as_bytes())? {
            Some(count) => str::from_utf8(&count)?.parse()?,
            None => 0,
        };
        let count = before + 1;
        work.put(COUNTS, customer.to_owned(), count.to_string())?;
        work.put(ENRICHED, order.to_string(), format!("order {count} of {customer}, {address}"))?;
        Ok::<(), ProcessError>(())
    })
}

/// Stands for a request to another system.
fn look_up(orders: Orders, customer: &str, order: u32) -> String {
    thread::sleep(orders.look_up_time_of(order));
    Orders::address(customer)
}
