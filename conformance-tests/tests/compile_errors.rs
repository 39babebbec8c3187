//! What a user of the macro reads who made a mistake in it.

#![allow(missing_docs)]

#[test]
fn mistakes_have_readable_errors() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/compile_errors/*.rs");
}
