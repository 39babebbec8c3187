/// How many bytes the metadata of a position has beside its ranges, at most: magic, version, form, base, checksum.
const FRAME: u64 = 2 + 1 + 1 + 9 + 4;

/// How many characters the metadata of a committed offset may have.
///
/// ```
/// use kstate_processing::MetadataLimit;
///
/// assert_eq!(MetadataLimit::default().characters(), 4096, "what brokers take by default");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLimit(usize);

impl Default for MetadataLimit {
    fn default() -> Self {
        Self(4096)
    }
}

impl MetadataLimit {
    /// A limit of `characters`: the broker's `offset.metadata.max.bytes`.
    ///
    /// ```
    /// # use kstate_processing::MetadataLimit;
    /// assert_eq!(MetadataLimit::new(1000).characters(), 1000);
    /// ```
    #[must_use]
    pub const fn new(characters: usize) -> Self {
        Self(characters)
    }

    /// The limit itself.
    ///
    /// ```
    /// # use kstate_processing::MetadataLimit;
    /// assert_eq!(MetadataLimit::new(1000).characters(), 1000);
    /// ```
    #[must_use]
    pub const fn characters(self) -> usize {
        self.0
    }

    /// Where a tracker stops to admit further records: three quarters of the limit.
    ///
    /// ```
    /// # use kstate_processing::MetadataLimit;
    /// assert_eq!(MetadataLimit::default().brake(), 3072);
    /// ```
    #[must_use]
    pub const fn brake(self) -> usize {
        self.0 / 4 * 3
    }
}

/// An upper bound, in characters, of the metadata of any position with at most `ranges` ranges whose last ends at most
/// `span` offsets above its base.
pub(crate) fn longest_metadata(ranges: u64, span: u64) -> u64 {
    // A run is two numbers, the gap before it and its length, and all of them together are at most `span`. A number x
    // takes at most 1 + log128(x) bytes; the logarithm is concave, so their sum is largest if all are the same.
    let numbers = ranges * 2;
    let seventh = span.checked_div(numbers).and_then(u64::checked_ilog2).map_or(1, |log| u64::from(log) + 1);
    let runs = numbers + (numbers * seventh).div_ceil(7);
    let bitmap = span.div_ceil(8);
    ((FRAME + runs.min(bitmap)) * 4).div_ceil(3)
}
