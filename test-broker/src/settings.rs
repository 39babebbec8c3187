//! The broker's settings.

use std::path::Path;

use crate::ports::Ports;

/// Every test broker has the same one: they never meet.
pub(crate) const CLUSTER_ID: &str = "kstate-test-broker-000";

/// What does not depend on where the broker runs. Internal topics are small, and whatever a test would otherwise wait
/// for is quick: the first rebalance, compaction, retention, the end of a killed member's or broker's session.
const FIXED: &str = "\
process.roles=broker,controller
node.id=1
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.streams.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=500
log.cleaner.backoff.ms=100
log.cleaner.dedupe.buffer.size=2097152
";

/// The text of the broker's settings file.
pub(crate) fn server_properties(ports: Ports, data: &Path) -> String {
    let Ports { broker, controller } = ports;
    // A settings file takes a backslash for the start of an escape.
    let data = data.display().to_string().replace('\\', "\\\\");
    format!(
        "{FIXED}\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{broker}\n\
         log.dirs={data}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::server_properties;
    use crate::ports::Ports;

    #[test]
    fn listens_on_loopback_only() {
        let text = server_properties(Ports { broker: 20_001, controller: 20_002 }, Path::new("/data"));
        let listeners = text.lines().find(|line| line.starts_with("listeners=")).unwrap();
        assert_eq!(listeners, "listeners=PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002");
        assert!(text.lines().all(|line| line.contains('=')), "{text}");
    }
}
