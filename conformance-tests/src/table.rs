use crate::{Capability, Case, Clause, Need, cases};

/// The table of cases: the tests, [`CASES`] and the documentation are made from it, and so cannot differ.
///
/// Each line is `name: clause [needs] "what it checks"`; the needs are the macro's capabilities, `volatile` for
/// `persistent: false`, `unmanaged_offsets` for `manages_offsets: false`, `short_keys` for `long_keys: false`, and
/// `key_value` for stores that are more than a `StateStore`.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_case {
    ([$($callback:tt)*] $arguments:tt) => {
        $($callback)*! { $arguments
            declaration {
                declaration_matches_the_store: Declaration []
                    "the store can do what is declared true, and cannot do what is declared false";
            }
            offsets {
                o1_a_restore_resumes_after_the_committed_offset: O1 [manages_offsets]
                    "the committed offset is that of the last record applied, so a restore goes on at the next";
                o2_a_commit_of_no_offsets_keeps_them: O2 [manages_offsets]
                    "commit({}) commits the records and changes no offset";
                o2_a_partition_that_is_not_named_keeps_its_offset: O2 [manages_offsets]
                    "a commit changes the offsets it names and no other";
                o2_offsets_are_committed_without_records: O2 [manages_offsets]
                    "a commit of offsets alone is a commit";
                o2_nothing_of_a_commit_is_seen_before_it: O2 [manages_offsets snapshots]
                    "rows, offset and position show together, and not before the commit";
                o3_a_lower_offset_is_stored_as_given: O3 [manages_offsets]
                    "an offset below the stored one is stored as given, by a commit and by a restore";
                o3_an_offset_can_be_committed_again: O3 [manages_offsets]
                    "an offset that is stored already is no reason to skip the records";
                o3_any_offset_is_stored_as_given: O3 [manages_offsets]
                    "offsets from 0 to the greatest are stored to the last bit";
                ho_04_an_offset_that_is_too_high_can_be_repaired: O3 [manages_offsets]
                    "after a wipe and a restore the honest lower offset is stored";
                o4_nothing_is_committed_at_first: O4 []
                    "a new store has no offset, no position and no rows, and a commit of none gives it none";
                o4_each_partition_has_its_own_offset: O4 [manages_offsets]
                    "a partition that never had an offset has none, however like another's its name is";
                o4_a_wipe_leaves_no_offset: O4 [manages_offsets]
                    "a wipe takes offsets and position along, for good";
                o4_a_volatile_store_reopens_empty: O4 [volatile]
                    "a store that is not persistent has nothing after a reopen";
                o4_a_store_that_does_not_manage_offsets_has_none: O4 [unmanaged_offsets]
                    "a store that does not manage offsets answers `None`, whatever was committed";
                o4_forgetting_offsets_keeps_the_records: O4 [manages_offsets]
                    "forget_offsets takes offsets and position, but neither rows nor what is staged";
                ho_22_forgotten_offsets_do_not_come_back: O4 [manages_offsets]
                    "after a reset no offset is found, now or after a reopen";
            }
            ownership {
                o5_a_commit_of_a_foreign_partition_is_refused_whole: O5 [manages_offsets]
                    "a commit that names a foreign partition is refused, and nothing of it is applied";
                o5_a_restore_of_a_foreign_partition_is_refused_whole: O5 [manages_offsets]
                    "a restored batch that names a foreign partition is refused, and nothing of it is applied";
                o5_a_store_knows_its_partitions: O5 [manages_offsets]
                    "a store knows the partitions it was opened with, also if there are none";
                o5_a_store_reopens_with_other_partitions: O5 [manages_offsets persistent]
                    "each partition finds its own offset, however many others the store is opened with, in whatever order";
                o5_a_partition_that_kafka_could_not_have_is_refused: O5 []
                    "a partition with a bad topic or number is refused when it is named";
                ho_05_a_foreign_offset_is_not_found: O5 [manages_offsets persistent]
                    "an offset that lies in the files for a partition which is not owned is not found";
                o4_a_wipe_or_a_reset_leaves_no_foreign_offset: O4 [manages_offsets persistent]
                    "a wipe or a reset takes the offsets of partitions along which are not owned, for good";
            }
            offsets {
                ho_15_an_offset_is_stored_only_when_it_is_committed: O1 [manages_offsets]
                    "the offset of a record that is not acknowledged is not stored, whatever is staged and flushed";
            }
            positions {
                o2_a_position_is_committed_with_the_records: O2 [manages_offsets]
                    "a staged source position shows after the next commit, as given";
                o2_a_position_keeps_the_partitions_that_are_not_staged: O2 [manages_offsets]
                    "a commit changes the positions that are staged and no other";
                o2_a_restored_position_is_taken_along: O2 [manages_offsets]
                    "a restored batch's position is taken along, and a batch without one keeps it";
                o2_any_position_is_stored_as_given: O2 [manages_offsets]
                    "positions from 0 to the greatest are stored to the last bit, by a commit and by a restore";
                o2_finished_ranges_are_stored_as_given: O2 [manages_offsets]
                    "what is finished above a position is stored with it, by a commit and by a restore, and goes with it";
                ho_17_the_position_moves_with_the_offsets: O2 [manages_offsets]
                    "position, offset and rows are those of one commit after a rollback and a reopen";
            }
            durability {
                o6_reopening_shows_the_last_commit: O6 [persistent]
                    "after a clean close, rows, offset and position are those of the last commit";
                o6_dropping_a_store_keeps_its_commits: O6 [persistent]
                    "a drop is a close: what was committed is there";
                o6_a_flush_makes_every_commit_durable: O6 [persistent manages_offsets]
                    "after a flush or a close the durable offset is the committed one";
                o6_the_durable_offset_is_not_ahead: O6 [manages_offsets]
                    "the durable offset is never ahead of the committed one";
                o6_a_synced_commit_is_durable_at_once: O6 [manages_offsets synced_commit]
                    "with synced commits the durable offset is the committed one at once";
                o6_offsets_are_read_from_a_closed_store: O6 [persistent manages_offsets closed_offsets]
                    "the offsets read from a closed store are the committed ones of the partitions asked for";
                o6_reading_offsets_makes_no_store: O6 [closed_offsets]
                    "reading the offsets where there is no store finds none, and leaves nothing behind";
            }
            writes {
                r4_an_empty_value_is_a_value: R4 []
                    "an empty value is a value while it is staged and when it is committed";
                ho_47_an_empty_value_is_kept: R4 []
                    "an empty value outlives commit, reopen and restore";
                r4_any_value_is_a_value: R4 []
                    "no value is taken for a mark of the store's own, such as that of a deleted row";
                r4_the_empty_key_is_a_key: R4 []
                    "the empty key is stored, scanned and deleted like any other";
                r4_a_key_of_the_stores_own_is_a_key: R4 []
                    "no user key meets what the store keeps for itself";
                r4_deleting_what_is_not_there_is_fine: R4 []
                    "deletes of absent keys succeed and leave nothing";
                r4_a_delete_removes_the_row: R4 []
                    "a deleted row is gone, and can be put again";
                r4_the_last_write_wins: R4 []
                    "of several writes to a key the last one counts";
                r4_put_all_applies_its_entries_in_order: R4 [key_value]
                    "put_all puts and deletes in the order of its entries";
                r4_put_all_stages_all_or_nothing: R4 [key_value]
                    "put_all with one invalid entry stages none";
                r4_put_if_absent_keeps_what_is_there: R4 [key_value]
                    "put_if_absent puts only what is not there, staged or committed, and tells what is";
                r4_staged_changes_are_one_for_each_key_in_order: R4 []
                    "the staged changes are the last one for each key, in the order of the keys";
                r2_the_committed_value_is_the_last_commits: R2 []
                    "the committed value of a key is that of the last commit, whatever is staged over it";
                r4_uncommitted_bytes_are_those_of_the_staged_writes: R4 []
                    "the uncommitted bytes are about those of the staged writes, and none after a commit or a rollback";
            }
            keys {
                r4_a_key_that_is_too_long_is_refused: R4 [key_value long_keys]
                    "a key of the greatest length is stored, a longer one refused";
                r4_a_key_that_is_too_long_for_the_engine_is_refused: R4 [key_value short_keys]
                    "a key of the engine's greatest length is stored, a longer one refused before it is staged";
                r1_bounds_may_be_longer_than_any_key: R1 [key_value]
                    "a bound that is too long to be a key counts to its last byte";
            }
            volume {
                r4_a_value_that_is_too_long_is_refused: R4 [key_value]
                    "a value of more than 1 GiB is refused before it is staged";
                r4_large_values_are_kept: R4 []
                    "values of up to 16 MiB and more read as they were written, whatever their length";
                r4_writes_of_many_keys_are_kept: R4 []
                    "120 000 keys that were written in no order are read in order, both ways and in a snapshot";
                r4_a_restored_batch_of_many_records_is_kept: R4 []
                    "a restored batch of 30 000 records is kept whole";
                r5_a_wipe_of_many_rows_removes_them_all: R5 []
                    "a wipe of 20 000 rows leaves none";
            }
            ranges {
                r1_keys_are_ordered_as_unsigned_bytes: R1 [key_value]
                    "keys come in the order of unsigned bytes, the shorter first";
                r1_a_range_may_be_open_at_either_end: R1 [key_value]
                    "a range may be open at either end";
                r1_an_excluded_bound_is_left_out: R1 [key_value]
                    "an excluded bound is left out, and nothing else";
                r1_a_range_without_keys_is_empty: R1 [key_value]
                    "a range that holds no key is an empty result";
                ho_43_inverted_bounds_are_an_empty_range: R1 [key_value]
                    "a range whose start lies after its end is an empty result, not an error";
                ho_44_both_ends_of_a_range_are_included: R1 [key_value]
                    "both ends of a range are included";
                ho_45_a_prefix_of_ff_has_no_upper_bound: R1 [key_value]
                    "the keys that begin with FF go to the end";
                r1_a_prefix_ends_at_the_next_one: R1 [key_value]
                    "the keys that begin with 03 AA FF end before 03 AB";
                r1_the_empty_prefix_is_everything: R1 [key_value]
                    "the empty prefix is every key";
                ho_46_rows_of_one_key_do_not_mix_with_anothers: R1 [key_value]
                    "rows laid out with the key's length are scanned without those of a key that begins alike";
                r1_every_range_over_every_layering: R1 [key_value]
                    "every kind of range, over committed, staged and mixed rows, agrees with a sorted map";
                r1_scans_do_not_disturb_each_other: R1 [key_value]
                    "scans that are stepped in turn each see their own rows";
                r1_long_bounds_count_to_their_last_byte: R1 [key_value]
                    "bounds and prefixes of 300 bytes are compared to their last byte";
            }
            reads {
                r2_a_get_sees_staged_writes: R2 []
                    "a get of the owner sees its staged puts and deletes";
                r2_a_scan_sees_staged_writes: R2 []
                    "a scan of the owner sees its staged puts and deletes, each row once";
                r2_a_read_of_an_absent_key_calls_nobody: R2 [key_value]
                    "get_with calls its reader once for a key that is there, and never for one that is not";
                r2_the_number_of_entries_is_about_right: R2 [key_value]
                    "the approximate number of entries is within a factor of two of the owner's rows";
            }
            snapshots {
                r2_a_snapshot_is_committed_data_only: R2 [snapshots]
                    "a snapshot shows nothing of what is staged";
                r2_a_snapshot_is_stable: R2 [snapshots]
                    "a snapshot is the same after writes, commits, restores and a wipe";
                r2_a_snapshot_carries_its_offsets_and_its_position: R2 [snapshots manages_offsets]
                    "a snapshot has the offsets and the position of its commit";
                r2_a_snapshot_is_scanned_like_its_store: R2 [snapshots]
                    "ranges, prefixes and both orders work in a snapshot";
                r2_a_snapshot_of_a_closed_store_is_closed: R2 [snapshots]
                    "after the close every call of a snapshot, and of its cursors, is `Closed`";
                r2_a_snapshots_cursor_outlives_it: R2 [snapshots]
                    "a snapshot's cursor keeps what it needs when the snapshot is dropped";
                r2_snapshots_of_different_commits_stand_side_by_side: R2 [snapshots]
                    "each of several snapshots shows its own commit";
                r2_snapshots_show_whole_commits_while_the_owner_commits: R2 [snapshots manages_offsets]
                    "other threads' snapshots are whole commits, in order, while the owner commits";
            }
            removals {
                r2_snapshots_show_whole_wipes: R2 [snapshots manages_offsets]
                    "other threads' snapshots show a wipe in one step";
                r2_snapshots_show_whole_resets: R2 [snapshots manages_offsets]
                    "other threads' snapshots show forget_offsets in one step";
            }
            concurrency {
                r2_a_row_never_vanishes_during_a_commit: R2 [key_value]
                    "a reader on another thread misses no row while the owner commits, and sees no older value again";
                r3_a_close_ends_the_reads_of_others_with_an_error: R3 [key_value]
                    "a close beside readers on other threads ends their reads with `Closed`, never with rows missing";
                o2_no_write_is_lost_between_commits: O2 []
                    "no write is lost that one thread makes while another commits";
                o2_no_position_is_lost_between_commits: O2 [manages_offsets]
                    "no position is lost that one thread stages while another commits";
                r4_put_if_absent_has_one_winner: R4 [key_value]
                    "of two threads that put_if_absent the same key one succeeds, and the other is told";
            }
            cursors {
                ho_41_writes_beside_a_cursor_do_not_show: R3 [key_value]
                    "puts and deletes neither show in an open cursor nor fail it";
                r3_a_commit_beside_a_cursor_does_not_show: R3 [key_value]
                    "commits neither show in an open cursor nor fail it";
                r3_a_rollback_beside_a_cursor_does_not_show: R3 [key_value]
                    "a rollback does not show in an open cursor";
                r3_a_wipe_beside_a_cursor_does_not_show: R3 [key_value]
                    "a wipe does not show in an open cursor";
                r3_a_restore_beside_a_cursor_does_not_show: R3 [key_value]
                    "a restored batch does not show in an open cursor";
                r3_a_cursor_stands_nowhere_before_its_first_row_and_after_its_last: R3 [key_value]
                    "a cursor has no row before the first step and after the end, and stays at its end";
                ho_40_a_cursor_of_a_closed_store_is_closed_for_good: R3 [key_value]
                    "every step of a cursor is `Closed` once the store is, wherever the cursor stands";
                ho_42_a_cursor_outlives_its_store_on_another_thread: R3 [key_value]
                    "a cursor may move to another thread, and is `Closed` when its store is dropped";
                r3_a_close_does_not_wait_for_cursors: R3 [key_value]
                    "a close ends, and frees the directory, while cursors and snapshots are alive";
            }
            lifecycle {
                r5_a_rollback_drops_what_is_staged: R5 []
                    "a rollback drops staged rows and positions, and nothing else";
                r5_a_close_never_commits: R5 [persistent]
                    "a close discards what is staged";
                r5_a_drop_never_commits: R5 [persistent]
                    "a drop discards what is staged";
                r5_a_drop_while_panicking_never_commits: R5 []
                    "a drop by a panic of the owner discards what is staged, ends snapshots and frees the directory";
                r5_a_close_beside_commits_keeps_those_that_returned: R5 [persistent manages_offsets]
                    "a close beside commits on another thread keeps those that returned, and no other";
                r5_a_flush_never_commits: R5 []
                    "a flush neither commits nor drops what is staged";
                r5_closing_twice_is_fine: R5 []
                    "a second close succeeds, and is_open tells the truth";
                r5_a_wipe_removes_everything: R5 []
                    "a wipe removes rows, offsets, position and what is staged, for good, and the store goes on";
                ho_64_every_use_after_a_close_is_closed: R5 []
                    "every call after a close is `Closed`, and changes nothing";
                ho_64_a_closed_store_does_not_reach_into_its_successor: R5 []
                    "calls of a closed store do not touch the store that was opened after it";
            }
            restore {
                o2_a_restored_batch_is_one_step: O2 [manages_offsets]
                    "a restored batch's rows, offset and position are there together, committed";
                o2_a_batch_forgets_offsets_before_it_takes_its_own: O2 [manages_offsets]
                    "a batch that forgets offsets keeps those it brings";
                o2_a_restored_batch_may_lack_records_or_offsets: O2 [manages_offsets]
                    "a batch without records moves the offset, and one without offsets keeps it";
                o2_a_restore_over_staged_writes_is_refused: O2 []
                    "a restore while anything is staged is refused, and changes nothing";
                ho_28_a_restored_tombstone_deletes: R4 []
                    "a restored tombstone deletes, in the batch of its put and in a later one";
                ho_29_a_restored_key_that_was_deleted_and_put_again_is_there: R4 []
                    "in a restored batch the order of its records counts";
                r4_a_restored_batch_equals_its_records_one_at_a_time: R4 []
                    "a restore in batches of any size ends in the same rows";
            }
            faults {
                o7_a_refused_commit_can_be_repeated: O7 [faults manages_offsets]
                    "after a commit that was not applied everything is still staged";
                o7_a_refused_commit_leaves_no_offset_behind: O7 [faults manages_offsets]
                    "the offsets of a commit that was not applied do not come with a later one";
                o7_a_refused_restore_or_wipe_changes_nothing: O7 [faults manages_offsets]
                    "a restore, wipe or forget_offsets that was not applied changes nothing";
                o7_a_store_that_cannot_tell_is_poisoned: O7 [faults]
                    "after an unknown outcome everything but a close is `Poisoned`";
                o7_reopening_after_an_unknown_outcome_shows_a_whole_commit: O7 [faults persistent manages_offsets]
                    "after an unknown outcome a reopen shows the old or the new commit, whole";
                r3_a_cursor_that_failed_fails_for_good: R3 [faults]
                    "a cursor that met an error never goes on, and never looks complete";
                r2_a_read_that_failed_is_an_error: R2 [faults]
                    "a get that failed is an error, not an absent key";
            }
            model {
                model_random_operations_agree_with_a_map: O2 []
                    "random sequences of operations agree with a sorted map at each step; one that does not is printed as a test";
            }
            crash {
                o6_a_kill_leaves_one_whole_commit: O6 [persistent manages_offsets]
                    "a killed process leaves rows, offset and position of one commit, not before the last flush";
                o6_acknowledged_commits_survive_a_kill: O6 [durable_commit persistent manages_offsets]
                    "a commit that returned survives a kill";
                o6_a_killed_restore_goes_on_where_it_was: O6 [persistent manages_offsets]
                    "a restore can be killed anywhere, and goes on from the offset it left";
                o6_a_killed_wipe_is_whole: O6 [persistent manages_offsets]
                    "a killed wipe has happened or not, and one that returned has happened";
                ho_14_staged_writes_do_not_survive_a_kill: O6 [persistent manages_offsets]
                    "nothing of what is staged survives a kill, however much it is";
            }
            kills {
                o6_a_killed_large_commit_is_whole: O6 [persistent manages_offsets]
                    "a kill within a commit of 5000 records leaves all of it or nothing";
                o6_a_killed_commit_of_many_mebibytes_is_whole: O6 [persistent manages_offsets]
                    "a kill within a commit of more than 8 MiB leaves all of it or nothing";
                o6_a_killed_restore_of_many_mebibytes_is_whole: O6 [persistent manages_offsets]
                    "a kill within a restored batch of more than 8 MiB leaves all of it or nothing";
                o6_a_killed_wipe_of_many_rows_is_whole: O6 [persistent manages_offsets]
                    "a kill within a wipe of 20 000 rows leaves all of them, with offset and position, or nothing";
                o6_a_killed_flush_or_close_loses_nothing: O6 [persistent manages_offsets]
                    "a kill within a flush, a close or an open loses nothing that was committed";
                o6_forgotten_offsets_do_not_survive_a_kill: O6 [persistent manages_offsets]
                    "offsets that were forgotten stay so after a kill";
            }
            scale {
                o4_many_partitions_keep_their_offsets: O4 [manages_offsets]
                    "300 partitions have 300 offsets and positions";
                o6_many_commits_are_kept: O6 [persistent manages_offsets]
                    "600 commits are there after a reopen, and what only the first of them moved";
                r1_ranges_over_many_rows: R1 [key_value]
                    "ranges over rows that fill many pages, committed and staged, agree with a sorted map";
                r2_a_snapshot_is_kept_through_many_commits: R2 [snapshots]
                    "a snapshot and its cursor are the same after 300 commits";
                r3_many_views_are_open_at_once: R3 [key_value]
                    "300 cursors and snapshots can be open at once, and each shows its own rows";
                r3_a_long_scan_is_stable: R3 [key_value]
                    "what changes far ahead of a cursor does not show in it";
                r2_a_long_scan_of_a_snapshot_is_stable: R2 [snapshots]
                    "what changes far ahead of a snapshot's cursor does not show in it";
            }
            locks {
                d2_a_second_open_in_the_process_is_locked: D2 [multi_process_lock]
                    "a second open in the same process is `Locked` at once, and disturbs nobody";
                d2_another_path_to_the_directory_is_locked: D2 [multi_process_lock]
                    "another path to a directory that is open leads to `Locked` too";
                d2_of_several_opens_at_once_one_succeeds: D2 [multi_process_lock]
                    "of several opens at the same time one succeeds, and the others are `Locked`";
                d2_two_directories_are_two_stores: D2 []
                    "stores in two directories have nothing in common";
                d2_a_close_or_a_drop_frees_the_directory: D2 [multi_process_lock]
                    "a close or a drop frees the directory, once";
                d2_another_process_is_locked_out: D2 [multi_process_lock]
                    "an open in another process is `Locked` at once, and disturbs nobody";
                d2_a_refused_open_frees_nothing: D2 [multi_process_lock]
                    "after a refused open in its own process the directory is still closed to others";
                d2_reading_offsets_frees_nothing: D2 [multi_process_lock closed_offsets]
                    "after its offsets were read while it is open, the directory is still closed to others";
                ho_37_the_directory_of_a_killed_owner_is_free: D2 [multi_process_lock]
                    "the directory of a killed owner is free, without anybody's help";
            }
        }
    };
}

