//! A kstate backend on RocksDB, in the on-disk layout of Kafka Streams.
