use shoal_telemetry::metrics::LinkKind;

use crate::proto::node::v1::{EdgeFrame, SessionFrame, edge_frame, session_frame};
use crate::proto::types::v1::{Close, Fragment, Ping, Pong};
use crate::proto::worker::v1::{NodeFrame, WorkerFrame, node_frame, worker_frame};

pub(crate) trait Frame: prost::Message + Default + 'static {
    const LINK: LinkKind;

    fn of_link(own: LinkFrame<Self>) -> Self;

    fn sort(self) -> Sorted<Self>;
}

pub(crate) enum LinkFrame<F> {
    Batch(Vec<F>),
    Fragment(Fragment),
    Ping(u64),
    Pong(Pong),
    Close(String),
}

pub(crate) enum Sorted<F> {
    Link(LinkFrame<F>),
    Contract(F),
    Unknown,
}

macro_rules! frame {
    ($frame:ident, $kinds:ident, $link:ident) => {
        impl From<$kinds::Frame> for $frame {
            fn from(frame: $kinds::Frame) -> Self {
                Self { frame: Some(frame) }
            }
        }

        impl Frame for $frame {
            const LINK: LinkKind = LinkKind::$link;

            fn of_link(own: LinkFrame<Self>) -> Self {
                match own {
                    LinkFrame::Batch(frames) => $kinds::Frame::Batch($kinds::Batch { frames }),
                    LinkFrame::Fragment(fragment) => $kinds::Frame::Fragment(fragment),
                    LinkFrame::Ping(nonce) => $kinds::Frame::Ping(Ping { nonce }),
                    LinkFrame::Pong(pong) => $kinds::Frame::Pong(pong),
                    LinkFrame::Close(reason) => $kinds::Frame::Close(Close { reason }),
                }
                .into()
            }

            fn sort(self) -> Sorted<Self> {
                Sorted::Link(match self.frame {
                    Some($kinds::Frame::Batch(batch)) => LinkFrame::Batch(batch.frames),
                    Some($kinds::Frame::Fragment(fragment)) => LinkFrame::Fragment(fragment),
                    Some($kinds::Frame::Ping(ping)) => LinkFrame::Ping(ping.nonce),
                    Some($kinds::Frame::Pong(pong)) => LinkFrame::Pong(pong),
                    Some($kinds::Frame::Close(close)) => LinkFrame::Close(close.reason),
                    Some(frame) => return Sorted::Contract(frame.into()),
                    None => return Sorted::Unknown,
                })
            }
        }
    };
}

frame!(WorkerFrame, worker_frame, Worker);
frame!(NodeFrame, node_frame, Worker);
frame!(EdgeFrame, edge_frame, Gateway);
frame!(SessionFrame, session_frame, Gateway);
