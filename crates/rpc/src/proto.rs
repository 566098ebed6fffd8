//! The compiled contracts of `proto/`, where they are documented.
#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

/// Types that the contracts share.
pub mod types {
    pub mod v1 {
        tonic::include_proto!("shoal.types.v1");
    }
}

/// The link between a worker and a node.
pub mod worker {
    pub mod v1 {
        tonic::include_proto!("shoal.worker.v1");
    }
}

/// The link between an edge and a session node.
pub mod node {
    pub mod v1 {
        tonic::include_proto!("shoal.node.v1");
    }
}
