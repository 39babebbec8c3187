use kstate_api::Offset;

/// What this process knows of one changelog partition's copy on its disk (clause C2).
///
/// Kafka Streams says the same with numbers in an `i64` (−2 for running, −4 for unknown) and once met its own sentinel
/// in a sum. Here the three are told apart by type; the numbers are made where they are sent, in [`wire`](crate::wire).
///
/// A partition with no entry in the cache at all has no copy here that could be resumed, which is a fact too:
/// its lag is its whole log.
///
/// ```
/// use kstate_api::Offset;
/// use kstate_offset_cache::CachedOffset;
///
/// let offset = Offset::new(41).unwrap();
/// assert_eq!(CachedOffset::At(offset).offset(), Some(offset));
/// assert_eq!(CachedOffset::Running.offset(), None);
/// assert_eq!(CachedOffset::Unknown.offset(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CachedOffset {
    /// The task is active here, restored and live: caught up by definition, whatever the store last committed.
    Running,
    /// The store on disk committed this offset: that of the last record whose effect is in it (clause O1).
    At(Offset),
    /// A store is there and has nothing committed, or what it has committed could not be read: its whole log is to come.
    Unknown,
}

impl CachedOffset {
    /// The committed offset, if that is what is known.
    ///
    /// ```
    /// use kstate_api::Offset;
    /// use kstate_offset_cache::CachedOffset;
    ///
    /// assert_eq!(CachedOffset::At(Offset::ZERO).offset(), Some(Offset::ZERO));
    /// ```
    #[must_use]
    pub const fn offset(self) -> Option<Offset> {
        match self {
            Self::At(offset) => Some(offset),
            Self::Running | Self::Unknown => None,
        }
    }
}

impl From<Option<Offset>> for CachedOffset {
    /// What a store answers when it is asked for its committed offset: nothing committed is `Unknown`.
    ///
    /// ```
    /// use kstate_api::Offset;
    /// use kstate_offset_cache::CachedOffset;
    ///
    /// assert_eq!(CachedOffset::from(Some(Offset::ZERO)), CachedOffset::At(Offset::ZERO));
    /// assert_eq!(CachedOffset::from(None), CachedOffset::Unknown);
    /// ```
    fn from(committed: Option<Offset>) -> Self {
        committed.map_or(Self::Unknown, Self::At)
    }
}
