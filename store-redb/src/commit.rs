use kstate_api::{CommitOutcome, Error, Result, WriteBatch, codec};
use redb::{Database, WriteTransaction};

use crate::{
    error::{caught, engine},
    layout::{self, META, OFFSETS, Offsets, RECORDS},
};

/// The end of a commit; a failed one says what became of it.
pub(crate) type Committed<T> = std::result::Result<T, (Error, CommitOutcome)>;

/// A transaction with everything in it, ready to be committed.
pub(crate) struct Staged {
    transaction: WriteTransaction,
    /// If it is to be durable: the offsets that are durable then.
    pub(crate) durable_offsets: Option<Offsets>,
}

/// Writes into a transaction. Nothing of it can ever be seen unless it is committed.
pub(crate) fn stage(
    database: &Database,
    durable: bool,
    write: impl FnOnce(&WriteTransaction) -> Result<()>,
) -> Result<Staged> {
    caught("cannot write", || {
        let mut transaction = database.begin_write().map_err(|error| engine("cannot begin to write", error))?;
        if durable {
            // Without it, opening the store after a crash reads the whole file.
            transaction.set_quick_repair(true);
        } else {
            transaction
                .set_durability(redb::Durability::None)
                .map_err(|error| engine("cannot begin to write", error))?;
        }
        write(&transaction)?;
        let durable_offsets = if durable {
            let offsets = transaction.open_table(OFFSETS).map_err(|error| engine("cannot read the offsets", error))?;
            Some(layout::read_offsets(&offsets)?)
        } else {
            None
        };
        Ok(Staged { transaction, durable_offsets })
    })
}

/// Writes `batch`.
pub(crate) fn write_batch(transaction: &WriteTransaction, batch: &WriteBatch) -> Result<()> {
    let what = "cannot write the batch";
    if batch.records().next().is_some() {
        let mut records = transaction.open_table(RECORDS).map_err(|error| engine(what, error))?;
        for (key, value) in batch.records() {
            match value {
                Some(value) => records.insert(key, &**value),
                None => records.remove(key),
            }
            .map_err(|error| engine(what, error))?;
        }
    }
    let mut offsets = transaction.open_table(OFFSETS).map_err(|error| engine(what, error))?;
    let mut meta = transaction.open_table(META).map_err(|error| engine(what, error))?;
    if batch.forgets_offsets() {
        offsets.retain(|_, _| false).map_err(|error| engine(what, error))?;
        layout::remove_position(&mut meta)?;
    }
    for (partition, offset) in batch.offsets().iter() {
        let (key, value) = (layout::offset_key(partition), codec::encode_offset(offset));
        offsets.insert(key.as_slice(), value.as_slice()).map_err(|error| engine(what, error))?;
    }
    if !batch.position().is_empty() {
        let mut position = layout::read_position(&meta)?;
        position.merge(batch.position());
        layout::write_position(&mut meta, &position)?;
    }
    Ok(())
}

impl Staged {
    /// The point of no return: returns the offsets that are durable now, or what became of the commit.
    pub(crate) fn commit(self) -> Committed<Option<Offsets>> {
        let Self { transaction, durable_offsets } = self;
        let mut outcome = CommitOutcome::Unknown;
        let committed = caught("cannot commit", || {
            transaction.commit().map_err(|error| {
                if matches!(error, redb::CommitError::TransactionPoisoned) {
                    // The engine refused to begin, and rolled back.
                    outcome = CommitOutcome::NotApplied;
                }
                engine("cannot commit", error)
            })
        });
        match committed {
            Ok(()) => Ok(durable_offsets),
            Err(error) => Err((error, outcome)),
        }
    }
}
