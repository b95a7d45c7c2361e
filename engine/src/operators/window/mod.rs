//! Event-time windows.
