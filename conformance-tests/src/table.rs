use crate::{Capability, Case, Clause, Need, cases};

/// The table of cases: the tests, [`CASES`] and the documentation are made from it, and so cannot differ.
///
/// Each line is `name: clause [needs] "what it checks"`; the needs are the macro's capabilities, and `volatile` for
/// `persistent: false`.
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
                    "the committed offset is that of the last record applied, so `next` is where a restore goes on";
                o3_a_lower_offset_is_stored_as_given: O3 [manages_offsets]
                    "a lower offset than the stored one is stored as given";
            }
        }
    };
}

macro_rules! capability {
    (persistent) => {
        Need { capability: Capability::Persistent, declared: true }
    };
    (volatile) => {
        Need { capability: Capability::Persistent, declared: false }
    };
    (manages_offsets) => {
        Need { capability: Capability::ManagesOffsets, declared: true }
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
