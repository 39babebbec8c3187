use super::*;

#[test]
fn every_engine_and_workload_runs_and_both_sides_agree() {
    // Fewer than a whole number of commits.
    run(["stores", "--records", "2500", "--commit-every", "1000", "--rounds", "2"].map(Into::into)).unwrap();
}

#[test]
fn the_scan_finds_what_opening_each_store_finds() {
    run_scan(["scan", "--stores", "5", "--records", "300", "--rounds", "2"].map(Into::into)).unwrap();
}
