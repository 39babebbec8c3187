//! A toy store in which bugs can be planted.

pub(crate) mod backend;
pub(crate) mod bug;
mod cursor;
pub(crate) mod document;
mod key_limit;
mod key_values;
mod lock;
mod log;
mod state;
mod state_store;
pub(crate) mod store;
mod torn;
mod view;
