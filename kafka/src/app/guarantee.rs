/// How often each source record takes effect when something fails in the middle.
///
/// ```
/// use kstate_kafka::app::Guarantee;
///
/// assert_eq!(Guarantee::default(), Guarantee::AtLeastOnce);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guarantee {
    /// Once in the stores. After a crash, output records that were sent since the last checkpoint are sent again.
    #[default]
    AtLeastOnce,
    /// Once in the stores, and once in the outputs for those who read them as `read_committed`: changelogs, outputs and
    /// source positions are one Kafka transaction for each thread.
    ///
    /// Someone who was taken for dead, and comes back, cannot commit: the group's generation fences it.
    ExactlyOnce,
}

/// How partitions move between the members of the group. All members must use the same.
///
/// ```
/// use kstate_kafka::app::RebalanceProtocol;
///
/// assert_eq!(RebalanceProtocol::default(), RebalanceProtocol::Cooperative);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebalanceProtocol {
    /// Only partitions that move are given up (`cooperative-sticky`).
    #[default]
    Cooperative,
    /// All partitions are given up and dealt out anew (`range`).
    Eager,
}

impl RebalanceProtocol {
    pub(crate) const fn strategy(self) -> &'static str {
        match self {
            Self::Cooperative => "cooperative-sticky",
            Self::Eager => "range",
        }
    }
}
