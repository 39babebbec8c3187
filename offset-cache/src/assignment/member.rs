use std::{collections::BTreeMap, sync::Arc};

use kstate_api::TaskId;

use crate::Lag;

/// A member's copy of a task.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::{Lag, assignment::{Copy, Member}};
///
/// let task = TaskId::new(0, 0);
/// let member = Member::new("a").stored(task, Lag::Behind(7));
/// assert_eq!(member.copy(task), Some(Copy { lag: Lag::Behind(7), assigned: false }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// What the member would have to restore.
    pub lag: Lag,
    /// Whether the task is assigned to the member now, as active, standby or warm-up; else the copy only lies there.
    pub assigned: bool,
}

/// A process that takes tasks, and what it has of them. All consumers of one process are one member, as they
/// share its disk.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::{Lag, assignment::Member};
///
/// let member = Member::new("a").capacity(4).rack("eu-1").assigned(TaskId::new(0, 0), Lag::Running);
/// assert_eq!(member.id(), "a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    id: Arc<str>,
    capacity: u32,
    rack: Option<Arc<str>>,
    copies: BTreeMap<TaskId, Copy>,
}

impl Member {
    /// A member of capacity 1 with nothing of any task. Its id is the same from rebalance to rebalance, as the process id
    /// in its state directory is.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// assert_eq!(Member::new("a").id(), "a");
    /// ```
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), capacity: 1, rack: None, copies: BTreeMap::new() }
    }

    /// How much the member can carry in proportion to others, such as its number of threads; at least 1.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// let member = Member::new("a").capacity(4);
    /// ```
    #[must_use]
    pub fn capacity(mut self, capacity: u32) -> Self {
        self.capacity = capacity.max(1);
        self
    }

    /// Where the member is, for a [`ReplicaPreference`](super::ReplicaPreference) that heeds it.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// assert_eq!(Member::new("a").rack("eu-1").rack_id(), Some("eu-1"));
    /// ```
    #[must_use]
    pub fn rack(mut self, rack: impl Into<Arc<str>>) -> Self {
        self.rack = Some(rack.into());
        self
    }

    /// The member has `task` now, in whatever role.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// use kstate_api::TaskId;
    /// use kstate_offset_cache::Lag;
    ///
    /// let member = Member::new("a").assigned(TaskId::new(0, 0), Lag::Running).assigned(TaskId::new(0, 1), Lag::Behind(3));
    /// assert!(member.copy(TaskId::new(0, 1)).unwrap().assigned);
    /// ```
    #[must_use]
    pub fn assigned(mut self, task: TaskId, lag: Lag) -> Self {
        self.copies.insert(task, Copy { lag, assigned: true });
        self
    }

    /// The member has a copy of `task` on its disk, from when it had the task.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// use kstate_api::TaskId;
    /// use kstate_offset_cache::Lag;
    ///
    /// let member = Member::new("a").stored(TaskId::new(0, 0), Lag::Behind(1_000));
    /// assert!(!member.copy(TaskId::new(0, 0)).unwrap().assigned);
    /// ```
    #[must_use]
    pub fn stored(mut self, task: TaskId, lag: Lag) -> Self {
        self.copies.insert(task, Copy { lag, assigned: false });
        self
    }

    /// What identifies the member.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// assert_eq!(Member::new("a").id(), "a");
    /// ```
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the member is, if it was said.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// assert_eq!(Member::new("a").rack_id(), None);
    /// ```
    #[must_use]
    pub fn rack_id(&self) -> Option<&str> {
        self.rack.as_deref()
    }

    /// The member's copy of `task`, if it has one.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::Member;
    /// assert_eq!(Member::new("a").copy(kstate_api::TaskId::new(0, 0)), None);
    /// ```
    #[must_use]
    pub fn copy(&self, task: TaskId) -> Option<Copy> {
        self.copies.get(&task).copied()
    }

    pub(super) fn copies(&self) -> impl Iterator<Item = (TaskId, Copy)> {
        self.copies.iter().map(|(task, copy)| (*task, *copy))
    }

    pub(super) fn shared_id(&self) -> Arc<str> {
        self.id.clone()
    }

    pub(super) const fn weight(&self) -> u64 {
        self.capacity as u64
    }
}
