use std::{
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};

/// The first bytes of every redb file, written after everything else that makes an empty one.
const MAGIC: [u8; 9] = *b"redb\x1A\x0A\xA9\x0D\x0A";
/// Where in the file's header a commit slot, whose first byte is the file format's version, begins.
const SLOTS: [usize; 2] = [64, 192];
const HEADER_LEN: usize = 320;
/// The newest file format that the engine reads.
const FILE_FORMAT: u8 = 3;
/// An empty redb file is far smaller.
const MAX_UNFINISHED_LEN: u64 = 1 << 20;

/// A storage that leaves what is below it alone until it is told to go ahead.
///
/// redb marks its file, and recovers it after a crash, before anything in it can be read; but a store of a newer
/// version must be refused untouched. So while a store is opened, writes are kept here, and reads see them. They are
/// carried out, in their order, once it is clear that the store is ours; else they are forgotten.
///
/// It also finds the file that a crash left between its creation and its first bytes, which redb takes for something
/// else, and shows it as the empty one that it is.
#[derive(Debug)]
pub(crate) struct HeldStorage<S> {
    below: S,
    released: AtomicBool,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// What to carry out.
    writes: Vec<Write>,
    /// As the writes leave it; `None` until somebody asked, under redb's lock.
    len: Option<u64>,
    new: bool,
    newer_format: Option<u8>,
}

#[derive(Debug)]
enum Write {
    Len(u64),
    Data(u64, Vec<u8>),
    Sync,
}

impl<S: StorageBackend> HeldStorage<S> {
    pub(crate) fn new(below: S) -> Arc<Self> {
        Arc::new(Self { below, released: AtomicBool::new(false), held: Mutex::default() })
    }

    /// For redb to keep.
    pub(crate) fn handle(self: &Arc<Self>) -> HeldHandle<S> {
        HeldHandle(Arc::clone(self))
    }

    /// Carries out what was held, and everything from now on at once.
    pub(crate) fn release(&self) -> io::Result<()> {
        let mut held = self.held.lock();
        for write in &held.writes {
            match write {
                Write::Len(len) => self.below.set_len(*len)?,
                Write::Data(offset, data) => self.below.write(*offset, data)?,
                Write::Sync => self.below.sync_data()?,
            }
        }
        // Kept if one failed: reads go on seeing them.
        held.writes = Vec::new();
        self.released.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether there was no database in it when it was opened.
    pub(crate) fn is_new(&self) -> bool {
        self.held.lock().new
    }

    /// The version of redb's file format, if it is one that this redb does not know yet.
    pub(crate) fn newer_format(&self) -> Option<u8> {
        self.held.lock().newer_format
    }

    /// What is held, unless it was released.
    fn held(&self) -> Option<parking_lot::MutexGuard<'_, Held>> {
        if self.released.load(Ordering::Acquire) {
            return None;
        }
        let held = self.held.lock();
        (!self.released.load(Ordering::Acquire)).then_some(held)
    }

    fn len_of(&self, held: &mut Held) -> io::Result<u64> {
        if let Some(len) = held.len {
            return Ok(len);
        }
        let len = self.inspect(held)?;
        Ok(*held.len.insert(len))
    }

    fn inspect(&self, held: &mut Held) -> io::Result<u64> {
        let len = self.below.len()?;
        let mut header = [0; HEADER_LEN];
        let known = header.len().min(usize::try_from(len).unwrap_or(usize::MAX));
        let (read, _) = header.split_at_mut(known);
        self.below.read(0, read)?;
        if header.starts_with(&MAGIC) {
            // The lowest bit of the byte after the magic says which slot holds the last commit.
            let last = header.get(MAGIC.len()).map_or(0, |flags| usize::from(flags & 1));
            let version = SLOTS.get(last).and_then(|slot| header.get(*slot)).copied();
            held.newer_format = version.filter(|version| *version > FILE_FORMAT);
            return Ok(len);
        }
        held.new = len == 0 || self.is_unfinished(&header, len)?;
        if held.new && len > 0 {
            held.writes.push(Write::Len(0));
            return Ok(0);
        }
        Ok(len)
    }

    /// Whether nothing but an unfinished header was ever written.
    fn is_unfinished(&self, header: &[u8; HEADER_LEN], len: u64) -> io::Result<bool> {
        if len > MAX_UNFINISHED_LEN || !header.starts_with(&[0; MAGIC.len()]) {
            return Ok(false);
        }
        let mut all = vec![0; usize::try_from(len).unwrap_or_default()];
        self.below.read(0, &mut all)?;
        Ok(all.iter().skip(HEADER_LEN).all(|byte| *byte == 0))
    }

    /// What a read would find if everything held had been carried out.
    fn read_held(&self, held: &mut Held, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        if end > self.len_of(held)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let below = window(offset, out.len(), 0, self.below.len()?);
        out.fill(0);
        if let Some(part) = out.get_mut(below).filter(|part| !part.is_empty()) {
            self.below.read(offset, part)?;
        }
        for write in &held.writes {
            match write {
                Write::Len(len) => {
                    let gone = window(offset, out.len(), *len, u64::MAX);
                    out.get_mut(gone).unwrap_or_default().fill(0);
                }
                Write::Data(at, data) => {
                    let covered = window(offset, out.len(), *at, at.saturating_add(data.len() as u64));
                    let from = usize::try_from(offset.saturating_sub(*at)).unwrap_or(usize::MAX);
                    for (byte, new) in out.get_mut(covered).unwrap_or_default().iter_mut().zip(data.iter().skip(from)) {
                        *byte = *new;
                    }
                }
                Write::Sync => {}
            }
        }
        Ok(())
    }
}

/// The part of the `len` bytes from `offset` that lies in `from..to`, counted from `offset`.
fn window(offset: u64, len: usize, from: u64, to: u64) -> std::ops::Range<usize> {
    let clamp = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX).min(len);
    clamp(from)..clamp(to).max(clamp(from))
}

/// What redb owns of a [`HeldStorage`].
#[derive(Debug)]
pub(crate) struct HeldHandle<S>(Arc<HeldStorage<S>>);

impl<S: StorageBackend> StorageBackend for HeldHandle<S> {
    fn len(&self) -> io::Result<u64> {
        match self.0.held() {
            Some(mut held) => self.0.len_of(&mut held),
            None => self.0.below.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.0.held() {
            Some(mut held) => self.0.read_held(&mut held, offset, out),
            None => self.0.below.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let Some(mut held) = self.0.held() else { return self.0.below.set_len(len) };
        held.len = Some(len);
        held.writes.push(Write::Len(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let Some(mut held) = self.0.held() else { return self.0.below.sync_data() };
        held.writes.push(Write::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let Some(mut held) = self.0.held() else { return self.0.below.write(offset, data) };
        let end = offset.saturating_add(data.len() as u64);
        held.len = Some(self.0.len_of(&mut held)?.max(end));
        held.writes.push(Write::Data(offset, data.to_vec()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.below.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests;
