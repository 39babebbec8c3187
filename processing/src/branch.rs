use std::{mem, slice};

use crate::{FanOut, Role, dropped_branches};

/// What a branch answers to: the place of an entry in a table, and which of the entries that were ever there it means.
/// So an entry that is resolved leaves nothing behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) entry: u64,
    pub(crate) slot: u32,
    pub(crate) table: u32,
    pub(crate) role: Role,
}

/// One copy of a record on its way, and the duty to say what became of it, once.
///
/// It cannot be copied, and each answer takes it: answering twice does not compile. Dropped without an answer, on
/// whatever thread, it counts as failed.
///
/// ```compile_fail,E0382
/// # use std::time::Instant;
/// # use kstate_processing::{AckSettings, AckTable, FanOut, Role};
/// # let mut table: AckTable<u64, String> = AckTable::new(AckSettings::default()).unwrap();
/// # let edge = FanOut::new([Role::Required]).unwrap();
/// let branch = table.open(7, &edge, Instant::now()).unwrap().next().unwrap();
/// table.ack(branch);
/// table.ack(branch); // used after it was moved
/// ```
#[derive(Debug)]
#[must_use = "a branch that is dropped counts as failed"]
pub struct Branch {
    token: Token,
}

impl Branch {
    pub(crate) const fn new(token: Token) -> Self {
        Self { token }
    }

    pub(crate) const fn token(&self) -> Token {
        self.token
    }

    /// Ends the duty.
    #[inline]
    pub(crate) fn into_token(self) -> Token {
        let token = self.token;
        mem::forget(self);
        token
    }
}

impl Drop for Branch {
    #[inline]
    fn drop(&mut self) {
        if self.token.role != Role::Ignored {
            dropped_branches::report(self.token);
        }
    }
}

/// The branches of one record, in the order of the roles. Those that are not taken count as failed.
///
/// ```
/// # use std::time::Instant;
/// # use kstate_processing::{AckSettings, AckTable, FanOut, Role};
/// # let mut table: AckTable<u64, String> = AckTable::new(AckSettings::default()).unwrap();
/// let edge = FanOut::new([Role::Required, Role::Ignored]).unwrap();
/// let branches = table.open(7, &edge, Instant::now()).unwrap();
/// assert_eq!(branches.len(), 2);
/// ```
#[derive(Debug)]
#[must_use = "branches that are not taken count as failed"]
pub struct Branches<'f> {
    roles: slice::Iter<'f, Role>,
    /// Of any role; that of each branch is put in its place.
    token: Token,
}

impl<'f> Branches<'f> {
    pub(crate) fn new(fan_out: &'f FanOut, token: Token) -> Self {
        Self { roles: fan_out.roles().iter(), token }
    }
}

impl Iterator for Branches<'_> {
    type Item = Branch;

    // Once for each branch of each record, from another crate.
    #[inline]
    fn next(&mut self) -> Option<Branch> {
        let role = *self.roles.next()?;
        // Below a branch without a say nobody has one.
        let role = if self.token.role == Role::Ignored { Role::Ignored } else { role };
        Some(Branch::new(Token { role, ..self.token }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.roles.size_hint()
    }
}

impl ExactSizeIterator for Branches<'_> {}

impl Drop for Branches<'_> {
    #[inline]
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
