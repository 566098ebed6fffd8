//! Routes to the owners of sessions.

use super::area::area;
use super::definition::WAIT_SECONDS;

area! {
    /// Routes to the owners.
    RouteMetrics {
        /// A request or stream goes on at an owner, after a wait.
        pub waited: Histogram(WAIT_SECONDS) []
            = "shoal.route.wait.duration", "s",
            "How long requests and streams waited for a new owner, after their session had lost its owner.";
        /// A stream goes on.
        pub reattached: Counter []
            = "shoal.route.reattached", "{stream}",
            "Streams that went on at another owner, or after the way to it broke.";
        /// A stream cannot go on.
        pub lost_stream: Counter []
            = "shoal.route.lost_streams", "{stream}",
            "Streams that could not go on; their clients have to come back.";
        /// Something went by way of another node.
        pub relayed: Counter []
            = "shoal.route.relayed", "{request}",
            "Requests and streams that reached the owner by way of another node.";
        /// No owner was found in time.
        pub given_up: Counter []
            = "shoal.route.given_up", "{request}",
            "Requests and streams for which no owner was found in time.";
    }
}
