//! What a third party writes who brings a store of their own: [`FjallBackend`], a backend of kstate on
//! [fjall](https://docs.rs/fjall), an engine that kstate does not ship; and [`LegacyStore`], a store that was there
//! before, and knows nothing of offsets. The tests are the proof that they are right.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/implement-a-store.md")]
mod guide {}

mod directory;
mod fjall_backend;
mod legacy;

pub use fjall_backend::{FjallBackend, FjallBackends};
pub use legacy::LegacyStore;
