//! A real Kafka broker for tests: one node in `KRaft` mode, on free loopback ports, with its data in a temporary directory.
//!
//! The embedded cluster of the Kafka client neither compacts nor does it hide aborted records, and it cannot be killed.
//! This one can: [`Broker::kill`] sends it SIGKILL, and [`Broker::restart`] starts it again on the same ports and data.
//!
//! It needs Java 17 or newer, and Maven the first time, to fetch the broker's jars into [`cache_directory`].
//! A broker never outlives the process that started it, however that process ends: dropping the value kills it, and
//! where `setpriv` (util-linux) is there the kernel does so when the process itself is killed.
//!
//! ```no_run
//! let mut broker = kstate_test_broker::Broker::start()?;
//! println!("{}", broker.bootstrap_servers());
//! broker.kill()?;
//! broker.restart()?;
//! # Ok::<(), kstate_test_broker::Error>(())
//! ```

mod broker;
mod cache;
mod distribution;
mod error;
mod java;
mod ports;
mod process;
mod readiness;
mod settings;
mod tools;

pub use broker::Broker;
pub use cache::cache_directory;
pub use error::{Error, Result};
pub use tools::Tools;
