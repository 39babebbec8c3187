//! The cases, by subject. Each is a function of its name in [the table](crate::CASES).

pub(crate) mod concurrency;
pub(crate) mod crash;
pub(crate) mod cursors;
pub(crate) mod declaration;
pub(crate) mod durability;
pub(crate) mod faults;
pub(crate) mod keys;
pub(crate) mod kills;
pub(crate) mod lifecycle;
pub(crate) mod locks;
pub(crate) mod model;
pub(crate) mod offsets;
pub(crate) mod ownership;
pub(crate) mod positions;
pub(crate) mod ranges;
pub(crate) mod reads;
pub(crate) mod removals;
pub(crate) mod restore;
pub(crate) mod scale;
pub(crate) mod snapshots;
pub(crate) mod volume;
pub(crate) mod writes;
