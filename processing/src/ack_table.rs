use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use kstate_api::Result;

use crate::{
    AckSettings, AckStats, Branch, Branches, DeadEnd, Failure, FanOut, Full, OnTimeout, Role, Settlement,
    branch::Token,
    dropped_branches::DroppedBranches,
    entries::{Entries, Entry, Upstream},
};

type Outcome<C> = std::result::Result<(), Failure<C>>;

/// The acks of records that fan out, aggregated: exactly one outcome for each root (clause A2).
///
/// A root is done as soon as no [`Required`](Role::Required) branch is open and, if there are
/// [`AnyOf`](Role::AnyOf) branches, one of them succeeded. It has failed as soon as a required branch failed or every
/// any-of branch did. The first decisive answer decides, and a failure brings its cause; later answers are counted
/// and ignored.
///
/// Each answer takes constant time. An entry that is decided is free at once; nothing stays behind to recognize late
/// answers by. A full table gives back what it cannot take. The table belongs to one thread; [branches](Branch) can go
/// to others and come back.
///
/// ```
/// use std::time::Instant;
///
/// use kstate_processing::{AckSettings, AckTable, Failure, FanOut, Role};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut table = AckTable::new(AckSettings::default())?;
/// let edge = FanOut::new([Role::Required, Role::AnyOf, Role::AnyOf])?;
///
/// let mut branches = table.open("record 7", &edge, Instant::now())?;
/// let (stored, first, second) = (branches.next().unwrap(), branches.next().unwrap(), branches.next().unwrap());
/// table.fail(first, "index is down");
/// table.ack(stored);
/// assert_eq!(table.next_settlement(), None, "one index is enough, but it has not answered");
/// table.ack(second);
/// assert_eq!(table.next_settlement().unwrap().outcome, Ok(()));
///
/// let mut branches = table.open("record 8", &edge, Instant::now())?;
/// table.fail(branches.next().unwrap(), "the disk is full");
/// assert_eq!(table.next_settlement().unwrap().outcome, Err(Failure::Reported("the disk is full")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AckTable<R, C> {
    settings: AckSettings,
    entries: Entries<R>,
    roots: u32,
    /// What settling still has to tell, while it goes through a merge.
    told: Vec<(Token, Outcome<C>)>,
    settled: VecDeque<Settlement<R, C>>,
    dropped: DroppedBranches,
    stats: AckStats,
}

