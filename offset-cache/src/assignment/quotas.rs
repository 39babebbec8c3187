use super::group::Group;

/// How many tasks each member may have: its share by capacity, rounded down or up.
///
/// Shares are rounded up for as many members as are needed to place all tasks, whoever asks first, and never for
/// a member whose share is a whole number.
pub(super) struct Quotas {
    members: Vec<Quota>,
    /// How many more members may have their share rounded up.
    extras: u64,
    /// How many more of those that are at their share of a larger whole then, see [`within`](Self::within).
    extras_within: u64,
}

struct Quota {
    load: u64,
    floor: u64,
    is_whole: bool,
    /// Whether the share rounded up is more than the share of the larger whole rounded down.
    is_extra_within: bool,
}

impl Quotas {
    /// For `total` tasks, of which each member has as many as `loads` says already.
    pub(super) fn new(group: &Group<'_>, total: u64, loads: &[u64]) -> Self {
        let shares = shares(group, total);
        let floors: u64 = shares.iter().map(|(floor, _)| floor).sum();
        let quotas = shares.into_iter().zip(loads);
        let members =
            quotas.map(|((floor, is_whole), load)| Quota { load: *load, floor, is_whole, is_extra_within: false });
        let members: Vec<_> = members.collect();
        let used: u64 = members.iter().map(|quota| quota.load.saturating_sub(quota.floor)).sum();
        Self { members, extras: (total - floors).saturating_sub(used), extras_within: 0 }
    }

    /// The same, where the tasks are some of `all`: shares are rounded so that those of all can be met afterwards.
    pub(super) fn within(mut self, group: &Group<'_>, all: u64) -> Self {
        let shares = shares(group, all);
        self.extras_within = all - shares.iter().map(|(floor, _)| floor).sum::<u64>();
        for (quota, (floor, _)) in self.members.iter_mut().zip(shares) {
            quota.is_extra_within = quota.floor == floor;
        }
        self
    }

    /// Gives one more task to `member` if it has room for it.
    pub(super) fn take(&mut self, member: usize) -> bool {
        let Some(quota) = self.members.get(member).filter(|quota| self.has_room(quota)) else { return false };
        if quota.load == quota.floor {
            self.extras -= 1;
            self.extras_within -= u64::from(quota.is_extra_within);
        }
        if let Some(quota) = self.members.get_mut(member) {
            quota.load += 1;
        }
        true
    }

    /// The members that have room for another task, and what they have.
    pub(super) fn with_room(&self) -> impl Iterator<Item = (usize, u64)> {
        let members = self.members.iter().enumerate().filter(|(_, quota)| self.has_room(quota));
        members.map(|(member, quota)| (member, quota.load))
    }

    const fn has_room(&self, quota: &Quota) -> bool {
        let may_round_up = !quota.is_whole && self.extras > 0 && (!quota.is_extra_within || self.extras_within > 0);
        quota.load < quota.floor || quota.load == quota.floor && may_round_up
    }
}

/// Each member's share of `total`, rounded down, and whether it is a whole number.
fn shares(group: &Group<'_>, total: u64) -> Vec<(u64, bool)> {
    let capacity: u64 = group.members().iter().map(|member| member.weight()).sum();
    let capacity = u128::from(capacity.max(1));
    let share = |member: &&super::Member| {
        let share = u128::from(total) * u128::from(member.weight());
        // Not more than `total`, as no member has more than the whole capacity.
        (u64::try_from(share / capacity).unwrap_or(total), share % capacity == 0)
    };
    group.members().iter().map(share).collect()
}
