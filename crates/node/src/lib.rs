//! Configuration, roles, wiring, shutdown order, and the shoal binary.
