/// Which records wait for each other.
///
/// ```
/// use kstate_processing::RecordOrder;
///
/// assert_eq!(RecordOrder::default(), RecordOrder::Key);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordOrder {
    /// Each record waits for the one before it in its partition.
    Partition,
    /// Each record waits for the one before it with the same key in the same partition. Records without a key wait for
    /// each other, too.
    #[default]
    Key,
    /// None does.
    Unordered,
}

/// When the effects of a record are applied.
///
/// ```
/// use kstate_processing::Apply;
///
/// assert_eq!(Apply::default(), Apply::AsCompleted);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Apply {
    /// As soon as it is processed.
    #[default]
    AsCompleted,
    /// After those of every record before it in its partition. A hot key's second record then waits for every slow
    /// record before its first.
    InInputOrder,
}
