//! The conformance suite for any kstate store or backend.
