use std::sync::Arc;

use shoal_ports::WorkerId;

use super::{LinkToWorker, UnsentFrame};
use crate::LinkConfig;
use crate::link::outbox::Outbox;
use crate::proto::worker::v1::Start;
use crate::proto::worker::v1::node_frame::Frame;

/// A call may have found its link just before the worker said goodbye.
#[test]
fn a_flight_that_no_worker_hears_of_is_not_opened() {
    let (outbox, stream) = Outbox::new(1000);
    let (gauge, config) = (Arc::default(), LinkConfig::default());
    let link = LinkToWorker::new(WorkerId::new("w"), 1, outbox, gauge, &config, 5);
    let open = |flight| {
        let opened = link.open(flight, |flight| {
            Frame::Start(Box::new(Start { flight, call: None }))
        });
        opened.err()
    };
    assert_eq!(open(1), None);
    link.outbox.finish("goodbye");
    assert_eq!(open(2), Some(UnsentFrame::Over));
    assert!(link.flight(1).is_some() && link.flight(2).is_none());
    drop(stream);
    assert_eq!(open(3), Some(UnsentFrame::Over));
    link.over();
    assert_eq!(open(4), Some(UnsentFrame::Over));
}
