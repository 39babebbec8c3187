//! Each case can fail: stores with exactly one bug, and the cases that catch it.

#![allow(
    dead_code,
    missing_docs,
    non_snake_case,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod planted;

use kstate_api::Durability;
use kstate_conformance_tests::{CASES, Capability, Declared, Outcome, Suite, case, is_child_process};
use planted::{bug::Bug, store::ToyHarness};

/// What is declared for the store with `bug`, and how durable its commits are.
fn setting(bug: Bug) -> (Durability, Declared) {
    use Capability::{DurableCommit, LongKeys, ManagesOffsets, Persistent, Snapshots, SyncedCommit};
    let durability = match bug {
        Bug::DurableOffsetIsALie | Bug::DropLosesTheBuffer => Durability::Eventual,
        Bug::SyncedOffsetLags => Durability::Sync,
        _ => Durability::Process,
    };
    let declared: Vec<Capability> = Capability::ALL
        .into_iter()
        .filter(|capability| match capability {
            DurableCommit => durability >= Durability::Process && bug != Bug::VolatileStoreKeepsItsRows,
            SyncedCommit => durability == Durability::Sync,
            Persistent => bug != Bug::VolatileStoreKeepsItsRows,
            ManagesOffsets => bug != Bug::UnmanagedOffsetsAreFound,
            Snapshots => bug != Bug::SnapshotsAreDeclaredFalse,
            LongKeys => bug != Bug::LongKeysAreDeclaredFalse && !bug.has_short_keys(),
            _ => true,
        })
        .collect();
    (durability, Declared::new(&declared))
}

/// Fails unless each of `cases` fails on the store with `bug`, for what the store did.
fn ensure_caught(bug: Bug, test: &str, cases: &[&str]) {
    let (durability, declared) = setting(bug);
    let suite = Suite::new(ToyHarness::new(bug, durability), declared).respawned_by(test);
    for name in cases {
        let case = case(name).unwrap_or_else(|| panic!("there is no case `{name}`"));
        match suite.run(case) {
            Err(violation) => {
                let violation = violation.to_string();
                println!("{name}: {violation}");
                let excuse = ["the suite itself", "the child ended", "the child said nothing", "did not end within"];
                assert!(!excuse.iter().any(|excuse| violation.contains(excuse)), "{name} fails for another reason");
            }
            Ok(Outcome::Skipped(_)) if is_child_process() => {}
            Ok(outcome) => panic!("the case {name} does not catch the bug {bug:?}: {outcome:?}"),
        }
    }
}

macro_rules! planted_bugs {
    ($($bug:ident => [$($case:ident),+ $(,)?];)*) => {
        $(
            #[test]
            fn $bug() {
                ensure_caught(
                    Bug::$bug,
                    concat!(module_path!(), "::", stringify!($bug)),
                    &[$(stringify!($case)),+],
                );
            }
        )*

        /// Each bug, and the cases that catch it.
        const TABLE: &[(Bug, &[&str])] = &[$((Bug::$bug, &[$(stringify!($case)),+])),*];
    };
}

#[test]
fn every_case_catches_a_bug() {
    let idle: Vec<_> = CASES
        .iter()
        .map(kstate_conformance_tests::Case::name)
        .filter(|name| !TABLE.iter().any(|(_, cases)| cases.contains(name)))
        .collect();
    assert_eq!(idle, Vec::<&str>::new(), "these cases catch no bug");
    println!("{} bugs, {} cases", TABLE.len(), CASES.len());
}

#[test]
fn the_document_is_current() {
    let table = TABLE.iter().map(|(bug, cases)| (format!("{bug:?}"), *cases));
    planted::document::ensure_current(&table.collect());
}

