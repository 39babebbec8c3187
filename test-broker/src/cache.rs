//! Where things that are worth keeping between runs go: never into the checkout.

use std::env;
use std::path::PathBuf;

/// The directory for what is fetched or built once and used again: `$KSTATE_CACHE_DIR`, or else `~/.cache/kstate`.
///
/// It is not created here.
///
/// ```
/// assert!(kstate_test_broker::cache_directory().is_absolute() || std::env::var_os("KSTATE_CACHE_DIR").is_some());
/// ```
#[must_use]
pub fn cache_directory() -> PathBuf {
    if let Some(chosen) = env::var_os("KSTATE_CACHE_DIR").filter(|value| !value.is_empty()) {
        return PathBuf::from(chosen);
    }
    match env::home_dir().filter(|home| home.is_absolute()) {
        Some(home) => home.join(".cache").join("kstate"),
        None => env::temp_dir().join("kstate-cache"),
    }
}
