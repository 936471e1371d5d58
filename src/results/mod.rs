//! Result folders.
