use kstate_api::{Error, ErrorKind};
use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};

/// The client's error as ours, met while doing `what`.
pub(crate) fn broker_error(what: &str, error: KafkaError) -> Error {
    let kind = error.rdkafka_error_code().map_or(ErrorKind::Io, kind_of);
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

/// The client's error as ours, met in a transaction while doing `what`.
pub(crate) fn transaction_error(what: &str, error: KafkaError) -> Error {
    let code = error.rdkafka_error_code();
    let kind = match &error {
        KafkaError::Transaction(class) if class.txn_requires_abort() => ErrorKind::Aborted,
        KafkaError::Transaction(class) if class.is_retriable() => ErrorKind::Unavailable,
        _ if code.is_some_and(is_fenced) => ErrorKind::Fenced,
        // Fatal, or of no class at all, which is to be taken for fatal: this producer is of no use any more.
        KafkaError::Transaction(_) => ErrorKind::Poisoned,
        _ => return broker_error(what, error),
    };
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

/// The error that ended a producer.
pub(crate) fn fatal_error(code: RDKafkaErrorCode, reason: &str) -> Error {
    let kind = if is_fenced(code) { ErrorKind::Fenced } else { ErrorKind::Poisoned };
    Error::new(kind, format!("the producer has ended: {reason} ({code})"))
}

fn is_fenced(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::Fenced | RDKafkaErrorCode::ProducerFenced | RDKafkaErrorCode::InvalidProducerEpoch)
}

pub(crate) fn kind_of(code: RDKafkaErrorCode) -> ErrorKind {
    match code {
        RDKafkaErrorCode::AllBrokersDown
        | RDKafkaErrorCode::BrokerTransportFailure
        | RDKafkaErrorCode::CoordinatorLoadInProgress
        | RDKafkaErrorCode::CoordinatorNotAvailable
        | RDKafkaErrorCode::LeaderNotAvailable
        | RDKafkaErrorCode::MessageTimedOut
        | RDKafkaErrorCode::NetworkException
        | RDKafkaErrorCode::NotCoordinator
        | RDKafkaErrorCode::NotLeaderForPartition
        | RDKafkaErrorCode::OperationTimedOut
        | RDKafkaErrorCode::QueueFull
        | RDKafkaErrorCode::RequestTimedOut
        | RDKafkaErrorCode::Resolve
        | RDKafkaErrorCode::UnstableOffsetCommit => ErrorKind::Unavailable,
        RDKafkaErrorCode::RebalanceInProgress => ErrorKind::Busy,
        // The group goes on without this member: its partitions are another's.
        RDKafkaErrorCode::AssignmentLost
        | RDKafkaErrorCode::FencedInstanceId
        | RDKafkaErrorCode::IllegalGeneration
        | RDKafkaErrorCode::UnknownMemberId => ErrorKind::Fenced,
        RDKafkaErrorCode::InvalidArgument
        | RDKafkaErrorCode::InvalidMessageSize
        | RDKafkaErrorCode::MessageSizeTooLarge => ErrorKind::InvalidArgument,
        RDKafkaErrorCode::InvalidConfig
        | RDKafkaErrorCode::InvalidPartitions
        | RDKafkaErrorCode::InvalidReplicationFactor
        | RDKafkaErrorCode::InvalidTopic
        | RDKafkaErrorCode::PolicyViolation
        | RDKafkaErrorCode::UnknownPartition
        | RDKafkaErrorCode::UnknownTopic
        | RDKafkaErrorCode::UnknownTopicOrPartition => ErrorKind::Config,
        _ => ErrorKind::Io,
    }
}
