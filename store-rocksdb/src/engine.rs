//! The open database: everything that is asked of it, in the words of the contract.

use std::{fmt, path::Path};

use kstate_api::{Error, ErrorKind, Offset, Position, Result, TopicPartition, codec};
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DBWithThreadMode, FlushOptions, ReadOptions, ReadTier, SingleThreaded,
    WriteBatch, WriteOptions,
};

use crate::{
    RocksDbOptions,
    bookkeeping::{Bookkeeping, Changes},
    directory, error,
    inspection::{self, Inspection},
    layout::{self, Layout, OFFSETS_FAMILY, PLAIN_FAMILY, POSITION},
};

/// Named in full: the binding's `DB` is another type if any crate of a build asks for its feature `multi-threaded-cf`.
pub(crate) type Db = DBWithThreadMode<SingleThreaded>;

/// A disk with less room than this counts as full: less than a common table takes.
const SMALL_ROOM: u64 = 16 << 20;

/// The open database of a store.
pub(crate) struct Engine {
    db: Db,
    layout: Layout,
    /// For reads of the last commit.
    latest: ReadOptions,
    /// For reads of what has reached the tables.
    persisted: ReadOptions,
}

impl Engine {
    /// Opens the store in `directory`, or makes one. Before it is opened it has been found to be none that this version
    /// must leave alone.
    pub(crate) fn open(directory: &Path, options: &RocksDbOptions) -> Result<Self> {
        let layout = options.layout();
        let other = layout.other_family();
        let found =
            if directory::holds_store(directory)? { Inspection::of(directory, &options.read_only()) } else { Ok(None) };
        let has_other = match found {
            Ok(Some(found)) => found.check(layout).map(|()| found.has_family(other))?,
            // A live owner may have been in the way of the look, or it is damaged: the engine tells when it opens it.
            Ok(None) | Err(_) => false,
        };
        let engine_options = options.engine_options();
        let mut families = vec![
            ColumnFamilyDescriptor::new(layout.data_family(), engine_options.clone()),
            ColumnFamilyDescriptor::new(OFFSETS_FAMILY, options.small_family()),
        ];
        if has_other || other == PLAIN_FAMILY {
            families.push(ColumnFamilyDescriptor::new(other, options.small_family()));
        }
        let failed = |error| error::engine("cannot open the store", error);
        let mut db = Db::open_cf_descriptors(&engine_options, directory, families).map_err(failed)?;
        // Again, as nobody else can change it any more.
        inspection::check(&db, layout)?;
        if has_other && other != PLAIN_FAMILY {
            // It is empty, but Kafka Streams refuses a plain store that has it.
            db.drop_cf(other).map_err(failed)?;
        }
        let mut persisted = ReadOptions::default();
        persisted.set_read_tier(ReadTier::Persisted);
        Ok(Self { db, layout, latest: ReadOptions::default(), persisted })
    }

    pub(crate) const fn db(&self) -> &Db {
        &self.db
    }

    pub(crate) const fn latest(&self) -> &ReadOptions {
        &self.latest
    }

    pub(crate) const fn persisted(&self) -> &ReadOptions {
        &self.persisted
    }

    pub(crate) fn data(&self) -> Result<&ColumnFamily> {
        family(&self.db, self.layout.data_family())
    }

    fn offsets(&self) -> Result<&ColumnFamily> {
        family(&self.db, OFFSETS_FAMILY)
    }

    pub(crate) fn get_with(&self, key: &[u8], options: &ReadOptions, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let found = self.db.get_pinned_cf_opt(self.data()?, key, options);
        let found = found.map_err(|error| error::engine("cannot read a record", error))?;
        Ok(found.map(|value| read(&value)).is_some())
    }

    pub(crate) fn offset(&self, partition: &TopicPartition, options: &ReadOptions) -> Result<Option<Offset>> {
        offset(&self.db, partition, options)
    }

    pub(crate) fn position(&self, options: &ReadOptions) -> Result<Position> {
        let found = self.db.get_pinned_cf_opt(self.offsets()?, POSITION, options);
        let found = found.map_err(|error| error::engine("cannot read the position", error))?;
        found.map_or_else(|| Ok(Position::new()), |bytes| codec::decode_position(&bytes))
    }

    pub(crate) fn bookkeeping(&self) -> Result<Bookkeeping> {
        bookkeeping(&self.db)
    }

    pub(crate) fn approximate_num_entries(&self) -> Result<u64> {
        let count = self.db.property_int_value_cf(self.data()?, "rocksdb.estimate-num-keys");
        Ok(count.map_err(|error| error::engine("cannot estimate the number of records", error))?.unwrap_or(0))
    }

    pub(crate) fn property(&self, name: &str) -> Result<Option<String>> {
        let failed = |error| error::engine("cannot read a property", error);
        self.db.property_value_cf(self.data()?, name).map_err(failed)
    }

