use std::time::{Duration, Instant};

/// Notices that this thread was away so long that the group may have taken it for dead, and may not have told it yet: its
/// process was stopped, or a record took that long.
#[derive(Debug)]
pub(crate) struct Absence {
    limit: Duration,
    last: Instant,
    suspicious: bool,
}

impl Absence {
    /// `session_timeout` is how long the group waits.
    pub(crate) fn new(session_timeout: Duration, now: Instant) -> Self {
        // The client's own threads keep the session alive meanwhile, unless the whole process was away.
        Self { limit: session_timeout / 2, last: now, suspicious: false }
    }

    /// This thread is here.
    pub(crate) fn is_here(&mut self, now: Instant) {
        self.suspicious |= now.saturating_duration_since(self.last) > self.limit;
        self.last = now;
    }

    /// Whether it was away for too long since the group was last asked.
    pub(crate) fn is_suspicious(&self, now: Instant) -> bool {
        self.suspicious || now.saturating_duration_since(self.last) > self.limit
    }

    /// The group was asked, and knows it.
    pub(crate) fn clear(&mut self, now: Instant) {
        self.suspicious = false;
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_absence_is_remembered_until_the_group_was_asked() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut absence = Absence::new(Duration::from_secs(10), start);
        absence.is_here(after(5));
        assert!(!absence.is_suspicious(after(10)));
        assert!(absence.is_suspicious(after(11)), "it has not come back yet");
        absence.is_here(after(11));
        absence.is_here(after(12));
        assert!(absence.is_suspicious(after(12)));
        absence.clear(after(13));
        assert!(!absence.is_suspicious(after(13)));
    }
}
