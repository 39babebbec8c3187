use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

use crate::branch::Token;

/// Where a table finds the branches that were dropped without an answer, on whatever thread.
///
/// Branches name their table by a number and find this in a registry, when they are dropped unanswered. Else each
/// branch would count references, which would cost as much as all the rest of its life.
#[derive(Debug, Default)]
struct Mailbox {
    is_used: AtomicBool,
    tokens: Mutex<Vec<Token>>,
}

static TABLES: Mutex<BTreeMap<u32, Arc<Mailbox>>> = Mutex::new(BTreeMap::new());

/// Tells the table, if there still is one, that `token` was dropped.
pub(crate) fn report(token: Token) {
    let mailbox = TABLES.lock().get(&token.table).cloned();
    if let Some(mailbox) = mailbox {
        mailbox.tokens.lock().push(token);
        mailbox.is_used.store(true, Ordering::Release);
    }
}

/// A table's entry in the registry.
#[derive(Debug)]
pub(crate) struct DroppedBranches {
    table: u32,
    mailbox: Arc<Mailbox>,
}

impl DroppedBranches {
    pub(crate) fn register() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mailbox = Arc::new(Mailbox::default());
        let mut tables = TABLES.lock();
        // Numbers come again after 2^32 tables; one that is still in use is passed over.
        loop {
            let table = NEXT.fetch_add(1, Ordering::Relaxed);
            if let std::collections::btree_map::Entry::Vacant(entry) = tables.entry(table) {
                entry.insert(Arc::clone(&mailbox));
                return Self { table, mailbox };
            }
        }
    }

    pub(crate) const fn table(&self) -> u32 {
        self.table
    }

    /// Whether there may be something to take.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.mailbox.is_used.load(Ordering::Relaxed)
    }

    /// What was dropped since the last call.
    pub(crate) fn take(&self) -> Vec<Token> {
        self.mailbox.is_used.swap(false, Ordering::Acquire);
        mem::take(&mut self.mailbox.tokens.lock())
    }
}

impl Drop for DroppedBranches {
    fn drop(&mut self) {
        TABLES.lock().remove(&self.table);
    }
}
