//! Free loopback ports which stay free while the broker is down.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use crate::error::{Error, Result};

/// Below the ports the kernel gives to outgoing connections: a client that keeps trying to reach a killed broker can be
/// given the broker's own port as its source, and the restart would find it taken.
const CANDIDATES: Range<u16> = 20_000..32_000;

/// Where one broker listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) broker: u16,
    pub(crate) controller: u16,
}

impl Ports {
    /// Two ports that nobody listens on now. Starts at a random place, so that brokers started at the same time differ.
    pub(crate) fn free() -> Result<Self> {
        let count = u64::from(CANDIDATES.end - CANDIDATES.start);
        let start = RandomState::new().hash_one(0_u8) % count;
        let mut bound = (0..count)
            .filter_map(|step| u16::try_from((start + step) % count).ok())
            .filter_map(|offset| TcpListener::bind((Ipv4Addr::LOCALHOST, CANDIDATES.start + offset)).ok());
        // Both listeners are held until both ports are known, or the same one could come twice.
        match (bound.next(), bound.next()) {
            (Some(broker), Some(controller)) => {
                Ok(Self { broker: port_of(&broker)?, controller: port_of(&controller)? })
            }
            _ => Err(Error::new(format!("no two free loopback ports in {CANDIDATES:?}"))),
        }
    }
}

fn port_of(listener: &TcpListener) -> Result<u16> {
    listener
        .local_addr()
        .map(|address| address.port())
        .map_err(|error| Error::io("a bound port does not tell its number", error))
}

#[cfg(test)]
mod tests {
    use super::{CANDIDATES, Ports};

    #[test]
    fn finds_two_different_ports() {
        let ports = Ports::free().unwrap();
        assert_ne!(ports.broker, ports.controller);
        assert!(CANDIDATES.contains(&ports.broker) && CANDIDATES.contains(&ports.controller));
    }
}