    /// A batch that makes `records` and `changes` one step. The records should be sorted.
    pub(crate) fn batch<'r>(
        &self,
        records: impl Iterator<Item = (&'r [u8], Option<&'r [u8]>)>,
        changes: &Changes,
        byte_size: usize,
    ) -> Result<WriteBatch> {
        let mut batch = WriteBatch::with_capacity_bytes(byte_size);
        put_rows(&mut batch, self.data()?, records);
        let changes = changes.iter().map(|(key, value)| (key.as_slice(), value.as_deref()));
        put_rows(&mut batch, self.offsets()?, changes);
        Ok(batch)
    }

    /// A batch that deletes every record and makes `changes`.
    pub(crate) fn wiping_batch(&self, changes: &Changes) -> Result<WriteBatch> {
        let mut batch = self.batch(std::iter::empty(), changes, 0)?;
        if let Some(last) = self.last_key()? {
            let end = [last.as_slice(), &[0]].concat();
            batch.delete_range_cf(self.data()?, [].as_slice(), end.as_slice());
        }
        Ok(batch)
    }

    fn last_key(&self) -> Result<Option<Vec<u8>>> {
        let mut rows = self.db.raw_iterator_cf_opt(self.data()?, total_order());
        rows.seek_to_last();
        let last = rows.key().map(<[u8]>::to_vec);
        rows.status().map_err(|error| error::engine("cannot find the last record", error))?;
        Ok(last)
    }

    pub(crate) fn write(&self, batch: WriteBatch, options: &WriteOptions) -> std::result::Result<(), rocksdb::Error> {
        self.db.write_opt(batch, options)
    }

    /// Writes everything that is only in memory or in the log to tables, both families at once.
    pub(crate) fn flush_tables(&self) -> Result<()> {
        let flushed = self.db.flush_cfs_opt(&[self.data()?, self.offsets()?], &FlushOptions::default());
        flushed.map_err(|error| error::engine("cannot flush the store", error))
    }

    /// Sets about to write what is in memory to tables, and does not wait for it.
    pub(crate) fn start_flush(&self) -> Result<()> {
        let mut options = FlushOptions::default();
        options.set_wait(false);
        let started = self.db.flush_cfs_opt(&[self.data()?, self.offsets()?], &options);
        started.map_err(|error| error::engine("cannot flush the store", error))
    }

    /// How many bytes are in memory that nobody has set about to write to tables.
    pub(crate) fn active_buffers(&self) -> Result<usize> {
        let size = |family| self.db.property_int_value_cf(family, "rocksdb.cur-size-active-mem-table");
        let size = |family| size(family).map_err(|error| error::engine("cannot read a property", error));
        let (data, offsets) = (size(self.data()?)?.unwrap_or(0), size(self.offsets()?)?.unwrap_or(0));
        Ok(usize::try_from(data + offsets).unwrap_or(usize::MAX))
    }

    /// How many errors the engine has met in the background since it was opened.
    pub(crate) fn background_errors(&self) -> Result<u64> {
        let count = self.db.property_int_value_cf(self.data()?, "rocksdb.background-errors");
        Ok(count.map_err(|error| error::engine("cannot read a property", error))?.unwrap_or(0))
    }

    /// Whether the disk has less room than a table needs; `false` if nobody can tell.
    pub(crate) fn disk_is_full(&self) -> bool {
        let room = rustix::fs::statvfs(self.db.path()).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        room.is_ok_and(|room| room < SMALL_ROOM)
    }

    /// Makes the log, and with it every write that went through it, survive a power loss.
    pub(crate) fn sync_log(&self) -> Result<()> {
        self.db.flush_wal(true).map_err(|error| error::engine("cannot synchronise the log", error))
    }

    /// Gives back the space of deleted records.
    pub(crate) fn compact(&self) -> Result<()> {
        self.db.compact_range_cf(self.data()?, None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("directory", &self.db.path())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

fn put_rows<'r>(
    batch: &mut WriteBatch,
    family: &ColumnFamily,
    rows: impl Iterator<Item = (&'r [u8], Option<&'r [u8]>)>,
) {
    for (key, value) in rows {
        match value {
            Some(value) => batch.put_cf(&family, key, value),
            None => batch.delete_cf(&family, key),
        }
    }
}

/// Options of a scan over all keys, whatever prefixes a table's filters were made for.
pub(crate) fn total_order() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    options
}

fn family<'d>(db: &'d Db, name: &str) -> Result<&'d ColumnFamily> {
    db.cf_handle(name).ok_or_else(|| Error::new(ErrorKind::Io, format!("the column family `{name}` is not open")))
}

/// The offset of `partition`; `None` also in a store that has no offsets yet.
pub(crate) fn offset(db: &Db, partition: &TopicPartition, options: &ReadOptions) -> Result<Option<Offset>> {
    let Some(offsets) = db.cf_handle(OFFSETS_FAMILY) else { return Ok(None) };
    let found = db.get_pinned_cf_opt(offsets, layout::partition_row(partition), options);
    let found = found.map_err(|error| error::engine("cannot read an offset", error))?;
    found.map_or(Ok(None), |bytes| layout::decode_offset(partition, &bytes))
}

/// All rows of the `offsets` family; none in a store that has no such family yet.
pub(crate) fn bookkeeping(db: &Db) -> Result<Bookkeeping> {
    let mut rows = Vec::new();
    if let Some(offsets) = db.cf_handle(OFFSETS_FAMILY) {
        let mut cursor = db.raw_iterator_cf_opt(offsets, total_order());
        cursor.seek_to_first();
        while let Some((key, value)) = cursor.item() {
            rows.push((key.to_vec(), value.to_vec()));
            cursor.next();
        }
        cursor.status().map_err(|error| error::engine("cannot read the offsets", error))?;
    }
    Ok(rows.into_iter().collect())
}

/// Whether the family `name` holds no record, or is not there.
pub(crate) fn is_empty(db: &Db, name: &str) -> Result<bool> {
    let Some(family) = db.cf_handle(name) else { return Ok(true) };
    let mut rows = db.raw_iterator_cf_opt(family, total_order());
    rows.seek_to_first();
    let empty = !rows.valid();
    rows.status().map_err(|error| error::engine("cannot read the store", error))?;
    Ok(empty)
}
