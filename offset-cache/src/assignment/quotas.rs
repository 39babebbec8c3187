use super::group::Group;

/// How many tasks each member may have: its share by capacity, rounded down or up.
///
/// Shares are rounded up for as many members as are needed to place all tasks, whoever asks first, and never for
/// a member whose share is a whole number.
pub(super) struct Quotas {
    members: Vec<Quota>,
    /// How many more members may have their share rounded up.
    extras: u64,
}

struct Quota {
    load: u64,
    floor: u64,
    is_whole: bool,
}

impl Quotas {
    /// For `total` tasks, of which each member has as many as `loads` says already.
    pub(super) fn new(group: &Group<'_>, total: u64, loads: &[u64]) -> Self {
        let capacity: u64 = group.members().iter().map(|member| member.weight()).sum();
        let capacity = u128::from(capacity.max(1));
        let quota = |(member, load): (&&super::Member, &u64)| {
            let share = u128::from(total) * u128::from(member.weight());
            // Not more than `total`, as a member has no more than the whole capacity.
            let floor = u64::try_from(share / capacity).unwrap_or(total);
            Quota { load: *load, floor, is_whole: share % capacity == 0 }
        };
        let members: Vec<_> = group.members().iter().zip(loads).map(quota).collect();
        let floors: u64 = members.iter().map(|quota| quota.floor).sum();
        let used: u64 = members.iter().map(|quota| quota.load.saturating_sub(quota.floor)).sum();
        Self { members, extras: (total - floors).saturating_sub(used) }
    }

    /// Gives one more task to `member` if it has room for it.
    pub(super) fn take(&mut self, member: usize) -> bool {
        let Some(quota) = self.members.get_mut(member) else { return false };
        if quota.load >= quota.floor {
            if quota.load > quota.floor || quota.is_whole || self.extras == 0 {
                return false;
            }
            self.extras -= 1;
        }
        quota.load += 1;
        true
    }

    /// The members that have room for another task, and what they have.
    pub(super) fn with_room(&self) -> impl Iterator<Item = (usize, u64)> {
        let members = self.members.iter().enumerate();
        let room =
            |quota: &Quota| quota.load < quota.floor || quota.load == quota.floor && !quota.is_whole && self.extras > 0;
        members.filter(move |(_, quota)| room(quota)).map(|(member, quota)| (member, quota.load))
    }
}
