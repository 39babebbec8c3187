//! The vocabulary and the contract of kstate: state stores that know their changelog offsets.
