//! A task's changelog, checkpoint and restore, without a Kafka client.
