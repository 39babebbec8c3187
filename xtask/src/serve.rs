//! A broker for someone who wants to try things by hand.

use std::thread;
use std::time::Duration;

use kstate_test_broker::Broker;

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::report;

pub(crate) fn until_interrupted() -> Result<()> {
    report::note("starting a Kafka broker; the first time its jars are fetched");
    let broker = Broker::start().map_err(|error| Failure::because("no Kafka broker", error))?;
    println!("{}", broker.bootstrap_servers());
    report::note("Ctrl-C stops it and removes its data");
    while !interrupt::asked_to_end() {
        if broker.process_id().is_none() {
            return Err(Failure::new("the broker ended by itself"));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
