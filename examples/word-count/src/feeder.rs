use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kstate_api::{Error, ErrorKind, Offset, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter as _};
use kstate_kafka::{ChangelogProducer, Cluster};

use crate::{
    failure::Failure, input::Chunks, job::Names, kill_pacer::KillPacer, plain_count::PlainCount, stop::Stop,
    window::Window,
};

/// The size of a chunk, in bytes of text: one record of the source topic.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// How long the broker may take to acknowledge the chunks.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the chunks come from.
pub(crate) enum Source {
    /// The input, as fast as it comes.
    Free(Box<Chunks>),
    /// The input, held up for the kills.
    Paced(Box<KillPacer>),
}

impl Source {
    fn next_chunk(&mut self, stop: &Stop) -> Result<Option<String>, Failure> {
        match self {
            Self::Free(chunks) => chunks.next_chunk(),
            Self::Paced(pacer) => pacer.next_chunk(stop),
        }
    }

    fn into_chunks(self) -> Chunks {
        match self {
            Self::Free(chunks) => *chunks,
            Self::Paced(pacer) => pacer.into_chunks(),
        }
    }
}

/// What was fed, once all of it was.
pub(crate) struct Fed {
    /// One past the last offset of each partition.
    pub(crate) ends: Vec<i64>,
    /// How many bytes the input had.
    pub(crate) bytes: u64,
    /// The plain count of the input, if it was asked for.
    pub(crate) plain_count: Option<PlainCount>,
}

/// Feeds the source topic: one record for each chunk, the partitions taking turns.
pub(crate) struct Feeder {
    producer: ChangelogProducer,
    partitions: Vec<TopicPartition>,
    window: Window,
    highest: Vec<Option<Offset>>,
    progress: Arc<AtomicU64>,
    stop: Stop,
}

impl Feeder {
    /// Feeds at most `window_bytes` of each partition ahead of what the counting group has committed. The bytes fed
    /// are added to `progress`.
    pub(crate) fn new(
        cluster: &Cluster,
        names: &Names,
        partitions: i32,
        window_bytes: u64,
        progress: Arc<AtomicU64>,
        stop: Stop,
    ) -> Result<Self, Failure> {
        // A changelog's producer is what any exact topic needs: idempotent, and it knows what was acknowledged.
        let producer = ChangelogProducer::new(cluster, DELIVERY_TIMEOUT)?;
        let topic: Arc<str> = names.source.as_str().into();
        let partitions = (0..partitions).map(|partition| TopicPartition::new(Arc::clone(&topic), partition));
        let partitions = partitions.collect::<Vec<_>>();
        let window = Window::new(cluster, &names.group, &partitions, window_bytes)?;
        let highest = vec![None; partitions.len()];
        Ok(Self { producer, partitions, window, highest, progress, stop })
    }

    /// Feeds all of `source`.
    pub(crate) fn feed(mut self, mut source: Source) -> Result<Fed, Failure> {
        let mut turn = 0;
        while let Some(chunk) = source.next_chunk(&self.stop)? {
            self.stop.check()?;
            self.send(turn, &chunk)?;
            turn = (turn + 1) % self.partitions.len();
        }
        self.flush()?;
        self.check_ends()?;
        let chunks = source.into_chunks();
        let bytes = chunks.bytes_read();
        let plain_count = chunks.into_plain_count();
        Ok(Fed { ends: self.window.ends(), bytes, plain_count })
    }

    fn send(&mut self, partition: usize, chunk: &str) -> Result<(), Failure> {
        let len = chunk.len() as u64;
        if !self.window.has_room(partition, len) {
            // Only what was delivered can be counted: without this, a failed delivery would be waited for in vain.
            self.flush()?;
            self.window.wait_for_room(partition, len, &self.stop)?;
        }
        if let Some(partition) = self.partitions.get(partition) {
            let record = ChangelogRecord { key: None, value: Some(chunk.as_bytes()), source_position: None };
            self.producer.append(partition, record)?;
        }
        self.window.sent(partition, len);
        self.progress.fetch_add(len, Ordering::Relaxed);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let acknowledged = self.producer.flush()?;
        for (partition, highest) in self.partitions.iter().zip(&mut self.highest) {
            *highest = acknowledged.get(partition).or(*highest);
        }
        Ok(())
    }

    /// The topic was new, so the last offset tells how many records it has.
    fn check_ends(&self) -> Result<(), Failure> {
        for ((partition, highest), end) in self.partitions.iter().zip(&self.highest).zip(self.window.ends()) {
            let found = highest.map_or(0, |offset| offset.next().get());
            if found != end {
                let message = format!("{partition} has {found} records, not the {end} that were sent to it");
                return Err(Error::new(ErrorKind::Io, message).into());
            }
        }
        Ok(())
    }
}
