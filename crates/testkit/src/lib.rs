//! Clusters and clients for tests.
