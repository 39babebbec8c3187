use kstate_api::{Error, ErrorKind};
use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};

/// The client's error as ours, met while doing `what`.
pub(crate) fn broker_error(what: &str, error: KafkaError) -> Error {
    let kind = error.rdkafka_error_code().map_or(ErrorKind::Io, kind_of);
    Error::new(kind, format!("{what}: {error}")).with_source(error)
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
        | RDKafkaErrorCode::Resolve => ErrorKind::Unavailable,
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
