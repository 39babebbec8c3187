use std::time::Duration;

use kstate_kafka::{Cluster, EmbeddedCluster, TopicSpec, Topics};

use crate::{failure::Failure, job::Names};

/// How long a broker may take to answer at all.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// The cluster of a run, with the run's topics. Those on a real cluster are deleted when this is dropped.
pub(crate) struct Broker {
    cluster: Cluster,
    host: Host,
    names: Names,
}

enum Host {
    /// In this process: it lasts as long as this.
    Embedded(#[expect(dead_code, reason = "held, not used")] EmbeddedCluster),
    Real,
}

impl Broker {
    /// Starts an embedded cluster, with the topics of a run.
    pub(crate) fn embedded(names: Names, partitions: u32) -> Result<Self, Failure> {
        let embedded = EmbeddedCluster::start()?;
        embedded.create_topic(&names.source, partitions)?;
        embedded.create_topic(&names.changelog, partitions)?;
        Ok(Self { cluster: embedded.cluster(), host: Host::Embedded(embedded), names })
    }

    /// Makes the topics of a run on the cluster at `brokers`.
    pub(crate) fn real(brokers: &str, names: Names, partitions: u32) -> Result<Self, Failure> {
        let cluster = Cluster::new(brokers);
        cluster.check(REACH_TIMEOUT).map_err(Failure::Brokers)?;
        let topics = Topics::new(&cluster)?;
        // From here on, whatever was made is deleted again.
        let broker = Self { cluster, host: Host::Real, names };
        topics.ensure(&TopicSpec::new(&broker.names.source, partitions))?;
        topics.ensure(&TopicSpec::changelog(&broker.names.changelog, partitions))?;
        Ok(broker)
    }

    pub(crate) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    pub(crate) const fn is_embedded(&self) -> bool {
        matches!(self.host, Host::Embedded(_))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if self.is_embedded() {
            return;
        }
        let deleted =
            Topics::new(&self.cluster).and_then(|topics| topics.delete(&[&self.names.source, &self.names.changelog]));
        if let Err(error) = deleted {
            tracing::warn!(%error, "the topics of this run are left on the cluster");
        }
    }
}
