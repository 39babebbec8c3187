//! What a store looks like inside: three tables, whose values other than records are in the forms of
//! [`kstate_api::codec`].

use std::collections::BTreeMap;

use kstate_api::{Error, ErrorKind, Offset, Position, Result, TopicPartition, codec};
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, TableHandle, WriteTransaction,
};

use crate::error::engine;

type Bytes = &'static [u8];
pub(crate) type ReadTable = ReadOnlyTable<Bytes, Bytes>;

/// Keys and values of the store's user.
pub(crate) const RECORDS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("records");
/// `topic-partition` to offset.
pub(crate) const OFFSETS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("offsets");
/// The header and the position.
pub(crate) const META: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("meta");

/// The layout's name in the header.
const LAYOUT: &str = "redb";
const HEADER: Bytes = b"header";
const POSITION: Bytes = b"position";

/// Offsets by the names of their partitions.
pub(crate) type Offsets = BTreeMap<Vec<u8>, Offset>;

pub(crate) fn offset_key(partition: &TopicPartition) -> Vec<u8> {
    partition.to_string().into_bytes()
}

/// Whether a file holds a store, and one that this version can read.
pub(crate) enum Found {
    /// A redb file without any table, as a crash before the first commit leaves it, too.
    Nothing,
    Store,
}

/// Looks before anything is written.
///
/// # Errors
/// `NewerFormat`; `Corrupted` if it is another program's file or the store is damaged.
pub(crate) fn inspect(transaction: &ReadTransaction) -> Result<Found> {
    let what = "cannot read the store's tables";
    let tables: Vec<_> = transaction.list_tables().map_err(|error| engine(what, error))?.collect();
    let multimaps = transaction.list_multimap_tables().map_err(|error| engine(what, error))?;
    if tables.is_empty() && multimaps.count() == 0 {
        return Ok(Found::Nothing);
    }
    if !tables.iter().any(|table| table.name() == META.name()) {
        return Err(Error::new(ErrorKind::Corrupted, "the file is a redb database, but not a store of kstate"));
    }
    let meta = open(transaction, META)?;
    match meta.get(HEADER).map_err(|error| engine(what, error))? {
        Some(header) => codec::check_header(header.value(), LAYOUT)?,
        None => return Err(Error::new(ErrorKind::Corrupted, "the store has no header")),
    }
    open(transaction, RECORDS)?;
    read_offsets(&open(transaction, OFFSETS)?)?;
    read_position(&meta)?;
    Ok(Found::Store)
}

pub(crate) fn open(transaction: &ReadTransaction, table: TableDefinition<'_, Bytes, Bytes>) -> Result<ReadTable> {
    transaction.open_table(table).map_err(|error| engine("cannot open a table of the store", error))
}

/// Makes an empty store in an empty file, durably.
pub(crate) fn create(database: &Database) -> Result<()> {
    let what = "cannot create the store";
    let mut transaction = database.begin_write().map_err(|error| engine(what, error))?;
    transaction.set_quick_repair(true);
    for table in [RECORDS, OFFSETS] {
        transaction.open_table(table).map_err(|error| engine(what, error))?;
    }
    let mut meta = transaction.open_table(META).map_err(|error| engine(what, error))?;
    meta.insert(HEADER, codec::encode_header(LAYOUT).as_slice()).map_err(|error| engine(what, error))?;
    drop(meta);
    transaction.commit().map_err(|error| engine(what, error))
}

/// Deletes everything but the header.
pub(crate) fn wipe(transaction: &WriteTransaction) -> Result<()> {
    let what = "cannot wipe the store";
    for table in [RECORDS, OFFSETS] {
        transaction.delete_table(table).map_err(|error| engine(what, error))?;
        transaction.open_table(table).map_err(|error| engine(what, error))?;
    }
    let mut meta = transaction.open_table(META).map_err(|error| engine(what, error))?;
    meta.remove(POSITION).map_err(|error| engine(what, error))?;
    Ok(())
}

pub(crate) fn read_offset(
    offsets: &impl ReadableTable<Bytes, Bytes>,
    partition: &TopicPartition,
) -> Result<Option<Offset>> {
    let key = offset_key(partition);
    let stored = offsets.get(key.as_slice()).map_err(|error| engine("cannot read an offset", error))?;
    stored.map(|bytes| codec::decode_offset(bytes.value())).transpose()
}

pub(crate) fn read_offsets(offsets: &impl ReadableTable<Bytes, Bytes>) -> Result<Offsets> {
    let what = "cannot read the offsets";
    let rows = offsets.range::<&[u8]>(..).map_err(|error| engine(what, error))?;
    rows.map(|row| {
        let (key, value) = row.map_err(|error| engine(what, error))?;
        Ok((key.value().to_vec(), codec::decode_offset(value.value())?))
    })
    .collect()
}

pub(crate) fn read_position(meta: &impl ReadableTable<Bytes, Bytes>) -> Result<Position> {
    let stored = meta.get(POSITION).map_err(|error| engine("cannot read the position", error))?;
    stored.map_or_else(|| Ok(Position::new()), |bytes| codec::decode_position(bytes.value()))
}

pub(crate) fn write_position(meta: &mut Table<'_, Bytes, Bytes>, position: &Position) -> Result<()> {
    let bytes = codec::encode_position(position)?;
    meta.insert(POSITION, bytes.as_slice()).map_err(|error| engine("cannot write the position", error))?;
    Ok(())
}

pub(crate) fn remove_position(meta: &mut Table<'_, Bytes, Bytes>) -> Result<()> {
    meta.remove(POSITION).map_err(|error| engine("cannot remove the position", error))?;
    Ok(())
}