planted_bugs! {
    OffsetIsTheNext => [o1_a_restore_resumes_after_the_committed_offset];
    OffsetIsTheGreatest => [
        ho_04_an_offset_that_is_too_high_can_be_repaired,
        o3_a_lower_offset_is_stored_as_given,
        model_random_operations_agree_with_a_map,
    ];
    OffsetIsCutTo32Bits => [o3_any_offset_is_stored_as_given];
    OffsetKeysRunTogether => [o4_each_partition_has_its_own_offset];
    CommitReplacesOffsets => [o2_a_partition_that_is_not_named_keeps_its_offset];
    EmptyCommitForgetsOffsets => [o2_a_commit_of_no_offsets_keeps_them, ho_17_the_position_moves_with_the_offsets];
    CommitWithoutRecordsIsSkipped => [o2_offsets_are_committed_without_records];
    NewStoreHasOffsetZero => [o4_nothing_is_committed_at_first];
    ForeignOffsetIsDropped => [o5_a_commit_of_a_foreign_partition_is_refused_whole];
    ForeignCommitIsHalfApplied => [o5_a_commit_of_a_foreign_partition_is_refused_whole];
    ForeignRestoreIsApplied => [o5_a_restore_of_a_foreign_partition_is_refused_whole];
    ForeignOffsetIsFound => [ho_05_a_foreign_offset_is_not_found];
    SnapshotShowsForeignOffsets => [ho_05_a_foreign_offset_is_not_found];
    PartitionsAreForgotten => [o5_a_store_knows_its_partitions];
    BadPartitionIsAccepted => [o5_a_partition_that_kafka_could_not_have_is_refused];
    ForgettingIsNotStored => [ho_22_forgotten_offsets_do_not_come_back];
    ForgettingKeepsThePosition => [ho_22_forgotten_offsets_do_not_come_back];
    ForgettingDropsTheRows => [o4_forgetting_offsets_keeps_the_records];
    ForgettingRollsBack => [o4_forgetting_offsets_keeps_the_records];
    ForgettingTakesTheBatchsOwn => [o2_a_batch_forgets_offsets_before_it_takes_its_own];
    WipeMissesTheGreatestKeys => [r5_a_wipe_removes_everything];
    WipeKeepsOffsets => [o4_a_wipe_leaves_no_offset, r5_a_wipe_removes_everything];
    WipeKeepsThePosition => [o4_a_wipe_leaves_no_offset, r5_a_wipe_removes_everything];
    WipeKeepsForeignOffsets => [o4_a_wipe_or_a_reset_leaves_no_foreign_offset];
    ForgettingKeepsForeignOffsets => [o4_a_wipe_or_a_reset_leaves_no_foreign_offset];
    FlushMovesTheOffset => [ho_15_an_offset_is_stored_only_when_it_is_committed];
    UnmanagedOffsetsAreFound => [o4_a_store_that_does_not_manage_offsets_has_none];
    VolatileStoreKeepsItsRows => [o4_a_volatile_store_reopens_empty];
    CommitOfAKnownOffsetIsSkipped => [o3_an_offset_can_be_committed_again];
    RestoreOfAKnownOffsetIsSkipped => [o3_an_offset_can_be_committed_again, o3_a_lower_offset_is_stored_as_given];
    TopicsIgnoreCase => [o4_each_partition_has_its_own_offset];
    PartitionsAreCutTo16Bits => [o4_each_partition_has_its_own_offset];
    OffsetsAreCutAt100 => [o4_many_partitions_keep_their_offsets];
    OffsetsAreStoredByPlace => [o5_a_store_reopens_with_other_partitions];

    PositionIsNotStaged => [o2_a_position_is_committed_with_the_records, o2_nothing_of_a_commit_is_seen_before_it];
    PositionIsReplaced => [o2_a_position_keeps_the_partitions_that_are_not_staged];
    RollbackKeepsThePosition => [ho_17_the_position_moves_with_the_offsets, r5_a_rollback_drops_what_is_staged];
    PositionIsNotStored => [
        ho_17_the_position_moves_with_the_offsets,
        o2_a_position_is_committed_with_the_records,
        o6_reopening_shows_the_last_commit,
    ];
    RestoreIgnoresThePosition => [o2_a_restored_position_is_taken_along];
    PositionIsCutTo32Bits => [o2_any_position_is_stored_as_given, o4_many_partitions_keep_their_offsets];
    FinishedRangesAreDropped => [o2_finished_ranges_are_stored_as_given];
    RestoreDropsFinishedRanges => [o2_finished_ranges_are_stored_as_given];
    FinishedRangesAddUp => [o2_finished_ranges_are_stored_as_given];
    BadPositionIsRestored => [o5_a_partition_that_kafka_could_not_have_is_refused];
    PositionDuringACommitIsLost => [o2_no_position_is_lost_between_commits];
    PositionIsLostAtCommit400 => [o6_many_commits_are_kept];

    CloseLosesTheLastCommit => [o6_reopening_shows_the_last_commit];
    DropLosesTheBuffer => [o6_dropping_a_store_keeps_its_commits];
    OffsetsAreNotStored => [o6_reopening_shows_the_last_commit, o6_offsets_are_read_from_a_closed_store];
    DurableOffsetIsStuck => [o6_a_flush_makes_every_commit_durable];
    DurableOffsetIsAhead => [o6_the_durable_offset_is_not_ahead];
    DurableOffsetIsALie => [o6_a_kill_leaves_one_whole_commit];
    SyncedOffsetLags => [o6_a_synced_commit_is_durable_at_once];
    CommitIsNotWritten => [o6_acknowledged_commits_survive_a_kill];
    OffsetIsWrittenFirst => [o6_a_kill_leaves_one_whole_commit, o6_a_killed_restore_goes_on_where_it_was];
    RecordsAreWrittenFirst => [o6_a_kill_leaves_one_whole_commit, o6_a_killed_restore_goes_on_where_it_was];
    WipeIsNotWritten => [o4_a_wipe_leaves_no_offset, r5_a_wipe_removes_everything, o6_a_killed_wipe_is_whole];
    WipeIsWrittenInTwo => [o6_a_killed_wipe_is_whole];
    WritesGoThrough => [
        ho_14_staged_writes_do_not_survive_a_kill,
        o2_nothing_of_a_commit_is_seen_before_it,
        r2_a_snapshot_is_committed_data_only,
    ];
    ReadOffsetsFindsForeignOnes => [o6_offsets_are_read_from_a_closed_store];
    ReadOffsetsMakesAStore => [o6_reading_offsets_makes_no_store];
    LargeCommitIsWrittenInParts => [o6_a_killed_large_commit_is_whole];
    RestoreIsNotWritten => [o6_a_killed_restore_goes_on_where_it_was];
    FlushRewritesTheFile => [o6_a_killed_flush_or_close_loses_nothing];
    CloseRewritesTheFile => [o6_a_killed_flush_or_close_loses_nothing];
    ForgettingIsWrittenLate => [o6_forgotten_offsets_do_not_survive_a_kill];
    CommitNumberIsAByte => [o6_many_commits_are_kept];
    DurableOffsetIsAnothers => [o6_a_flush_makes_every_commit_durable];
    SecondOffsetLater => [o6_a_kill_leaves_one_whole_commit, r2_snapshots_show_whole_commits_while_the_owner_commits];
    SecondPositionLater => [o6_a_kill_leaves_one_whole_commit, r2_snapshots_show_whole_commits_while_the_owner_commits];
    CommitOfAMebibyteIsTakenInTwo => [o6_a_killed_commit_of_many_mebibytes_is_whole];
    LargeRestoreIsTakenInTwo => [o6_a_killed_restore_of_many_mebibytes_is_whole];
    LargeWipeIsTakenInTwo => [o6_a_killed_wipe_of_many_rows_is_whole];
    ForgettingIsAStepOfItsOwn => [
        o6_a_killed_restore_goes_on_where_it_was,
        r2_snapshots_show_whole_commits_while_the_owner_commits,
    ];

    DeletesAreDropped => [r4_a_delete_removes_the_row, ho_28_a_restored_tombstone_deletes];
    EmptyValueDeletes => [r4_an_empty_value_is_a_value];
    EmptyValueDeletesInTheEngine => [ho_47_an_empty_value_is_kept, r4_an_empty_value_is_a_value];
    EmptyKeyIsIgnored => [r4_the_empty_key_is_a_key];
    KeyOfItsOwnIsHidden => [r4_a_key_of_the_stores_own_is_a_key];
    DeleteOfNothingFails => [r4_deleting_what_is_not_there_is_fine];
    FirstWriteWins => [r4_the_last_write_wins];
    PutAllDeletesLast => [r4_put_all_applies_its_entries_in_order];
    PutAllStagesHalf => [r4_put_all_stages_all_or_nothing];
    LongKeyIsRefused => [r4_a_key_that_is_too_long_is_refused, declaration_matches_the_store];
    PutIfAbsentOverwrites => [r4_put_if_absent_keeps_what_is_there];
    PutIfAbsentOverwritesEmpty => [r4_put_if_absent_keeps_what_is_there];
    StagedChangesLackDeletes => [r4_staged_changes_are_one_for_each_key_in_order];
    StagedChangesComeBackwards => [r4_staged_changes_are_one_for_each_key_in_order];
    StagedChangesIgnoreErrors => [r4_staged_changes_are_one_for_each_key_in_order];
    CommittedValueIsTheOwners => [r2_the_committed_value_is_the_last_commits];
    CommittedValueIsNever => [r2_the_committed_value_is_the_last_commits];
    UncommittedBytesAreZero => [r4_uncommitted_bytes_are_those_of_the_staged_writes];
    UncommittedBytesLackKeys => [r4_uncommitted_bytes_are_those_of_the_staged_writes];
    UncommittedBytesOnlyGrow => [r4_uncommitted_bytes_are_those_of_the_staged_writes];
    TooLongValueIsLost => [r4_a_value_that_is_too_long_is_refused];
    LargeValueIsCut => [r4_large_values_are_kept];
    ScanEndsAfterTenThousandRows => [r4_writes_of_many_keys_are_kept];
    ScanEndsAfter65536Rows => [r4_writes_of_many_keys_are_kept];
    LengthHas24Bits => [r4_large_values_are_kept];
    ZeroByteIsATombstone => [r4_any_value_is_a_value];
    SnapshotMissesTheLongestKey => [r4_a_key_that_is_too_long_is_refused];
    NameIsAnothers => [r4_a_key_that_is_too_long_is_refused];
    LongKeysAreComparedShort => [r4_a_key_that_is_too_long_is_refused];
    KeyLimitIsKeptAtTheCommit => [
        r4_a_key_that_is_too_long_for_the_engine_is_refused,
        declaration_matches_the_store,
    ];
    KeyLimitIsOneTooMany => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    KeyLimitIs100 => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    LongestKeyLosesItsLastByte => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    PutAllStagesUpToTheKeyLimit => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    DeleteIgnoresTheKeyLimit => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    PutIfAbsentIgnoresTheKeyLimit => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    RestoreIgnoresTheKeyLimit => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    RefusedKeyRollsBack => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    ReadOfALongKeyFails => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    SnapshotIsAskedForLongKeys => [r4_a_key_that_is_too_long_for_the_engine_is_refused];
    StagedChangesEndAfterAThousand => [r4_writes_of_many_keys_are_kept];
    OverwrittenBytesCount => [r4_uncommitted_bytes_are_those_of_the_staged_writes];
    PutIfAbsentRaces => [r4_put_if_absent_has_one_winner];

    KeysAreSigned => [r1_keys_are_ordered_as_unsigned_bytes];
    ShorterKeysComeFirst => [r1_keys_are_ordered_as_unsigned_bytes, r1_every_range_over_every_layering];
    FirstKeyIsLeftOut => [ho_44_both_ends_of_a_range_are_included, r1_a_range_may_be_open_at_either_end];
    LastKeyIsLeftOut => [ho_44_both_ends_of_a_range_are_included, r1_every_range_over_every_layering];
    ExcludedBoundIsIncluded => [r1_an_excluded_bound_is_left_out, r1_a_prefix_ends_at_the_next_one];
    OpenEndStopsBeforeFF => [r1_a_range_may_be_open_at_either_end, ho_45_a_prefix_of_ff_has_no_upper_bound];
    OpenStartSkipsTheEmptyKey => [r1_a_range_may_be_open_at_either_end];
    InvertedBoundsAreSwapped => [ho_43_inverted_bounds_are_an_empty_range];
    InvertedBoundsPanic => [ho_43_inverted_bounds_are_an_empty_range];
    EmptyRangeFails => [r1_a_range_without_keys_is_empty];
    PrefixOfFFIsEmpty => [ho_45_a_prefix_of_ff_has_no_upper_bound];
    EmptyPrefixIsNothing => [r1_the_empty_prefix_is_everything];
    BoundsAreCutShort => [ho_46_rows_of_one_key_do_not_mix_with_anothers];
    BoundsAreCutAt64 => [r1_long_bounds_count_to_their_last_byte];
    LongBoundFails => [r1_bounds_may_be_longer_than_any_key];
    LongBoundIsCutLikeAKey => [r1_bounds_may_be_longer_than_any_key];
    DescendingScanAscends => [r1_every_range_over_every_layering, r1_keys_are_ordered_as_unsigned_bytes];
    DescendingScanEndsEarly => [r1_every_range_over_every_layering, r2_a_scan_sees_staged_writes];
    DescendingScanEndsAfter13000Rows => [r4_writes_of_many_keys_are_kept];
    ScansShareTheirPlace => [r1_scans_do_not_disturb_each_other];
    PagesLoseARow => [r1_ranges_over_many_rows];

    GetMissesStagedDeletes => [r2_a_get_sees_staged_writes];
    ScanMissesWhatIsStaged => [r2_a_scan_sees_staged_writes];
    ScanShowsOverwrittenRows => [r2_a_scan_sees_staged_writes];
    AbsentKeyIsReadAsEmpty => [r2_a_read_of_an_absent_key_calls_nobody];
    NumberOfEntriesIsZero => [r2_the_number_of_entries_is_about_right];
    FailedReadIsAbsent => [r2_a_read_that_failed_is_an_error];

    CursorIsLive => [
        ho_41_writes_beside_a_cursor_do_not_show,
        r3_a_commit_beside_a_cursor_does_not_show,
        r3_a_rollback_beside_a_cursor_does_not_show,
        r3_a_wipe_beside_a_cursor_does_not_show,
        r3_a_restore_beside_a_cursor_does_not_show,
    ];
    CursorFailsAfterWrites => [r3_a_commit_beside_a_cursor_does_not_show, r3_a_wipe_beside_a_cursor_does_not_show];
    CursorBeginsAgain => [r3_a_cursor_stands_nowhere_before_its_first_row_and_after_its_last];
    CursorKeepsItsLastRow => [r3_a_cursor_stands_nowhere_before_its_first_row_and_after_its_last];
    ClosedCursorEnds => [ho_40_a_cursor_of_a_closed_store_is_closed_for_good];
    ClosedCursorFailsOnce => [ho_40_a_cursor_of_a_closed_store_is_closed_for_good];
    CursorKeepsItsStore => [ho_42_a_cursor_outlives_its_store_on_another_thread];
    StagedCursorMissesADrop => [ho_42_a_cursor_outlives_its_store_on_another_thread];
    FailedCursorEnds => [r3_a_cursor_that_failed_fails_for_good];
    CursorHidesErrors => [r3_a_cursor_that_failed_fails_for_good];
    CursorReadsPagesLive => [r3_a_long_scan_is_stable];
    CursorsAreLimited => [r3_many_views_are_open_at_once];
    CloseIsRefusedWhileReading => [r3_a_close_does_not_wait_for_cursors];

    SnapshotShowsWhatIsStaged => [r2_a_snapshot_is_committed_data_only];
    SnapshotIsLive => [r2_a_snapshot_is_stable];
    SnapshotHasLiveOffsets => [r2_a_snapshot_carries_its_offsets_and_its_position];
    SnapshotHasALivePosition => [r2_a_snapshot_carries_its_offsets_and_its_position];
    SnapshotIgnoresRanges => [r2_a_snapshot_is_scanned_like_its_store];
    SnapshotOutlivesTheClose => [r2_a_snapshot_of_a_closed_store_is_closed];
    SnapshotTakesItsCursorsAlong => [r2_a_snapshots_cursor_outlives_it];
    SnapshotsShareTheirView => [r2_snapshots_of_different_commits_stand_side_by_side];
    SnapshotsCursorReadsPagesLive => [r2_a_long_scan_of_a_snapshot_is_stable];
    WipeReachesIntoSnapshots => [r2_a_snapshot_is_stable];
    CommitShowsInTwoSteps => [r2_snapshots_show_whole_commits_while_the_owner_commits];
    WipeIsTakenInTwo => [r2_snapshots_show_whole_wipes];
    ForgettingTakesThePositionLater => [r2_snapshots_show_whole_resets];
    SnapshotExpires => [r2_a_snapshot_is_kept_through_many_commits];
    SnapshotScanEndsAfter5000Rows => [r4_writes_of_many_keys_are_kept];

    RowsVanishDuringACommit => [r2_a_row_never_vanishes_during_a_commit];
    ScanIsCutShortByAClose => [r3_a_close_ends_the_reads_of_others_with_an_error];
    StoresShareTheirRows => [d2_two_directories_are_two_stores];
    WritesDuringACommitAreLost => [o2_no_write_is_lost_between_commits];
    DeletesDuringACommitAreLost => [o2_no_write_is_lost_between_commits];
    RestoreShowsInTwoSteps => [r2_snapshots_show_whole_commits_while_the_owner_commits];
    CommitBesideACloseIsLost => [r5_a_close_beside_commits_keeps_those_that_returned];

    RollbackDoesNothing => [r5_a_rollback_drops_what_is_staged];
    CloseCommits => [r5_a_close_never_commits];
    DropCommits => [r5_a_drop_never_commits];
    DropWhilePanickingCommits => [r5_a_drop_while_panicking_never_commits];
    SnapshotOutlivesAPanic => [r5_a_drop_while_panicking_never_commits];
    FlushCommits => [r5_a_flush_never_commits];
    SecondCloseFails => [r5_closing_twice_is_fine];
    WipeKeepsWhatIsStaged => [r5_a_wipe_removes_everything];
    WipeRemovesTenThousandRows => [r5_a_wipe_of_many_rows_removes_them_all];
    ClosedStoreIsEmpty => [ho_64_every_use_after_a_close_is_closed];
    ClosedStoreTakesWrites => [
        ho_64_every_use_after_a_close_is_closed,
        ho_64_a_closed_store_does_not_reach_into_its_successor,
    ];
    ClosedStoreHasNoOutcome => [ho_64_every_use_after_a_close_is_closed];
    SecondCloseFreesTheSuccessor => [
        d2_a_close_or_a_drop_frees_the_directory,
        ho_64_a_closed_store_does_not_reach_into_its_successor,
    ];

    RestoreRollsBack => [o2_a_restore_over_staged_writes_is_refused];
    RestoreIsStaged => [o2_a_restored_batch_is_one_step];
    RestoredTombstoneIsAValue => [ho_28_a_restored_tombstone_deletes];
    RestoreKeepsWhatIsThere => [
        ho_29_a_restored_key_that_was_deleted_and_put_again_is_there,
        r4_a_restored_batch_equals_its_records_one_at_a_time,
    ];
    LargeRestoreLosesDeletes => [r4_a_restored_batch_equals_its_records_one_at_a_time];
    RestoreWithoutRecordsIsSkipped => [o2_a_restored_batch_may_lack_records_or_offsets];
    RestoreWithoutOffsetsForgetsThem => [o2_a_restored_batch_may_lack_records_or_offsets];
    RestoreEndsAfterTenThousandRecords => [r4_a_restored_batch_of_many_records_is_kept];

    FailedCommitRollsBack => [o7_a_refused_commit_can_be_repeated];
    FailedCommitLeavesItsOffsets => [o7_a_refused_commit_leaves_no_offset_behind];
    FailedWipeRollsBack => [o7_a_refused_restore_or_wipe_changes_nothing];
    FailedCommitLosesItsChanges => [o7_a_refused_commit_can_be_repeated];
    PoisonedDropKeepsTheLock => [o7_reopening_after_an_unknown_outcome_shows_a_whole_commit];
    UnknownDoesNotPoison => [o7_a_store_that_cannot_tell_is_poisoned];
    PoisonedEngineStaysOpen => [o7_a_store_that_cannot_tell_is_poisoned];
    UnknownIsCalledNotApplied => [o7_a_store_that_cannot_tell_is_poisoned];
    UnknownCommitIsHalfRepeated => [o7_reopening_after_an_unknown_outcome_shows_a_whole_commit];

    NothingIsLocked => [d2_a_second_open_in_the_process_is_locked, d2_another_process_is_locked_out];
    OtherProcessesAreNotLockedOut => [d2_another_process_is_locked_out];
    LockIsWaitedFor => [d2_a_second_open_in_the_process_is_locked];
    LockOutlivesItsOwner => [ho_37_the_directory_of_a_killed_owner_is_free];
    RefusedOpenFreesTheLock => [d2_a_refused_open_frees_nothing];
    ReadOffsetsFreesTheLock => [d2_reading_offsets_frees_nothing];
    CloseKeepsTheLock => [d2_a_close_or_a_drop_frees_the_directory];
    LockIsOnThePath => [d2_another_path_to_the_directory_is_locked];
    LockIsOnTheName => [d2_two_directories_are_two_stores];
    LockRaces => [d2_of_several_opens_at_once_one_succeeds];
    ParentsAreNotMade => [d2_two_directories_are_two_stores];
    SnapshotsAreDeclaredFalse => [declaration_matches_the_store];
    DurableCommitIsDeclaredTrue => [declaration_matches_the_store];
    SupplierSaysVolatile => [declaration_matches_the_store];
    LongKeysAreDeclaredFalse => [declaration_matches_the_store];
}

/// The report in `docs/` has a row for each case: who adds one runs `cargo xtask conformance` again.
#[test]
fn the_report_has_every_case() {
    let report = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md")).unwrap();
    let missing: Vec<_> = CASES.iter().filter(|case| !report.contains(&format!("| `{}`<br>", case.name()))).collect();
    assert!(missing.is_empty(), "docs/conformance.md lacks {missing:?}: run `cargo xtask conformance`");
    let rows = report.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, CASES.len(), "docs/conformance.md has cases that are no more: run `cargo xtask conformance`");
}
