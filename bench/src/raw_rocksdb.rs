use std::path::Path;

use kstate_store_rocksdb::{RocksDbMemory, RocksDbOptions};
use rocksdb::{
    BlockBasedOptions, ColumnFamily, ColumnFamilyDescriptor, DBWithThreadMode, FlushOptions, IteratorMode, Options,
    SingleThreaded, WriteBatch, WriteOptions,
};

use crate::{
    Result,
    data::{self, Key, VALUE_LEN},
    digest::{Contents, Digest},
    store::{CHANGELOG, Store, decode_count, is_commit_due, last_offset},
};

// As in a directory of kstate's, so that both can read the same one.
const RECORDS: &str = "default";
const OFFSETS: &str = "offsets";

/// What a record in a write batch has beside its key and value, at most.
const ENTRY_OVERHEAD: usize = 8;

/// `RocksDB`, used directly, with the options of the kstate store beside it: one write batch for each commit of a load;
/// updates are written through.
pub(crate) struct RawRocksDb {
    db: DBWithThreadMode<SingleThreaded>,
    write: WriteOptions,
}

impl RawRocksDb {
    pub(crate) fn open(
        directory: &Path,
        options: &RocksDbOptions,
        memory: &RocksDbMemory,
        write: WriteOptions,
    ) -> Result<Self> {
        let records = options.engine_options();
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(memory.cache());
        let mut offsets = Options::default();
        offsets.set_write_buffer_size(1 << 20);
        offsets.set_block_based_table_factory(&tables);
        let families =
            [ColumnFamilyDescriptor::new(RECORDS, records.clone()), ColumnFamilyDescriptor::new(OFFSETS, offsets)];
        let db = DBWithThreadMode::open_cf_descriptors(&records, directory, families)?;
        Ok(Self { db, write })
    }

    fn records(&self) -> Result<&ColumnFamily> {
        Ok(self.db.cf_handle(RECORDS).ok_or("no column family for the records")?)
    }

    fn offsets(&self) -> Result<&ColumnFamily> {
        Ok(self.db.cf_handle(OFFSETS).ok_or("no column family for the offsets")?)
    }

    /// Brings the records into as few files as possible.
    pub(crate) fn compact(&self) -> Result<()> {
        self.db.compact_range_cf(self.records()?, None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }
}

impl Store for RawRocksDb {
    fn load(&mut self, records: u64, commit_every: u64) -> Result<()> {
        let (family, offsets) = (self.records()?, self.offsets()?);
        let capacity = usize::try_from(commit_every.min(records))? * (16 + VALUE_LEN + ENTRY_OVERHEAD);
        let new_batch = || WriteBatch::with_capacity_bytes(capacity);
        let mut batch = new_batch();
        for index in 0..records {
            batch.put_cf(family, data::key(index), data::value(index));
            if is_commit_due(index + 1, records, commit_every) {
                batch.put_cf(offsets, CHANGELOG, last_offset(index + 1).to_be_bytes());
                self.db.write_opt(std::mem::replace(&mut batch, new_batch()), &self.write)?;
            }
        }
        Ok(())
    }

    fn update(&mut self, keys: &[Key], commit_every: u64) -> Result<()> {
        let (family, offsets) = (self.records()?, self.offsets()?);
        for (count, key) in (1..).zip(keys) {
            let found = decode_count(self.db.get_pinned_cf(family, key)?.as_deref());
            self.db.put_cf_opt(family, key, (found + 1).to_be_bytes(), &self.write)?;
            if is_commit_due(count, keys.len() as u64, commit_every) {
                self.db.put_cf_opt(offsets, CHANGELOG, last_offset(count).to_be_bytes(), &self.write)?;
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[Key]) -> Result<Digest> {
        let family = self.records()?;
        let mut digest = Digest::default();
        for key in keys {
            if let Some(value) = self.db.get_pinned_cf(family, key)? {
                digest.look_at_value(&value);
            }
        }
        Ok(digest)
    }

    fn range(&mut self, starts: &[Key], rows: usize) -> Result<Digest> {
        let family = self.records()?;
        let mut digest = Digest::default();
        for start in starts {
            let mut cursor = self.db.raw_iterator_cf(family);
            for row in 0..rows {
                if row == 0 {
                    cursor.seek(start);
                } else {
                    cursor.next();
                }
                let Some((key, value)) = cursor.item() else { break };
                digest.look_at_row(key, value);
            }
            cursor.status()?;
        }
        Ok(digest)
    }

    fn contents(&mut self) -> Result<Contents> {
        let mut rows = Digest::default();
        for row in self.db.iterator_cf(self.records()?, IteratorMode::Start) {
            let (key, value) = row?;
            rows.read_row(&key, &value);
        }
        let offset = self.db.get_pinned_cf(self.offsets()?, CHANGELOG)?;
        Ok(Contents { rows, offset: offset.map(|offset| decode_count(Some(&offset))) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.flush_cfs_opt(&[self.records()?, self.offsets()?], &FlushOptions::default())?;
        Ok(())
    }
}
