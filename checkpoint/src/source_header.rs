use std::collections::BTreeSet;

use kstate_api::{PartitionPosition, Position, Result, TopicPartition, codec};

/// The header of each changelog record: the source position that the checkpoint which wrote it was about to commit
/// (clause P3).
pub const SOURCE_POSITION_HEADER: &str = "kstate.source.position";

/// The header's value for `position`.
///
/// # Errors
/// `InvalidArgument` for a partition that Kafka could not have.
///
/// ```
/// use kstate_api::Position;
/// use kstate_checkpoint::{decode_source_position, encode_source_position};
///
/// let bytes = encode_source_position(&Position::new()).unwrap();
/// assert!(decode_source_position(&bytes).unwrap().is_empty());
/// ```
pub fn encode_source_position(position: &Position) -> Result<Vec<u8>> {
    codec::encode_position(position)
}

/// The position in a header's value.
///
/// # Errors
/// `Corrupted` if the bytes are not those of a position, `NewerFormat` if a newer version wrote them.
///
/// ```
/// assert!(kstate_checkpoint::decode_source_position(b"nonsense").is_err());
/// ```
pub fn decode_source_position(bytes: &[u8]) -> Result<Position> {
    codec::decode_position(bytes)
}

/// Whether the source commit of the checkpoint that was to commit `position` has happened, given what the group has
/// `committed`: everything that is finished in the one is finished in the other.
///
/// Of `bare` partitions only the next offset is known. What was finished above it will be applied twice, and
/// that is the lesser evil: the checkpoint also has changes of records below, which do not come again.
pub(crate) fn was_committed(position: &Position, committed: &Position, bare: &BTreeSet<TopicPartition>) -> bool {
    position.iter().all(|(partition, own)| {
        let has =
            |done: &PartitionPosition| done.covers(own) || (bare.contains(partition) && done.next() >= own.next());
        committed.get(partition).is_some_and(has)
    })
}
