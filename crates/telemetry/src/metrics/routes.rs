use super::area::area;
use super::definition::WAIT_SECONDS;

area! {
    /// The metrics of routes to session owners.
    RouteMetrics {
        /// Records a wait for an owner.
        pub waited: Histogram(WAIT_SECONDS) []
            = "shoal.route.wait.duration", "s", "Wait of requests and streams for a session's new owner.";
        /// Counts a stream that continues after a change of owner or connection.
        pub reattached: Counter []
            = "shoal.route.reattached", "{stream}",
            "Streams continued after their owner or connection changed.";
        /// Counts a lost stream.
        pub lost_stream: Counter []
            = "shoal.route.lost_streams", "{stream}", "Streams that could not continue. Their clients must reconnect.";
        /// Counts a relayed request.
        pub relayed: Counter []
            = "shoal.route.relayed", "{request}",
            "Requests and streams that this node sent through another node, because it could not reach the owner directly.";
        /// Counts a request that found no owner in time.
        pub given_up: Counter []
            = "shoal.route.given_up", "{request}",
            "Requests and streams that found no owner in time.";
    }
}
