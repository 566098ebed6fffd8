//! Catalog, pools, balancing, and the bridge between the protocol's eras.