macro_rules! capability {
    (key_value) => {
        Need { capability: Capability::StateStoreOnly, declared: false }
    };
    (persistent) => {
        Need { capability: Capability::Persistent, declared: true }
    };
    (volatile) => {
        Need { capability: Capability::Persistent, declared: false }
    };
    (manages_offsets) => {
        Need { capability: Capability::ManagesOffsets, declared: true }
    };
    (unmanaged_offsets) => {
        Need { capability: Capability::ManagesOffsets, declared: false }
    };
    (durable_commit) => {
        Need { capability: Capability::DurableCommit, declared: true }
    };
    (synced_commit) => {
        Need { capability: Capability::SyncedCommit, declared: true }
    };
    (snapshots) => {
        Need { capability: Capability::Snapshots, declared: true }
    };
    (reverse_scan) => {
        Need { capability: Capability::ReverseScan, declared: true }
    };
    (long_keys) => {
        Need { capability: Capability::LongKeys, declared: true }
    };
    (short_keys) => {
        Need { capability: Capability::LongKeys, declared: false }
    };
    (multi_process_lock) => {
        Need { capability: Capability::MultiProcessLock, declared: true }
    };
    (closed_offsets) => {
        Need { capability: Capability::ClosedOffsets, declared: true }
    };
    (faults) => {
        Need { capability: Capability::Faults, declared: true }
    };
}

macro_rules! case_table {
    ([] $($module:ident { $($name:ident: $clause:ident [$($need:ident)*] $about:literal;)* })*) => {
        /// Every case of the suite, in the order of the table.
        pub static CASES: &[Case] = &[$($(
            Case {
                name: stringify!($name),
                clause: Clause::$clause,
                needs: &[$(capability!($need)),*],
                about: $about,
                run: cases::$module::$name,
            },
        )*)*];
    };
}

__for_each_case!([case_table] []);
