use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A random number. The standard library seeds the hashers of its maps from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A random number below `end`; 0 if `end` is 0.
pub(crate) fn random_below(end: u64) -> u64 {
    random().checked_rem(end).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_keep_their_bound() {
        let numbers = (0..100).map(|_| random()).collect::<std::collections::HashSet<_>>();
        assert_eq!(numbers.len(), 100);
        assert!((0..1000).all(|_| random_below(7) < 7));
        assert!((0..7).all(|wanted| (0..1000).any(|_| random_below(7) == wanted)));
        assert_eq!(random_below(0), 0);
    }
}
