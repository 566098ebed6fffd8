//! Routes to the owners of sessions.

use super::area::area;
use super::definition::WAIT_SECONDS;

area! {
    /// Routes to the owners.
    RouteMetrics {
        /// A request or stream goes on at an owner, after a wait.
        pub waited: Histogram(WAIT_SECONDS) []
            = "shoal.route.wait.duration", "s",
            "Wait of requests and streams for a session's new owner.";
        /// A stream goes on.
        pub reattached: Counter []
            = "shoal.route.reattached", "{stream}",
            "Streams that continued after their owner or connection changed.";
        /// A stream cannot go on.
        pub lost_stream: Counter []
            = "shoal.route.lost_streams", "{stream}",
            "Streams that ended; their clients must reconnect.";
        /// Something went by way of another node.
        pub relayed: Counter []
            = "shoal.route.relayed", "{request}",
            "Requests and streams that another node relayed.";
        /// No owner was found in time.
        pub given_up: Counter []
            = "shoal.route.given_up", "{request}",
            "Requests and streams that found no owner in time.";
    }
}
