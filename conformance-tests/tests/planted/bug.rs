//! The faults that can be planted: a store has one of them, or none.

/// One fault. What it does stands where the toy asks for it; here stands what a user would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Nothing is wrong.
    None,

    // Offsets.
    /// The offset that is committed is the next one, not the last.
    OffsetIsTheNext,
    /// An offset only ever grows.
    OffsetIsTheGreatest,
    /// An offset keeps its lower 32 bits.
    OffsetIsCutTo32Bits,
    /// Partitions whose names and numbers run together alike share an offset.
    OffsetKeysRunTogether,
    /// A commit forgets the offsets it does not name.
    CommitReplacesOffsets,
    /// A commit without offsets forgets all of them.
    EmptyCommitForgetsOffsets,
    /// A batch without records is taken for nothing to do.
    CommitWithoutRecordsIsSkipped,
    /// A new store claims to hold the record at offset 0.
    NewStoreHasOffsetZero,
    /// A foreign partition's offset is left out of the commit, silently.
    ForeignOffsetIsDropped,
    /// A commit that names a foreign partition is refused after the rest of it was applied.
    ForeignCommitIsHalfApplied,
    /// A restore that names a foreign partition is applied.
    ForeignRestoreIsApplied,
    /// Offsets of foreign partitions are found.
    ForeignOffsetIsFound,
    /// A snapshot shows the offsets of partitions that are not the store's.
    SnapshotShowsForeignOffsets,
    /// The store does not remember which partitions it owns.
    PartitionsAreForgotten,
    /// A store can be opened with a partition that Kafka could not have.
    BadPartitionIsAccepted,
    /// Forgotten offsets come back at the next open.
    ForgettingIsNotStored,
    /// The source position stays when the offsets are forgotten.
    ForgettingKeepsThePosition,
    /// The rows go with the forgotten offsets.
    ForgettingDropsTheRows,
    /// What is staged goes with the forgotten offsets.
    ForgettingRollsBack,
    /// A batch that forgets offsets forgets its own, too.
    ForgettingTakesTheBatchsOwn,
    /// A wipe leaves the greatest keys.
    WipeMissesTheGreatestKeys,
    /// A wipe leaves the offsets.
    WipeKeepsOffsets,
    /// A wipe leaves the position.
    WipeKeepsThePosition,
    /// A wipe leaves the offsets of partitions that are not the store's.
    WipeKeepsForeignOffsets,
    /// Forgetting leaves the offsets of partitions that are not the store's.
    ForgettingKeepsForeignOffsets,
    /// A flush moves the offset along, for what is staged.
    FlushMovesTheOffset,
    /// A store that does not manage offsets answers with some.
    UnmanagedOffsetsAreFound,
    /// A store that says it is not persistent is.
    VolatileStoreKeepsItsRows,
    /// A commit whose offset is stored already is taken for a repetition.
    CommitOfAKnownOffsetIsSkipped,
    /// A restored batch that is not ahead of the store is taken for a repetition.
    RestoreOfAKnownOffsetIsSkipped,
    /// Topics are the same but for case.
    TopicsIgnoreCase,
    /// A partition's number keeps its lower 16 bits.
    PartitionsAreCutTo16Bits,
    /// The store has room for 100 offsets.
    OffsetsAreCutAt100,
    /// Offsets are stored by their partition's place among those the store was opened with.
    OffsetsAreStoredByPlace,

    // Positions.
    /// A position is committed as soon as it is staged.
    PositionIsNotStaged,
    /// A commit replaces the whole position.
    PositionIsReplaced,
    /// A rollback leaves the staged position.
    RollbackKeepsThePosition,
    /// The position is not stored.
    PositionIsNotStored,
    /// A restored batch's position is not taken.
    RestoreIgnoresThePosition,
    /// A position keeps its lower 32 bits.
    PositionIsCutTo32Bits,
    /// A position is staged without what is finished above it.
    FinishedRangesAreDropped,
    /// A position is restored without what is finished above it.
    RestoreDropsFinishedRanges,
    /// What was finished above an earlier position stays with the next.
    FinishedRangesAddUp,
    /// A restored position of a partition that Kafka could not have is taken.
    BadPositionIsRestored,
    /// A position that is staged during a commit is lost.
    PositionDuringACommitIsLost,
    /// Commit 401 forgets the positions it does not name.
    PositionIsLostAtCommit400,

    // Durability.
    /// The last commit before a close is not stored.
    CloseLosesTheLastCommit,
    /// A store that is dropped is not flushed.
    DropLosesTheBuffer,
    /// The offsets are not stored.
    OffsetsAreNotStored,
    /// A flush does not move the durable offset.
    DurableOffsetIsStuck,
    /// The durable offset is one ahead.
    DurableOffsetIsAhead,
    /// The durable offset is the committed one, though nothing was written.
    DurableOffsetIsALie,
    /// The durable offset waits for a flush, though each commit is synced.
    SyncedOffsetLags,
    /// A commit is not written until the next flush.
    CommitIsNotWritten,
    /// The offset is written first, and the records a moment later.
    OffsetIsWrittenFirst,
    /// The records are written first, and the offset a moment later.
    RecordsAreWrittenFirst,
    /// A wipe is not written.
    WipeIsNotWritten,
    /// A wipe is written in two steps, rows first.
    WipeIsWrittenInTwo,
    /// Writes go to the engine before their commit.
    WritesGoThrough,
    /// The offsets read from a closed store are those of every partition.
    ReadOffsetsFindsForeignOnes,
    /// Reading the offsets makes the directory.
    ReadOffsetsMakesAStore,
    /// A large commit is written in two parts.
    LargeCommitIsWrittenInParts,
    /// A restored batch is not written until the next flush.
    RestoreIsNotWritten,
    /// A flush writes its file anew, in place.
    FlushRewritesTheFile,
    /// A close writes its file anew, in place.
    CloseRewritesTheFile,
    /// Forgotten offsets are written off at the next commit or close.
    ForgettingIsWrittenLate,
    /// Commits are numbered with a byte.
    CommitNumberIsAByte,
    /// Durable offsets are those of whatever partition comes first.
    DurableOffsetIsAnothers,
    /// Of several offsets of a batch all but the first come a moment later.
    SecondOffsetLater,
    /// Of several positions of a batch all but the first come a moment later.
    SecondPositionLater,
    /// A commit of more than a mebibyte is taken in two steps.
    CommitOfAMebibyteIsTakenInTwo,
    /// A restored batch of more than 1000 records is taken in two steps.
    LargeRestoreIsTakenInTwo,
    /// A wipe of more than 1000 rows is taken in two steps.
    LargeWipeIsTakenInTwo,
    /// A batch that forgets offsets does so a moment before its records come.
    ForgettingIsAStepOfItsOwn,

    // Writes.
    /// Deletes are not applied.
    DeletesAreDropped,
    /// An empty value is a delete, as soon as it is staged.
    EmptyValueDeletes,
    /// An empty value is a delete in the engine.
    EmptyValueDeletesInTheEngine,
    /// The empty key is ignored.
    EmptyKeyIsIgnored,
    /// A user's row called `offsets` is taken for the store's own.
    KeyOfItsOwnIsHidden,
    /// A delete of what is not there is an error.
    DeleteOfNothingFails,
    /// Of several writes to a key the first one counts.
    FirstWriteWins,
    /// `put_all` deletes in the end, whatever the order.
    PutAllDeletesLast,
    /// `put_all` stages what comes before the invalid entry.
    PutAllStagesHalf,
    /// A key of more than 64 KiB is refused.
    LongKeyIsRefused,
    /// `put_if_absent` puts always.
    PutIfAbsentOverwrites,
    /// `put_if_absent` takes an empty value for absent.
    PutIfAbsentOverwritesEmpty,
    /// The staged changes do not tell of deletes.
    StagedChangesLackDeletes,
    /// The staged changes come in descending order.
    StagedChangesComeBackwards,
    /// The staged changes go on after their visitor's error.
    StagedChangesIgnoreErrors,
    /// The committed value of a key is what its owner reads.
    CommittedValueIsTheOwners,
    /// No key has a committed value.
    CommittedValueIsNever,
    /// What is staged does not count.
    UncommittedBytesAreZero,
    /// The values that are staged count, and their keys do not.
    UncommittedBytesLackKeys,
    /// What was ever staged counts.
    UncommittedBytesOnlyGrow,
    /// A value of more than 1 GiB is taken, and lost.
    TooLongValueIsLost,
    /// A value is cut at 64 KiB.
    LargeValueIsCut,
    /// A scan shows 10 000 rows at most.
    ScanEndsAfterTenThousandRows,
    /// A scan shows 65 536 rows at most.
    ScanEndsAfter65536Rows,
    /// The length of a value has 24 bits.
    LengthHas24Bits,
    /// A value of one zero byte is the mark of a deleted row.
    ZeroByteIsATombstone,
    /// A snapshot does not find a key of the greatest length.
    SnapshotMissesTheLongestKey,
    /// The store calls itself by another name than its errors do.
    NameIsAnothers,
    /// Keys are told apart by their first 64 KiB.
    LongKeysAreComparedShort,
    /// The engine takes no long keys, which shows at the commit.
    KeyLimitIsKeptAtTheCommit,
    /// The engine's longest key has a byte less than the store says.
    KeyLimitIsOneTooMany,
    /// The engine takes keys of 100 bytes at most.
    KeyLimitIs100,
    /// The engine's longest key loses its last byte.
    LongestKeyLosesItsLastByte,
    /// `put_all` stages what comes before the key that is too long for the engine.
    PutAllStagesUpToTheKeyLimit,
    /// A delete of a key that is too long for the engine succeeds.
    DeleteIgnoresTheKeyLimit,
    /// `put_if_absent` of a key that is too long for the engine says that it put it.
    PutIfAbsentIgnoresTheKeyLimit,
    /// A restore leaves out what is too long for the engine.
    RestoreIgnoresTheKeyLimit,
    /// A refused key drops what is staged.
    RefusedKeyRollsBack,
    /// Reading a key that is too long for the engine is an error.
    ReadOfALongKeyFails,
    /// A snapshot hands keys to the engine that are too long for it.
    SnapshotIsAskedForLongKeys,
    /// The staged changes end after 1000.
    StagedChangesEndAfterAThousand,
    /// What is staged and then deleted or overwritten counts until the commit.
    OverwrittenBytesCount,
    /// `put_if_absent` looks, and then puts.
    PutIfAbsentRaces,

    // Ranges.
    /// Keys are ordered as signed bytes.
    KeysAreSigned,
    /// Shorter keys come first.
    ShorterKeysComeFirst,
    /// The first key of a range is left out.
    FirstKeyIsLeftOut,
    /// The last key of a range is left out.
    LastKeyIsLeftOut,
    /// An excluded bound is included.
    ExcludedBoundIsIncluded,
    /// A range without an end stops before FF.
    OpenEndStopsBeforeFF,
    /// A range without a start leaves the empty key out.
    OpenStartSkipsTheEmptyKey,
    /// Inverted bounds are swapped.
    InvertedBoundsAreSwapped,
    /// Inverted bounds panic.
    InvertedBoundsPanic,
    /// A range that holds no key is an error.
    EmptyRangeFails,
    /// A prefix that has no successor holds no key.
    PrefixOfFFIsEmpty,
    /// The empty prefix holds no key.
    EmptyPrefixIsNothing,
    /// Bounds are compared by their first two bytes.
    BoundsAreCutShort,
    /// Bounds are cut at 64 bytes.
    BoundsAreCutAt64,
    /// A bound that is too long for the engine is an error.
    LongBoundFails,
    /// A bound that is too long for the engine is cut, and its beginning is in the range.
    LongBoundIsCutLikeAKey,
    /// A descending scan ascends.
    DescendingScanAscends,
    /// A descending scan leaves its last row out.
    DescendingScanEndsEarly,
    /// A descending scan shows 13 000 rows at most.
    DescendingScanEndsAfter13000Rows,
    /// All open scans share one place.
    ScansShareTheirPlace,
    /// A long descending scan loses a row at the border of each page.
    PagesLoseARow,

    // Reads.
    /// A get does not see staged deletes.
    GetMissesStagedDeletes,
    /// A scan does not see what is staged.
    ScanMissesWhatIsStaged,
    /// A scan shows a row twice that is staged over a committed one.
    ScanShowsOverwrittenRows,
    /// A read of an absent key calls its reader with nothing.
    AbsentKeyIsReadAsEmpty,
    /// The number of entries is always zero.
    NumberOfEntriesIsZero,
    /// A read that failed is an absent key.
    FailedReadIsAbsent,

    // Cursors.
    /// A cursor reads what is there when it steps.
    CursorIsLive,
    /// A cursor fails once the store was written to.
    CursorFailsAfterWrites,
    /// A cursor that ended begins again.
    CursorBeginsAgain,
    /// A cursor's last row stays after the end.
    CursorKeepsItsLastRow,
    /// A cursor just ends when its store is closed.
    ClosedCursorEnds,
    /// A closed cursor fails once, and then ends.
    ClosedCursorFailsOnce,
    /// A cursor keeps its store open when that is dropped.
    CursorKeepsItsStore,
    /// A cursor over staged rows goes on when its store is dropped.
    StagedCursorMissesADrop,
    /// A cursor that failed ends at its next step.
    FailedCursorEnds,
    /// A cursor takes an error for the end.
    CursorHidesErrors,
    /// A cursor reads a page at a time, each from what is there then.
    CursorReadsPagesLive,
    /// No more than 100 cursors can be open.
    CursorsAreLimited,
    /// A close is refused while a cursor is open.
    CloseIsRefusedWhileReading,

    // Snapshots.
    /// A snapshot shows what is staged.
    SnapshotShowsWhatIsStaged,
    /// A snapshot shows later commits.
    SnapshotIsLive,
    /// A snapshot has the store's offsets, not its own.
    SnapshotHasLiveOffsets,
    /// A snapshot has the store's position, not its own.
    SnapshotHasALivePosition,
    /// A snapshot has no ranges.
    SnapshotIgnoresRanges,
    /// A snapshot goes on when its store is closed.
    SnapshotOutlivesTheClose,
    /// A cursor of a snapshot that was dropped ends.
    SnapshotTakesItsCursorsAlong,
    /// All snapshots show the last that was taken.
    SnapshotsShareTheirView,
    /// A snapshot's cursor reads a page at a time, each from what is there then.
    SnapshotsCursorReadsPagesLive,
    /// A wipe takes the offsets of living snapshots along.
    WipeReachesIntoSnapshots,
    /// Records and offsets of a commit show one after the other.
    CommitShowsInTwoSteps,
    /// A wipe shows in two steps, rows first.
    WipeIsTakenInTwo,
    /// The position goes a moment after the offsets when they are forgotten.
    ForgettingTakesThePositionLater,
    /// A snapshot shows no rows after 100 commits.
    SnapshotExpires,
    /// A snapshot's scan shows 5000 rows at most.
    SnapshotScanEndsAfter5000Rows,

    // Threads.
    /// During a commit its rows are neither staged nor committed.
    RowsVanishDuringACommit,
    /// What is staged during a commit is lost after it.
    WritesDuringACommitAreLost,
    /// Deletes that are staged during a commit are lost after it.
    DeletesDuringACommitAreLost,
    /// Records and offset of a restored batch show one after the other.
    RestoreShowsInTwoSteps,
    /// A commit that meets a close says that it happened.
    CommitBesideACloseIsLost,

    /// A scan during a close ends early.
    ScanIsCutShortByAClose,
    /// Every store of the process has the same rows.
    StoresShareTheirRows,

    // Life.
    /// A rollback does nothing.
    RollbackDoesNothing,
    /// A close commits.
    CloseCommits,
    /// A drop commits.
    DropCommits,
    /// A drop while panicking commits.
    DropWhilePanickingCommits,
    /// A snapshot goes on after its store was dropped while panicking.
    SnapshotOutlivesAPanic,
    /// A flush commits.
    FlushCommits,
    /// A second close fails.
    SecondCloseFails,
    /// A wipe leaves what is staged.
    WipeKeepsWhatIsStaged,
    /// A wipe removes 10 000 rows at most.
    WipeRemovesTenThousandRows,
    /// A closed store answers reads with nothing.
    ClosedStoreIsEmpty,
    /// A closed store takes writes silently.
    ClosedStoreTakesWrites,
    /// A refused call of a closed store does not say what became of it.
    ClosedStoreHasNoOutcome,
    /// A second close of a store frees the directory of its successor.
    SecondCloseFreesTheSuccessor,

    // Restore.
    /// A restore drops what is staged instead of being refused.
    RestoreRollsBack,
    /// A restored batch can be rolled back.
    RestoreIsStaged,
    /// A restored tombstone is an empty value.
    RestoredTombstoneIsAValue,
    /// A restore does not overwrite.
    RestoreKeepsWhatIsThere,
    /// A large restored batch loses its deletes.
    LargeRestoreLosesDeletes,
    /// A restored batch without records is taken for nothing to do.
    RestoreWithoutRecordsIsSkipped,
    /// A restored batch without offsets forgets them.
    RestoreWithoutOffsetsForgetsThem,
    /// A restore takes 10 000 records at most.
    RestoreEndsAfterTenThousandRecords,

    // Failures.
    /// A commit that failed drops what was staged.
    FailedCommitRollsBack,
    /// The offsets of a commit that failed come with the next one.
    FailedCommitLeavesItsOffsets,
    /// A wipe that failed drops what was staged.
    FailedWipeRollsBack,
    /// The staged changes are gone after a commit that failed.
    FailedCommitLosesItsChanges,
    /// The drop of a poisoned store keeps the directory.
    PoisonedDropKeepsTheLock,
    /// After a commit of unknown outcome the store goes on.
    UnknownDoesNotPoison,
    /// The close of a poisoned store does not close its engine.
    PoisonedEngineStaysOpen,
    /// A commit of unknown outcome is said not to have happened.
    UnknownIsCalledNotApplied,
    /// The records of a commit of unknown outcome are written at the close, without the offset.
    UnknownCommitIsHalfRepeated,

    // Locks and declarations.
    /// Nothing keeps a second open out.
    NothingIsLocked,
    /// Only this process is kept out.
    OtherProcessesAreNotLockedOut,
    /// `Locked` comes after a while.
    LockIsWaitedFor,
    /// The lock of a killed owner stays.
    LockOutlivesItsOwner,
    /// A refused open of this process lets other processes in.
    RefusedOpenFreesTheLock,
    /// Reading the offsets of a store that this process has open lets other processes in.
    ReadOffsetsFreesTheLock,
    /// A close does not free the directory; a drop does.
    CloseKeepsTheLock,
    /// The lock is on the path, not on the directory.
    LockIsOnThePath,
    /// The lock is on the directory's name, whatever it lies in.
    LockIsOnTheName,
    /// The lock is looked at, and then taken.
    LockRaces,
    /// The directories above the store's are not made.
    ParentsAreNotMade,
    /// The harness declares no snapshots, but the store has them.
    SnapshotsAreDeclaredFalse,
    /// The harness declares durable commits, but the backend says otherwise.
    DurableCommitIsDeclaredTrue,
    /// The supplier says that its stores are not persistent.
    SupplierSaysVolatile,
    /// The harness declares no long keys, but the store takes them.
    LongKeysAreDeclaredFalse,
}
