//! A disk in memory that fails, fills up and loses power when told to.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "shared by tests, which fail by panicking"
)]

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use kstate_api::{Offset, TopicPartition};
use kstate_store_redb::redb::StorageBackend;

pub fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

pub fn source() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

pub fn offset(n: i64) -> Offset {
    Offset::new(n).unwrap()
}

/// `SplitMix64`: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub fn coin(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }
}

/// How an operation fails.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It does nothing, once.
    Error,
    /// A write gets half through, once; anything else does nothing.
    Torn,
    /// It and everything after it does nothing.
    Dead,
}

#[derive(Debug, Default)]
struct Inner {
    /// What a read finds.
    bytes: Vec<u8>,
    /// What a power loss would surely leave.
    synced: Vec<u8>,
    /// What it may leave as well.
    unsynced: Vec<Operation>,
    operations: u64,
    fault: Option<(u64, Fault)>,
    fired: bool,
    dead: bool,
    /// Pages that were ever written take up room; a length does not.
    pages: BTreeSet<u64>,
    capacity: Option<usize>,
}

#[derive(Clone, Debug)]
enum Operation {
    Len(u64),
    Write(u64, Vec<u8>),
}

const PAGE: u64 = 4096;
const SECTOR: usize = 512;

impl Operation {
    /// Writes only the sectors that `keep` names.
    fn carry_out(&self, bytes: &mut Vec<u8>, mut keep: impl FnMut(usize) -> bool) {
        match self {
            Self::Len(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
            Self::Write(at, data) => {
                for (n, sector) in data.chunks(SECTOR).enumerate().filter(|(n, _)| keep(*n)) {
                    let at = usize::try_from(*at).unwrap() + n * SECTOR;
                    bytes[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk of its own that holds `bytes`, synced.
    pub fn with(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Inner { synced: bytes.clone(), bytes, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic in the engine, which a test is about, leaves nothing half done in here.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.inner().bytes.clone()
    }

    /// Makes the `n`th write, length or sync from now on fail (the first is 1).
    pub fn fail_at(&self, n: u64, fault: Fault) {
        let mut inner = self.inner();
        inner.fault = Some((inner.operations + n, fault));
        inner.fired = false;
    }

    /// Ends all faults, and tells whether one happened.
    pub fn heal(&self) -> bool {
        let mut inner = self.inner();
        (inner.fault, inner.dead) = (None, false);
        inner.fired
    }

    /// The room that is left, in pages; `None` is any.
    pub fn set_free_pages(&self, free: Option<usize>) {
        let mut inner = self.inner();
        inner.capacity = free.map(|free| inner.pages.len() + free);
    }

    /// What may be on the disk after the power fails now: all that was synced, and any part of what was not, down to
    /// single sectors, but none without the lengths before it.
    pub fn after_power_loss(&self, random: &mut Random) -> Self {
        let inner = self.inner();
        let mut bytes = inner.synced.clone();
        for operation in &inner.unsynced {
            let (all, none) = (random.coin(), random.coin());
            operation.carry_out(&mut bytes, |_| all || !none && random.coin());
        }
        Self::with(bytes)
    }
}

impl Inner {
    /// Counts an operation; `Ok(Some(_))` if it is to be torn.
    fn operate(&mut self) -> io::Result<Option<Fault>> {
        self.operations += 1;
        if self.dead {
            return Err(io::Error::other("the disk is dead"));
        }
        match self.fault {
            Some((at, fault)) if at == self.operations => {
                self.fired = true;
                match fault {
                    Fault::Torn => Ok(Some(fault)),
                    Fault::Error => Err(io::Error::other("injected")),
                    Fault::Dead => {
                        self.dead = true;
                        Err(io::Error::other("injected, and dead from now on"))
                    }
                }
            }
            _ => Ok(None),
        }
    }

    fn take_pages(&mut self, at: u64, len: usize) -> io::Result<()> {
        let touched: Vec<_> = (at / PAGE..(at + len as u64).div_ceil(PAGE)).collect();
        let new = touched.iter().filter(|page| !self.pages.contains(page)).count();
        if self.capacity.is_some_and(|capacity| self.pages.len() + new > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.pages.extend(touched);
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        let start = usize::try_from(at).unwrap();
        self.bytes[start..start + data.len()].copy_from_slice(data);
        self.unsynced.push(Operation::Write(at, data.to_vec()));
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let start = usize::try_from(offset).unwrap();
        let found = inner.bytes.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        inner.bytes.resize(usize::try_from(len).unwrap(), 0);
        inner.pages.retain(|page| page * PAGE < len);
        inner.unsynced.push(Operation::Len(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        let Inner { synced, unsynced, .. } = &mut *inner;
        for operation in unsynced.drain(..) {
            operation.carry_out(synced, |_| true);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let torn = inner.operate()?.is_some();
        inner.take_pages(offset, data.len())?;
        if torn {
            inner.write(offset, &data[..data.len() / 2]);
            return Err(io::Error::other("injected, half written"));
        }
        inner.write(offset, data);
        Ok(())
    }
}
