use rdkafka::{ClientContext, config::RDKafkaLogLevel, consumer::ConsumerContext, error::KafkaError};

/// Sends the client's log lines and connection errors to `tracing`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context;

/// Writes one log line of the client to `tracing`.
pub(crate) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::warn!(facility, "{message}");
        }
        // Lost and refused connections are logged as these; the client mends them or a call fails.
        _ => tracing::debug!(facility, "{message}"),
    }
}

/// Writes one connection error to `tracing`: the client goes on trying, and the call that needs it fails in time.
pub(crate) fn connection_error(error: &KafkaError, reason: &str) {
    tracing::debug!(%error, "{reason}");
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        connection_error(&error, reason);
    }
}

impl ConsumerContext for Context {}