impl<R, C: Clone> AckTable<R, C> {
    /// An empty table.
    ///
    /// # Errors
    /// `Config` if the settings leave no room for a root, have too much room, or a timeout of zero.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// assert!(AckTable::<u64, String>::new(AckSettings::default()).is_ok());
    /// assert!(AckTable::<u64, String>::new(AckSettings::default().with_capacity(0, 0)).is_err());
    /// ```
    pub fn new(settings: AckSettings) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            settings,
            entries: Entries::new(),
            roots: 0,
            told: Vec::new(),
            settled: VecDeque::new(),
            dropped: DroppedBranches::register(),
            stats: AckStats::default(),
        })
    }

    /// Sends the record of `root` along the branches of `fan_out`.
    ///
    /// # Errors
    /// [`Full`] with the root if as many are open as there may be.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, FanOut, Full, Role};
    /// let mut table = AckTable::<u64, String>::new(AckSettings::default().with_capacity(1, 0)).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let branch = table.open(7, &edge, Instant::now()).unwrap();
    /// assert_eq!(table.open(8, &edge, Instant::now()).unwrap_err(), Full(8));
    /// ```
    pub fn open<'f>(
        &mut self,
        root: R,
        fan_out: &'f FanOut,
        now: Instant,
    ) -> std::result::Result<Branches<'f>, Full<R>> {
        if fan_out.is_dead_end() {
            let outcome = dead_end(fan_out);
            self.settle_root(root, outcome);
            return Ok(Branches::new(fan_out, self.nobody()));
        }
        if self.roots == self.settings.roots {
            self.stats.full += 1;
            return Err(Full(root));
        }
        self.roots += 1;
        Ok(self.enter(Upstream::Root(root), fan_out, now))
    }

    /// Sends the record of `branch` along further branches: `branch` is answered when they are. One of another table is
    /// dropped, counts as late, and the branches make no difference.
    ///
    /// # Errors
    /// [`Full`] with the branch if as many nested entries are open as there may be.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, FanOut, Role};
    /// # let now = Instant::now();
    /// # let mut table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required; 2]).unwrap();
    /// let mut branches = table.open(7, &edge, now).unwrap();
    /// let (first, second) = (branches.next().unwrap(), branches.next().unwrap());
    /// table.ack(first);
    /// for nested in table.split(second, &edge, now).unwrap() {
    ///     assert_eq!(table.next_settlement(), None);
    ///     table.ack(nested);
    /// }
    /// assert_eq!(table.next_settlement().unwrap().root, 7);
    /// ```
    pub fn split<'f>(
        &mut self,
        branch: Branch,
        fan_out: &'f FanOut,
        now: Instant,
    ) -> std::result::Result<Branches<'f>, Full<Branch>> {
        let token = branch.token();
        if !self.is_own(token) {
            self.send_home(branch.into_token());
            return Ok(Branches::new(fan_out, self.nobody()));
        }
        if token.role == Role::Ignored || !self.entries.holds(token) {
            // It goes on like any other, and what it answers makes no difference.
            return Ok(Branches::new(fan_out, branch.into_token()));
        }
        if fan_out.is_dead_end() {
            self.settle(branch.into_token(), dead_end(fan_out));
            return Ok(Branches::new(fan_out, self.nobody()));
        }
        if self.nested() == self.settings.nested {
            self.stats.full += 1;
            return Err(Full(branch));
        }
        Ok(self.enter(Upstream::Branch(branch.into_token()), fan_out, now))
    }

    /// Makes one record out of those of `inputs` (a batch, a window's result) and sends it along the branches of
    /// `fan_out`: each input is answered, alone, with what becomes of it. Those of another table are dropped and count as
    /// late.
    ///
    /// # Errors
    /// [`Full`] with the inputs if as many nested entries are open as there may be.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, FanOut, Role};
    /// # let now = Instant::now();
    /// # let mut table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let batch = [1, 9].map(|root| table.open(root, &edge, now).unwrap().next().unwrap());
    /// let sent = table.merge(Vec::from(batch), &edge, now).unwrap().next().unwrap();
    /// table.ack(sent);
    /// let mut done = [1, 9].map(|_| table.next_settlement().unwrap().root);
    /// done.sort();
    /// assert_eq!(done, [1, 9]);
    /// ```
    pub fn merge<'f>(
        &mut self,
        inputs: Vec<Branch>,
        fan_out: &'f FanOut,
        now: Instant,
    ) -> std::result::Result<Branches<'f>, Full<Vec<Branch>>> {
        if fan_out.is_dead_end() {
            let outcome = dead_end(fan_out);
            for input in inputs {
                self.settle(input.into_token(), outcome.clone());
            }
            return Ok(Branches::new(fan_out, self.nobody()));
        }
        if self.nested() == self.settings.nested {
            self.stats.full += 1;
            return Err(Full(inputs));
        }
        let (own, foreign): (Vec<_>, Vec<_>) =
            inputs.into_iter().map(Branch::into_token).partition(|input| self.is_own(*input));
        for input in foreign {
            self.send_home(input);
        }
        Ok(self.enter(Upstream::Merged(own.into()), fan_out, now))
    }

    fn enter<'f>(&mut self, upstream: Upstream<R>, fan_out: &'f FanOut, now: Instant) -> Branches<'f> {
        let entry = Entry::new(upstream, fan_out, now);
        let (slot, entry) = self.entries.insert(entry);
        Branches::new(fan_out, Token { entry, slot, table: self.dropped.table(), role: Role::Required })
    }

    /// Whether `token` is of this table. That of another may have the number of an entry that is here.
    const fn is_own(&self, token: Token) -> bool {
        token.table == self.dropped.table()
    }

    /// Drops a branch of another table: only that one can do anything with it.
    fn send_home(&mut self, token: Token) {
        self.stats.late += 1;
        drop(Branch::new(token));
    }

    /// A token on which nothing depends.
    fn nobody(&self) -> Token {
        Token { entry: 0, slot: u32::MAX, table: self.dropped.table(), role: Role::Ignored }
    }

    /// Says that what `branch` stands for is done.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, FanOut, Role};
    /// # let mut table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let branch = table.open(7, &edge, Instant::now()).unwrap().next().unwrap();
    /// table.ack(branch);
    /// assert_eq!(table.next_settlement().unwrap().outcome, Ok(()));
    /// ```
    #[inline]
    pub fn ack(&mut self, branch: Branch) {
        let token = branch.into_token();
        // Most answers leave others to be waited for; these are made short work of.
        if !(self.is_own(token) && self.entries.get_mut(token).is_some_and(|entry| entry.count_down(token.role))) {
            self.settle(token, Ok(()));
        }
    }

    /// Says that what `branch` stands for failed, and why.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, Failure, FanOut, Role};
    /// # let mut table = AckTable::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let branch = table.open(7, &edge, Instant::now()).unwrap().next().unwrap();
    /// table.fail(branch, "no");
    /// assert_eq!(table.next_settlement().unwrap().outcome, Err(Failure::Reported("no")));
    /// ```
    pub fn fail(&mut self, branch: Branch, cause: C) {
        self.settle(branch.into_token(), Err(Failure::Reported(cause)));
    }

    fn settle(&mut self, token: Token, outcome: Outcome<C>) {
        if self.is_own(token) {
            self.tell(token, outcome);
        } else {
            self.send_home(token);
        }
    }

    /// Brings an answer upstream as far as it decides something.
    fn tell(&mut self, mut token: Token, mut outcome: Outcome<C>) {
        loop {
            if let Some((upstream, decided)) = self.answer(token, outcome) {
                match upstream {
                    Upstream::Root(root) => {
                        self.roots -= 1;
                        self.settle_root(root, decided);
                    }
                    Upstream::Branch(parent) => {
                        (token, outcome) = (parent, decided);
                        continue;
                    }
                    Upstream::Merged(inputs) => {
                        self.told.extend(inputs.iter().map(|input| (*input, decided.clone())));
                    }
                }
            }
            match self.told.pop() {
                Some(next) => (token, outcome) = next,
                None => return,
            }
        }
    }

    /// Takes one answer into account; if it is decisive, removes the entry.
    fn answer(&mut self, token: Token, outcome: Outcome<C>) -> Option<(Upstream<R>, Outcome<C>)> {
        let Some(entry) = self.entries.get_mut(token) else {
            self.stats.late += u64::from(token.role != Role::Ignored);
            return None;
        };
        self.stats.dropped += u64::from(matches!(outcome, Err(Failure::Dropped)));
        let decided = entry.decide(token.role, outcome)?;
        Some((self.entries.remove(token)?.upstream, decided))
    }

    fn settle_root(&mut self, root: R, outcome: Outcome<C>) {
        if outcome.is_ok() {
            self.stats.acked += 1;
        } else {
            self.stats.failed += 1;
        }
        self.settled.push_back(Settlement { root, outcome });
    }

    /// Ends every entry that was opened longer ago than the timeout. Call it now and then.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use kstate_processing::{AckSettings, AckTable, Failure, FanOut, OnTimeout, Role};
    /// let (now, second) = (Instant::now(), Duration::from_secs(1));
    /// let settings = AckSettings::default().with_timeout(second, OnTimeout::Fail);
    /// let mut table = AckTable::<u64, String>::new(settings).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let silent = table.open(7, &edge, now).unwrap().next().unwrap();
    /// table.expire(now + second);
    /// assert_eq!(table.next_settlement().unwrap().outcome, Err(Failure::TimedOut));
    /// ```
    pub fn expire(&mut self, now: Instant) {
        let Some(timeout) = self.settings.timeout else {
            return;
        };
        // Whoever dropped a branch did answer.
        self.take_dropped();
        while let Some(token) = self.entries.oldest_before(now.checked_sub(timeout)) {
            let Some(entry) = self.entries.remove(token) else {
                return;
            };
            self.stats.timed_out += 1;
            let outcome = match self.settings.on_timeout {
                OnTimeout::Fail => Err(Failure::TimedOut),
                OnTimeout::Ack => {
                    self.stats.acked_by_timeout += 1;
                    Ok(())
                }
            };
            match entry.upstream {
                Upstream::Root(root) => {
                    self.roots -= 1;
                    self.settle_root(root, outcome);
                }
                Upstream::Branch(parent) => self.tell(parent, outcome),
                Upstream::Merged(inputs) => inputs.iter().for_each(|input| self.tell(*input, outcome.clone())),
            }
        }
    }

    /// When the next entry expires, if one is open and there is a timeout.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.next_deadline(), None);
    /// ```
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.entries.oldest()?.checked_add(self.settings.timeout?)
    }

    /// The next root that is decided, in the order in which they were.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, Failure, FanOut, Role};
    /// # let mut table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// drop(table.open(7, &edge, Instant::now()));
    /// assert_eq!(table.next_settlement().unwrap().outcome, Err(Failure::Dropped));
    /// assert_eq!(table.next_settlement(), None, "one for each root");
    /// ```
    pub fn next_settlement(&mut self) -> Option<Settlement<R, C>> {
        if self.settled.is_empty() {
            self.take_dropped();
        }
        self.settled.pop_front()
    }

    fn take_dropped(&mut self) {
        if !self.dropped.is_used() {
            return;
        }
        for token in self.dropped.take() {
            self.tell(token, Err(Failure::Dropped));
        }
    }

    /// Ends the table, without waiting for anybody: every root that was not decided has failed.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable, Failure, FanOut, Role};
    /// # let mut table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// let edge = FanOut::new([Role::Required]).unwrap();
    /// let silent = table.open(7, &edge, Instant::now()).unwrap().next();
    /// assert_eq!(table.close()[0].outcome, Err(Failure::Closed));
    /// ```
    #[must_use]
    pub fn close(mut self) -> Vec<Settlement<R, C>> {
        self.take_dropped();
        while let Some(upstream) = self.entries.remove_oldest() {
            if let Upstream::Root(root) = upstream {
                self.settle_root(root, Err(Failure::Closed));
            }
        }
        self.settled.into()
    }

    /// How many roots are open.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.roots(), 0);
    /// ```
    #[must_use]
    pub const fn roots(&self) -> u32 {
        self.roots
    }

    /// How many nested entries, of splits and merges, are open.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.nested(), 0);
    /// ```
    #[must_use]
    pub const fn nested(&self) -> u32 {
        self.entries.len() - self.roots
    }

    /// How long the oldest entry is open.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.oldest_age(Instant::now()), None);
    /// ```
    #[must_use]
    pub fn oldest_age(&self, now: Instant) -> Option<Duration> {
        self.entries.oldest().map(|opened| now.saturating_duration_since(opened))
    }

    /// What was counted.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.stats().acked, 0);
    /// ```
    #[must_use]
    pub const fn stats(&self) -> AckStats {
        self.stats
    }

    /// How many bytes the entries take, with those that are free to be used again.
    ///
    /// ```
    /// # use kstate_processing::{AckSettings, AckTable};
    /// # let table = AckTable::<u64, String>::new(AckSettings::default()).unwrap();
    /// assert_eq!(table.bytes(), 0);
    /// ```
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.entries.bytes()
    }
}

const fn dead_end<C>(fan_out: &FanOut) -> Outcome<C> {
    match fan_out.dead_end {
        DeadEnd::Ack => Ok(()),
        DeadEnd::Fail => Err(Failure::DeadEnd),
    }
}
