use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kstate_api::TopicPartition;
use rdkafka::{
    ClientContext, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer, ConsumerContext, RebalanceProtocol},
    error::{KafkaError, KafkaResult},
    types::RDKafkaRespErr,
};

use crate::context;

/// What the group has decided about a member's partitions, which the member has to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AssignmentChange {
    /// They are the member's from now on.
    Assigned(Vec<TopicPartition>),
    /// They are still the member's, until it gives them up.
    Revoked(Vec<TopicPartition>),
    /// They may be another member's already: nothing may be committed.
    Lost(Vec<TopicPartition>),
}

/// Keeps what the group decides until the owner of the consumer follows it.
///
/// The client tells it inside `poll`, where nothing that the owner has is at hand. Until the owner has followed a
/// change, the group waits, and the client gives out no records; so it need not be followed there.
#[derive(Debug, Default)]
pub(crate) struct GroupContext {
    changes: Mutex<VecDeque<AssignmentChange>>,
    /// There is no owner any more: every change is followed at once, for closing waits for that.
    closing: AtomicBool,
}

impl GroupContext {
    /// Nobody else has `partitions`, whatever the group says.
    pub(crate) fn assigned(&self, partitions: Vec<TopicPartition>) {
        self.changes().push_back(AssignmentChange::Assigned(partitions));
    }

    /// The next change to follow, which stays until [`followed`](Self::followed).
    pub(crate) fn next_change(&self) -> Option<AssignmentChange> {
        self.changes().front().cloned()
    }

    /// The change that [`next_change`](Self::next_change) gave was followed.
    pub(crate) fn followed(&self) {
        self.changes().pop_front();
    }

    /// From now on every change is followed as it comes, and those that wait are followed now.
    pub(crate) fn close(&self, consumer: &BaseConsumer<Self>) {
        self.closing.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.changes());
        for change in waiting {
            let given_up = match change {
                AssignmentChange::Assigned(_) => accept(consumer, &TopicPartitionList::new()),
                AssignmentChange::Revoked(partitions) | AssignmentChange::Lost(partitions) => {
                    give_up(consumer, &list_of(&partitions))
                }
            };
            if let Err(error) = given_up {
                tracing::debug!(%error, "a change of the assignment could not be followed at the end");
            }
        }
    }

    fn changes(&self) -> MutexGuard<'_, VecDeque<AssignmentChange>> {
        // Every change to the queue is one call.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for GroupContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::connection_error(&error, reason);
    }
}

impl ConsumerContext for GroupContext {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, partitions: &mut TopicPartitionList) {
        let assigns = event == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
        if self.closing.load(Ordering::Acquire) {
            let followed =
                if assigns { accept(consumer, &TopicPartitionList::new()) } else { give_up(consumer, partitions) };
            if let Err(error) = followed {
                tracing::debug!(%error, "a change of the assignment could not be followed at the end");
            }
            return;
        }
        let named = partitions
            .elements()
            .iter()
            .map(|element| TopicPartition::new(element.topic(), element.partition()))
            .collect::<Vec<_>>();
        tracing::info!(partitions = ?named, assigns, lost = consumer.assignment_lost(), "the group was rebalanced");
        let change = if assigns {
            AssignmentChange::Assigned(named)
        } else if consumer.assignment_lost() {
            AssignmentChange::Lost(named)
        } else {
            AssignmentChange::Revoked(named)
        };
        self.changes().push_back(change);
    }
}

/// Tells the client that the partitions of `list` are read from the offsets in it on.
pub(crate) fn accept(consumer: &BaseConsumer<GroupContext>, list: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_assign(list),
        RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.assign(list),
    }
}

/// Tells the client that the partitions of `list` are not read any more.
pub(crate) fn give_up(consumer: &BaseConsumer<GroupContext>, list: &TopicPartitionList) -> KafkaResult<()> {
    match consumer.rebalance_protocol() {
        RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
        RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.unassign(),
    }
}

/// `partitions` as the client takes them.
pub(crate) fn list_of(partitions: &[TopicPartition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(partition.topic(), partition.partition());
    }
    list
}
