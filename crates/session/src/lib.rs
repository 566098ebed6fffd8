//! The session's state machine and its actor.
