//! A toy store in which bugs can be planted.

pub(crate) mod backend;
pub(crate) mod bug;
mod cursor;
mod log;
pub(crate) mod store;
