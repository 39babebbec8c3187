use std::{mem, time::Instant};

use crate::{Failure, FanOut, Role, branch::Token};

const NOWHERE: u32 = u32::MAX;

/// Where an entry brings its outcome.
#[derive(Debug)]
pub(crate) enum Upstream<R> {
    Root(R),
    Branch(Token),
    /// The very inputs of a merge: a range from the lowest to the highest would take in others.
    Merged(Box<[Token]>),
}

/// What is open: the branches of one record.
#[derive(Debug)]
pub(crate) struct Entry<R> {
    pub(crate) upstream: Upstream<R>,
    opened: Instant,
    required: u16,
    any_of: u16,
    /// An any-of branch succeeded, or there is none.
    has_any: bool,
}

impl<R> Entry<R> {
    pub(crate) fn new(upstream: Upstream<R>, fan_out: &FanOut, opened: Instant) -> Self {
        let FanOut { required, any_of, .. } = *fan_out;
        Self { upstream, opened, required, any_of, has_any: any_of == 0 }
    }

    /// Counts an ack of a required branch, if others have to answer; else nothing is done, and `false`.
    #[inline]
    pub(crate) fn count_down(&mut self, role: Role) -> bool {
        let leaves_others = role == Role::Required && self.required > 1;
        self.required -= u16::from(leaves_others);
        leaves_others
    }

    /// The outcome, if the answer of a branch of `role` is decisive.
    pub(crate) fn decide<C>(&mut self, role: Role, outcome: Result<(), Failure<C>>) -> Option<Result<(), Failure<C>>> {
        match (role, &outcome) {
            (Role::Ignored, _) => return None,
            (Role::Required, Ok(())) => self.required -= 1,
            (Role::Required, Err(_)) => return Some(outcome),
            (Role::AnyOf, _) => {
                self.any_of -= 1;
                self.has_any |= outcome.is_ok();
                if !self.has_any && self.any_of == 0 {
                    return Some(outcome);
                }
            }
        }
        (self.required == 0 && self.has_any).then_some(Ok(()))
    }
}

#[derive(Debug)]
struct Slot<R> {
    /// Which of all entries is here; zero if none is.
    id: u64,
    /// The neighbours in the order of opening; of a free slot, `newer` is the next free one.
    older: u32,
    newer: u32,
    entry: Option<Entry<R>>,
}

/// Open entries, found by their tokens, in the order in which they were opened.
#[derive(Debug)]
pub(crate) struct Entries<R> {
    slots: Vec<Slot<R>>,
    free: u32,
    oldest: u32,
    newest: u32,
    len: u32,
    last_id: u64,
}

impl<R> Entries<R> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: NOWHERE, oldest: NOWHERE, newest: NOWHERE, len: 0, last_id: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<R>>()
    }

    fn slot(&self, index: u32) -> Option<&Slot<R>> {
        self.slots.get(index as usize)
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<R>> {
        self.slots.get_mut(index as usize)
    }

    /// The slot it is in, and its number among all entries.
    pub(crate) fn insert(&mut self, entry: Entry<R>) -> (u32, u64) {
        self.last_id += 1;
        let id = self.last_id;
        let slot = Slot { id, older: self.newest, newer: NOWHERE, entry: Some(entry) };
        let index = self.free;
        if let Some(free) = self.slot_mut(index) {
            let next_free = mem::replace(free, slot).newer;
            self.free = next_free;
            self.link(index);
            return (index, id);
        }
        // The settings allow for fewer entries than there are indexes.
        let index = u32::try_from(self.slots.len()).unwrap_or(NOWHERE);
        self.slots.push(slot);
        self.link(index);
        (index, id)
    }

    fn link(&mut self, index: u32) {
        let before = mem::replace(&mut self.newest, index);
        match self.slot_mut(before) {
            Some(before) => before.newer = index,
            None => self.oldest = index,
        }
        self.len += 1;
    }

    pub(crate) fn holds(&self, token: Token) -> bool {
        self.slot(token.slot).is_some_and(|slot| slot.id == token.entry)
    }

    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut Entry<R>> {
        self.slot_mut(token.slot).filter(|slot| slot.id == token.entry)?.entry.as_mut()
    }

    pub(crate) fn remove(&mut self, token: Token) -> Option<Entry<R>> {
        let free = self.free;
        let slot = self.slot_mut(token.slot).filter(|slot| slot.id == token.entry)?;
        let entry = slot.entry.take()?;
        let (older, newer) = (slot.older, mem::replace(&mut slot.newer, free));
        slot.id = 0;
        self.free = token.slot;
        match self.slot_mut(older) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.slot_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.len -= 1;
        Some(entry)
    }

    fn oldest_slot(&self) -> Option<(&Slot<R>, &Entry<R>)> {
        let slot = self.slot(self.oldest)?;
        Some((slot, slot.entry.as_ref()?))
    }

    /// When the oldest entry was opened.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.oldest_slot().map(|(_, entry)| entry.opened)
    }

    /// The token of the oldest entry, if it was opened at `instant` or before.
    pub(crate) fn oldest_before(&self, instant: Option<Instant>) -> Option<Token> {
        let (slot, _) =
            self.oldest_slot().filter(|(_, entry)| instant.is_some_and(|instant| entry.opened <= instant))?;
        Some(Token { entry: slot.id, slot: self.oldest, table: 0, role: Role::Required })
    }

    pub(crate) fn remove_oldest(&mut self) -> Option<Upstream<R>> {
        let token = Token { entry: self.oldest_slot()?.0.id, slot: self.oldest, table: 0, role: Role::Required };
        Some(self.remove(token)?.upstream)
    }
}
