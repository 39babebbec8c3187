//! kstate on Kafka: rdkafka adapters for changelog, checkpoint and restore.
