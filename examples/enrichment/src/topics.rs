use std::time::{Duration, Instant};

use kstate_api::{Result, TopicPartition};
use kstate_checkpoint::{ChangelogReader as _, ChangelogWriter as _};
use kstate_kafka::{ChangelogConsumer, ChangelogProducer, Cluster, EmbeddedCluster, TopicSpec};
use uuid::Uuid;

use crate::{
    orders::Orders,
    state::{COUNTS, ENRICHED},
};

/// The topics of one run, of one partition each: one task, with all the workers.
pub(crate) struct Topics {
    pub(crate) id: String,
    pub(crate) orders: String,
    pub(crate) dead_letters: String,
    cluster: Cluster,
    /// Lasts as long as this; without it the cluster is a real one.
    embedded: Option<EmbeddedCluster>,
}

impl Topics {
    pub(crate) fn create(brokers: Option<&str>) -> Result<Self> {
        let embedded = if brokers.is_none() { Some(EmbeddedCluster::start()?) } else { None };
        let cluster = match (&embedded, brokers) {
            (Some(embedded), _) => embedded.cluster(),
            (None, brokers) => Cluster::new(brokers.unwrap_or_default()),
        };
        let id = format!("enrichment-{}", Uuid::new_v4());
        let (orders, dead_letters) = (format!("{id}-orders"), format!("{id}-dead-letters"));
        let topics = Self { id, orders, dead_letters, cluster, embedded };
        for topic in [&topics.orders, &topics.dead_letters] {
            match &topics.embedded {
                Some(embedded) => embedded.create_topic(topic, 1)?,
                None => kstate_kafka::Topics::new(&topics.cluster)?.ensure(&TopicSpec::new(topic, 1))?,
            }
        }
        // A real cluster gets its changelogs from the app, compacted.
        if let Some(embedded) = &topics.embedded {
            topics.changelogs().iter().try_for_each(|topic| embedded.create_topic(topic, 1))?;
        }
        Ok(topics)
    }

    pub(crate) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn changelogs(&self) -> [String; 2] {
        [ENRICHED, COUNTS].map(|store| format!("{}-{store}-changelog", self.id))
    }

    pub(crate) fn feed(&self, orders: Orders) -> Result<()> {
        let mut producer = ChangelogProducer::new(&self.cluster, crate::PATIENCE)?;
        for (customer, number) in orders.iter() {
            let value = number.map_or_else(|| orders.poison().1, |number| number.to_string());
            producer.send_by_key(&self.orders, Some(customer.as_bytes()), Some(value.as_bytes()))?;
        }
        producer.flush().map(drop)
    }

    /// The customer and the value of each dead letter.
    pub(crate) fn dead_letters(&self, limit: Duration) -> Result<Vec<(String, String)>> {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let (mut letters, deadline) = (Vec::new(), Instant::now() + limit);
        let mut reader = ChangelogConsumer::read_committed(&self.cluster)?;
        let partition = TopicPartition::new(self.dead_letters.as_str(), 0);
        let bounds = reader.bounds(&partition)?;
        reader.seek(&partition, bounds.start)?;
        while reader.position()? < bounds.end && Instant::now() < deadline {
            reader.poll(crate::TICK, &mut |_, letter| letters.push((text(letter.key), text(letter.value))))?;
        }
        Ok(letters)
    }
}

impl Drop for Topics {
    fn drop(&mut self) {
        if self.embedded.is_none() {
            let [enriched, counts] = self.changelogs();
            let all = [&self.orders, &self.dead_letters, &enriched, &counts].map(String::as_str);
            if let Err(error) = kstate_kafka::Topics::new(&self.cluster).and_then(|topics| topics.delete(&all)) {
                eprintln!("the topics of this run are left on the cluster: {error}");
            }
        }
    }
}
