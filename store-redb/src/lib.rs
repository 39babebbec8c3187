//! A kstate backend on redb, a B-tree engine in pure Rust.
