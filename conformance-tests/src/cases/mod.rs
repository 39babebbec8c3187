//! The cases, by subject. Each is a function of its name in [the table](crate::CASES).

pub(crate) mod declaration;
pub(crate) mod offsets;
