use std::{fs, path::Path, thread, time::Duration};

use kstate_api::{ChangelogOffsets, Error, ErrorKind, Result, TopicPartition};
use rocksdb::{ColumnFamilyDescriptor, Options, ReadOptions};

use crate::{
    directory,
    engine::{self, Db},
    error,
    layout::{self, Layout, TIMESTAMPED_FAMILY},
};

/// How often a look is repeated if the store's owner changes its files meanwhile.
const ATTEMPTS: u32 = 10;
const NAP: Duration = Duration::from_millis(2);

/// A look into a store that changes nothing and takes no lock: another may own it.
pub(crate) struct Inspection {
    db: Db,
    families: Vec<String>,
}

impl Inspection {
    /// Looks into `directory` with those of [`read_only`](crate::RocksDbOptions::read_only); `None` if there is no store.
    pub(crate) fn of(directory: &Path, options: &Options) -> Result<Option<Self>> {
        // First, because opening read-only makes a directory that is missing.
        if !directory::holds_store(directory)? {
            return Ok(None);
        }
        let mut missing = None;
        for _ in 0..ATTEMPTS {
            // A flush of the owner writes its manifest and then deletes logs. A look that read the one before and the
            // others after would miss what went from the logs into tables.
            let before = manifest(directory);
            match Self::attempt(directory, options) {
                Ok(found) if before.is_some() && manifest(directory) == before => return Ok(Some(found)),
                Ok(_) => missing = None,
                Err(error) if error::is_missing_file(&error) => missing = Some(error),
                Err(error) => return Err(failed(error)),
            }
            thread::sleep(NAP);
        }
        // A file that a live owner has deleted is not missed again and again.
        Err(missing
            .map_or_else(|| Error::new(ErrorKind::Busy, "the store's owner is changing it all the time"), failed))
    }

    fn attempt(directory: &Path, options: &Options) -> std::result::Result<Self, rocksdb::Error> {
        let families = Db::list_cf(options, directory)?;
        let known = families.iter().filter(|name| layout::is_known_family(name));
        let descriptors = known.map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
        let db = Db::open_cf_descriptors_read_only(options, directory, descriptors, false)?;
        Ok(Self { db, families })
    }

    /// Refuses what this version cannot open in that layout.
    pub(crate) fn check(&self, layout: Layout) -> Result<()> {
        let unknown: Vec<_> = self.families.iter().filter(|name| !layout::is_known_family(name)).collect();
        if !unknown.is_empty() {
            let message = format!("the store has column families that this version does not know: {unknown:?}");
            return Err(Error::new(ErrorKind::NewerFormat, message));
        }
        check(&self.db, layout)
    }

    pub(crate) fn has_family(&self, name: &str) -> bool {
        self.families.iter().any(|family| family == name)
    }

    /// Those of `partitions` that have an offset.
    pub(crate) fn offsets(&self, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let mut offsets = ChangelogOffsets::new();
        let options = ReadOptions::default();
        for partition in partitions {
            if let Some(offset) = engine::offset(&self.db, partition, &options)? {
                offsets.insert(partition.clone(), offset);
            }
        }
        Ok(offsets)
    }
}

fn failed(error: rocksdb::Error) -> Error {
    error::engine("cannot look into the store", error)
}

/// The name of the store's manifest and its length, which every flush changes; `None` if it is just being replaced.
fn manifest(directory: &Path) -> Option<(String, u64)> {
    let name = fs::read_to_string(directory.join("CURRENT")).ok()?;
    let length = fs::metadata(directory.join(name.trim_end())).ok()?.len();
    Some((name, length))
}

/// Refuses a newer format, and records that lie where stores of another layout have them.
pub(crate) fn check(db: &Db, layout: Layout) -> Result<()> {
    engine::bookkeeping(db)?.check()?;
    let other = layout.other_family();
    if engine::is_empty(db, other)? {
        return Ok(());
    }
    let message = if other == TIMESTAMPED_FAMILY {
        "the store has timestamped records, but is opened as a plain one; open it as timestamped, or wipe and restore it"
    } else {
        "the store has plain records, but is opened as a timestamped one; open it as plain, or wipe and restore it (if \
         Kafka Streams has moved a part of them, it has to finish first)"
    };
    Err(Error::new(ErrorKind::Config, message))
}
