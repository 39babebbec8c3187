use std::path::Path;

use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::{
    Result,
    data::{self, Key},
    digest::{Contents, Digest},
    store::{CHANGELOG, Store, decode_count, is_commit_due, last_offset},
};

type Bytes = &'static [u8];

// As in a file of kstate's, so that both can read the same one.
const RECORDS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("records");
const OFFSETS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("offsets");

/// redb, used directly: one write transaction for each commit, and one read transaction for many reads.
pub(crate) struct RawRedb {
    database: Database,
    /// Every how many commits one is durable.
    durable_every: u64,
    commits: u64,
}

impl RawRedb {
    pub(crate) fn open(file: &Path, cache_bytes: usize, durable_every: u64) -> Result<Self> {
        let database = Builder::new().set_cache_size(cache_bytes).create(file)?;
        Ok(Self { database, durable_every, commits: 0 })
    }

    fn begin(&mut self) -> Result<WriteTransaction> {
        let mut transaction = self.database.begin_write()?;
        self.commits += 1;
        if self.commits.is_multiple_of(self.durable_every) {
            transaction.set_quick_repair(true);
        } else {
            transaction.set_durability(Durability::None)?;
        }
        Ok(transaction)
    }
}

fn commit(transaction: WriteTransaction, count: u64) -> Result<()> {
    let offset = last_offset(count).to_be_bytes();
    transaction.open_table(OFFSETS)?.insert(CHANGELOG.as_bytes(), offset.as_slice())?;
    Ok(transaction.commit()?)
}

impl Store for RawRedb {
    fn load(&mut self, records: u64, commit_every: u64) -> Result<()> {
        let mut index = 0;
        while index < records {
            let transaction = self.begin()?;
            let mut table = transaction.open_table(RECORDS)?;
            loop {
                table.insert(data::key(index).as_slice(), data::value(index).as_slice())?;
                index += 1;
                if is_commit_due(index, records, commit_every) {
                    break;
                }
            }
            drop(table);
            commit(transaction, index)?;
        }
        Ok(())
    }

    fn update(&mut self, keys: &[Key], commit_every: u64) -> Result<()> {
        let mut count = 0;
        for keys in keys.chunks(usize::try_from(commit_every)?) {
            let transaction = self.begin()?;
            let mut table = transaction.open_table(RECORDS)?;
            for key in keys {
                let found = decode_count(table.get(key.as_slice())?.as_ref().map(redb::AccessGuard::value));
                table.insert(key.as_slice(), (found + 1).to_be_bytes().as_slice())?;
            }
            drop(table);
            count += keys.len() as u64;
            commit(transaction, count)?;
        }
        Ok(())
    }

    fn get(&mut self, keys: &[Key]) -> Result<Digest> {
        let mut digest = Digest::default();
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        for key in keys {
            if let Some(value) = table.get(key.as_slice())? {
                digest.look_at_value(value.value());
            }
        }
        Ok(digest)
    }

    fn range(&mut self, starts: &[Key], rows: usize) -> Result<Digest> {
        let mut digest = Digest::default();
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        for start in starts {
            for row in table.range::<&[u8]>(start.as_slice()..)?.take(rows) {
                let (key, value) = row?;
                digest.look_at_row(key.value(), value.value());
            }
        }
        Ok(digest)
    }

    fn contents(&mut self) -> Result<Contents> {
        let transaction = self.database.begin_read()?;
        let mut rows = Digest::default();
        for row in transaction.open_table(RECORDS)?.iter()? {
            let (key, value) = row?;
            rows.read_row(key.value(), value.value());
        }
        let offset = transaction.open_table(OFFSETS)?.get(CHANGELOG.as_bytes())?;
        Ok(Contents { rows, offset: offset.map(|offset| decode_count(Some(offset.value()))) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.close()?)
    }
}
