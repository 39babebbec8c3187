use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap, VecDeque, hash_map::Entry},
    hash::Hash,
    mem,
    time::Instant,
};

/// Jobs that wait for each other: those of one lane run one at a time, in the order in which they were pushed.
///
/// A lane is taken from the moment its first job is pushed until it is [released](Lanes::release) with nothing left in
/// it. A job that failed is [parked](Lanes::park): its lane waits with it, others go on. Jobs without a lane wait for
/// nothing. Lanes whose next job can run take turns in the order in which they became ready.
///
/// ```
/// use kstate_processing::Lanes;
///
/// let mut lanes = Lanes::new();
/// lanes.push(Some("a"), 1);
/// lanes.push(Some("a"), 2);
/// lanes.push(Some("b"), 3);
/// assert_eq!((lanes.next_ready(), lanes.next_ready(), lanes.next_ready()), (Some(1), Some(3), None));
/// lanes.release(&"a");
/// assert_eq!(lanes.next_ready(), Some(2));
/// ```
#[derive(Debug)]
pub struct Lanes<K, J> {
    /// What waits in each lane that is taken.
    taken: HashMap<K, VecDeque<J>>,
    ready: VecDeque<J>,
    parked: BinaryHeap<Parked<J>>,
    /// Of equal times, the first parked is the first to go on.
    parked_count: u64,
}

#[derive(Debug)]
struct Parked<J> {
    due: Instant,
    count: u64,
    job: J,
}

impl<J> Ord for Parked<J> {
    /// The largest in the heap is the first that is due.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.count).cmp(&(self.due, self.count))
    }
}

impl<J> PartialOrd for Parked<J> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> PartialEq for Parked<J> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<J> Eq for Parked<J> {}

impl<K, J> Default for Lanes<K, J> {
    fn default() -> Self {
        Self { taken: HashMap::new(), ready: VecDeque::new(), parked: BinaryHeap::new(), parked_count: 0 }
    }
}

impl<K: Eq + Hash, J> Lanes<K, J> {
    /// No lanes.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// assert!(Lanes::<u64, ()>::new().is_idle());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `job` at the end of `lane`.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// let mut lanes = Lanes::<&str, _>::new();
    /// lanes.push(None, 1);
    /// lanes.push(None, 2);
    /// assert_eq!((lanes.next_ready(), lanes.next_ready()), (Some(1), Some(2)));
    /// ```
    pub fn push(&mut self, lane: Option<K>, job: J) {
        match lane.map(|lane| self.taken.entry(lane)) {
            Some(Entry::Occupied(taken)) => taken.into_mut().push_back(job),
            Some(Entry::Vacant(free)) => {
                free.insert(VecDeque::new());
                self.ready.push_back(job);
            }
            None => self.ready.push_back(job),
        }
    }

    /// Takes `lane` for a job that was started without it.
    pub(crate) fn take(&mut self, lane: K) {
        self.taken.entry(lane).or_default();
    }

    /// The next job to run. Its lane stays taken.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// assert_eq!(Lanes::<u64, ()>::new().next_ready(), None);
    /// ```
    pub fn next_ready(&mut self) -> Option<J> {
        self.ready.pop_front()
    }

    /// Lets the next job of `lane` run: the effects of the one before are applied.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// # let mut lanes = Lanes::new();
    /// lanes.push(Some("a"), 1);
    /// assert_eq!(lanes.next_ready(), Some(1));
    /// lanes.release(&"a");
    /// assert!(lanes.is_idle());
    /// ```
    pub fn release(&mut self, lane: &K) {
        if let Some(waiting) = self.taken.get_mut(lane) {
            match waiting.pop_front() {
                Some(next) => self.ready.push_back(next),
                None => drop(self.taken.remove(lane)),
            }
        }
    }

    /// Puts a job that failed aside until `due`. Its lane stays taken.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use kstate_processing::Lanes;
    /// # let mut lanes = Lanes::<&str, _>::new();
    /// let due = Instant::now() + Duration::from_secs(1);
    /// lanes.park(1, due);
    /// lanes.wake(due - Duration::from_nanos(1));
    /// assert_eq!(lanes.next_ready(), None);
    /// lanes.wake(due);
    /// assert_eq!(lanes.next_ready(), Some(1));
    /// ```
    pub fn park(&mut self, job: J, due: Instant) {
        self.parked_count += 1;
        self.parked.push(Parked { due, count: self.parked_count, job });
    }

    /// Makes the parked jobs that are due by `now` ready.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// Lanes::<u64, ()>::new().wake(std::time::Instant::now());
    /// ```
    pub fn wake(&mut self, now: Instant) {
        while self.parked.peek().is_some_and(|parked| parked.due <= now) {
            self.ready.extend(self.parked.pop().map(|parked| parked.job));
        }
    }

    /// When the next parked job is due.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// assert_eq!(Lanes::<u64, ()>::new().next_due(), None);
    /// ```
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.parked.peek().map(|parked| parked.due)
    }

    /// How many jobs are parked.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// assert_eq!(Lanes::<u64, ()>::new().parked(), 0);
    /// ```
    #[must_use]
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Whether no lane is taken and no job waits.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// assert!(Lanes::<u64, ()>::new().is_idle());
    /// ```
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.taken.is_empty() && self.ready.is_empty() && self.parked.is_empty()
    }

    /// Takes out every waiting job for which `is_gone` holds, and ends the lanes for which `lane_is_gone` does. Jobs
    /// that run are not there to be taken.
    ///
    /// ```
    /// # use kstate_processing::Lanes;
    /// # let mut lanes = Lanes::new();
    /// lanes.push(Some("a"), 1);
    /// lanes.push(Some("a"), 2);
    /// assert_eq!(lanes.remove(|lane| *lane == "a", |_| true), [1, 2]);
    /// assert!(lanes.is_idle());
    /// ```
    pub fn remove(&mut self, mut lane_is_gone: impl FnMut(&K) -> bool, is_gone: impl Fn(&J) -> bool) -> Vec<J> {
        let (mut gone, ready): (Vec<J>, Vec<J>) = mem::take(&mut self.ready).into_iter().partition(&is_gone);
        self.ready = ready.into();
        let lanes = self.taken.extract_if(|lane, _| lane_is_gone(lane));
        gone.extend(lanes.flat_map(|(_, waiting)| waiting));
        let (mut parked_gone, parked): (Vec<_>, Vec<_>) =
            mem::take(&mut self.parked).into_iter().partition(|parked| is_gone(&parked.job));
        self.parked = parked.into();
        parked_gone.sort_unstable_by_key(|parked| parked.count);
        gone.extend(parked_gone.into_iter().map(|parked| parked.job));
        gone
    }
}
