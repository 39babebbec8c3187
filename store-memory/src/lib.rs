//! An in-memory kstate backend: an ordered map with constant-time snapshots.
