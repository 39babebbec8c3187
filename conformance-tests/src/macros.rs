/// Makes one `#[test]` for each case of the suite, in the module where it stands.
///
/// It takes a [`Harness`](crate::Harness) and every [`Capability`](crate::Capability), in this order, each a literal
/// `true` or `false`. Tests of cases that need what the store does not declare are ignored, with the reason. To run
/// the suite several times, as for each durability, put each into a module of its own.
///
/// A store without a key-value interface takes a [`StateStoreHarness`](crate::StateStoreHarness), `state_store_only:
/// true` as its first word, and not the capabilities that belong to that interface.
///
/// ```
/// use kstate_conformance_tests::{BackendHarness, conformance_tests};
/// use kstate_store_memory::MemoryBackends;
///
/// mod memory {
///     use super::*;
///
///     conformance_tests! {
///         harness: BackendHarness::new(MemoryBackends::new()),
///         persistent: false,
///         manages_offsets: true,
///         durable_commit: false,
///         synced_commit: false,
///         snapshots: true,
///         reverse_scan: true,
///         long_keys: true,
///         multi_process_lock: false,
///         closed_offsets: true,
///         faults: true,
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance_tests {
    (
        harness: $harness:expr,
        persistent: $persistent:tt,
        manages_offsets: $manages_offsets:tt,
        durable_commit: $durable_commit:tt,
        synced_commit: $synced_commit:tt,
        snapshots: $snapshots:tt,
        reverse_scan: $reverse_scan:tt,
        long_keys: $long_keys:tt,
        multi_process_lock: $multi_process_lock:tt,
        closed_offsets: $closed_offsets:tt,
        faults: $faults:tt $(,)?
    ) => {
        $crate::__declared! {
            [persistent: $persistent, manages_offsets: $manages_offsets, durable_commit: $durable_commit,
                synced_commit: $synced_commit, snapshots: $snapshots, reverse_scan: $reverse_scan,
                long_keys: $long_keys, multi_process_lock: $multi_process_lock, closed_offsets: $closed_offsets,
                faults: $faults,]
            {
                // Once, so that a mistake in it is one error and not one for each case.
                #[allow(dead_code, reason = "every case may be ignored")]
                fn __harness() -> impl $crate::Harness + 'static {
                    $harness
                }
                $crate::__for_each_case! {
                    [$crate::__tests] [
                        [__harness()]
                        [$persistent $manages_offsets $durable_commit $synced_commit $snapshots $reverse_scan
                            $long_keys $multi_process_lock $closed_offsets $faults]
                    ]
                }
            }
        }
    };
    (
        harness: $harness:expr,
        state_store_only: true,
        persistent: $persistent:tt,
        manages_offsets: $manages_offsets:tt,
        durable_commit: $durable_commit:tt,
        synced_commit: $synced_commit:tt,
        multi_process_lock: $multi_process_lock:tt,
        closed_offsets: $closed_offsets:tt $(,)?
    ) => {
        $crate::__declared! {
            [persistent: $persistent, manages_offsets: $manages_offsets, durable_commit: $durable_commit,
                synced_commit: $synced_commit, multi_process_lock: $multi_process_lock,
                closed_offsets: $closed_offsets,]
            {
                #[allow(dead_code, reason = "every case may be ignored")]
                fn __harness() -> impl $crate::StateStoreHarness {
                    $harness
                }
                $crate::__for_each_case! {
                    [$crate::__tests] [
                        [__harness()]
                        [$persistent $manages_offsets $durable_commit $synced_commit false false false
                            $multi_process_lock $closed_offsets false only]
                    ]
                }
            }
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "conformance_tests! takes, in this order, `harness: <expression>`, and `true` or `false` for each of \
             `persistent`, `manages_offsets`, `durable_commit`, `synced_commit`, `snapshots`, `reverse_scan`, \
             `long_keys`, `multi_process_lock`, `closed_offsets`, `faults`; see `Capability` for what they mean. For a store \
             without a key-value interface: `harness`, `state_store_only: true`, `persistent`, `manages_offsets`, \
             `durable_commit`, `synced_commit`, `multi_process_lock`, `closed_offsets`"
        );
    };
}

