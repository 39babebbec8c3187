//! A backend of kstate on [fjall], an engine that kstate does not ship: what a third party writes, and all of it.
//!
//! [`FjallBackends`] opens directories, [`FjallBackend`] is an open one, and `tests/conformance.rs` proves it.
//! [How to implement a store](guide) walks through it.

mod backend;
mod cursor;
mod engine;
mod place;
mod view;

pub use backend::{FjallBackend, FjallBackends};
