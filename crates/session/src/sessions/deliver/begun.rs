use std::sync::Arc;

use bytes::Bytes;

use crate::live::LiveSession;
use crate::state::AdmittedCall;

pub(crate) struct BegunBatch {
    pub(super) live: Arc<LiveSession>,
    pub(super) answers: Vec<Bytes>,
    pub(super) calls: Vec<AdmittedCall>,
}