/// Expands to what is given with it if each capability is a literal `true` or `false`.
#[doc(hidden)]
#[macro_export]
macro_rules! __declared {
    ([] { $($items:tt)* }) => {
        $($items)*
    };
    ([$capability:ident: true, $($rest:tt)*] $items:tt) => {
        $crate::__declared! { [$($rest)*] $items }
    };
    ([$capability:ident: false, $($rest:tt)*] $items:tt) => {
        $crate::__declared! { [$($rest)*] $items }
    };
    ([$capability:ident: $other:tt, $($rest:tt)*] $items:tt) => {
        ::core::compile_error!(::core::concat!(
            "conformance_tests!: `", ::core::stringify!($capability), "` is a literal `true` or `false`, not `",
            ::core::stringify!($other), "`: what a test is ignored for is known when it is compiled"
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$harness:tt $declared:tt] $($module:ident { $($name:ident: $clause:ident $needs:tt $about:literal;)* })*) => {
        $($($crate::__test! { @need $needs $declared $harness $name })*)*
    };
}

/// Goes through the needs of one case: the first that is not met makes it an ignored test.
#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    (@need [] $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @emit [] $declared $harness $name }
    };
    // A store that is a `StateStore` only has a mark as its last capability.
    (@need [key_value $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $l:tt $c:tt $f:tt only] $harness:tt $name:ident) => {
        $crate::__test! {
            @emit [#[ignore = "store declares `state_store_only: true`"]] [$p $m $d $y $s $r $k $l $c $f only] $harness $name
        }
    };
    (@need [key_value $($needs:ident)*] $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @need [$($needs)*] $declared $harness $name }
    };
    (@need [volatile $($needs:ident)*] [true $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! { @emit [#[ignore = "store declares `persistent: true`"]] [true $($rest)*] $harness $name }
    };
    (@need [volatile $($needs:ident)*] $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @need [$($needs)*] $declared $harness $name }
    };
    (@need [unmanaged_offsets $($needs:ident)*] [$p:tt true $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! { @emit [#[ignore = "store declares `manages_offsets: true`"]] [$p true $($rest)*] $harness $name }
    };
    (@need [unmanaged_offsets $($needs:ident)*] $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @need [$($needs)*] $declared $harness $name }
    };
    (@need [persistent $($needs:ident)*] [$p:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $p "store declares `persistent: false`" [$($needs)*] [$p $($rest)*] $harness $name
        }
    };
    (@need [manages_offsets $($needs:ident)*] [$p:tt $m:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $m "store declares `manages_offsets: false`" [$($needs)*] [$p $m $($rest)*] $harness $name
        }
    };
    (@need [durable_commit $($needs:ident)*] [$p:tt $m:tt $d:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $d "store declares `durable_commit: false`" [$($needs)*] [$p $m $d $($rest)*] $harness $name
        }
    };
    (@need [synced_commit $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $y "store declares `synced_commit: false`" [$($needs)*] [$p $m $d $y $($rest)*] $harness $name
        }
    };
    (@need [snapshots $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $s "store declares `snapshots: false`" [$($needs)*] [$p $m $d $y $s $($rest)*] $harness $name
        }
    };
    (@need [reverse_scan $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $r "store declares `reverse_scan: false`" [$($needs)*] [$p $m $d $y $s $r $($rest)*] $harness $name
        }
    };
    (@need [long_keys $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $k "store declares `long_keys: false`" [$($needs)*] [$p $m $d $y $s $r $k $($rest)*] $harness $name
        }
    };
    (@need [short_keys $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt true $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @emit [#[ignore = "store declares `long_keys: true`"]] [$p $m $d $y $s $r true $($rest)*] $harness $name
        }
    };
    (@need [short_keys $($needs:ident)*] $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @need [$($needs)*] $declared $harness $name }
    };
    (@need [multi_process_lock $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $l:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $l "store declares `multi_process_lock: false`" [$($needs)*] [$p $m $d $y $s $r $k $l $($rest)*] $harness $name
        }
    };
    (@need [closed_offsets $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $l:tt $c:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $c "store declares `closed_offsets: false`" [$($needs)*] [$p $m $d $y $s $r $k $l $c $($rest)*] $harness $name
        }
    };
    (@need [faults $($needs:ident)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $l:tt $c:tt $f:tt $($rest:tt)*] $harness:tt $name:ident) => {
        $crate::__test! {
            @met $f "store declares `faults: false`" [$($needs)*] [$p $m $d $y $s $r $k $l $c $f $($rest)*] $harness $name
        }
    };
    (@met true $reason:literal $needs:tt $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @need $needs $declared $harness $name }
    };
    (@met false $reason:literal $needs:tt $declared:tt $harness:tt $name:ident) => {
        $crate::__test! { @emit [#[ignore = $reason]] $declared $harness $name }
    };
    (@emit [$($ignore:tt)*] [$p:tt $m:tt $d:tt $y:tt $s:tt $r:tt $k:tt $l:tt $c:tt $f:tt only] [$harness:expr] $name:ident) => {
        #[::core::prelude::v1::test]
        $($ignore)*
        fn $name() {
            $crate::__run_state_store_test(
                $harness,
                [$p, $m, $d, $y, $s, $r, $k, $l, $c, $f],
                ::core::module_path!(),
                ::core::stringify!($name),
            );
        }
    };
    (@emit [$($ignore:tt)*] [$($declared:tt)*] [$harness:expr] $name:ident) => {
        #[::core::prelude::v1::test]
        $($ignore)*
        fn $name() {
            $crate::__run_test($harness, [$($declared),*], ::core::module_path!(), ::core::stringify!($name));
        }
    };
}
