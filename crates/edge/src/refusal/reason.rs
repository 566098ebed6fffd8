//! What metrics say of a refusal.

use shoal_ports::GatewayError;
use shoal_protocol::code;
use shoal_telemetry::metrics::RefusalReason;

use super::Refusal;
use crate::backlog::Full;

impl Refusal {
    /// What metrics say of it.
    pub(crate) fn reason(&self) -> RefusalReason {
        match self {
            Self::ForeignHost(_) | Self::ForeignOrigin(_) => RefusalReason::Origin,
            Self::MethodNotAllowed { .. } => RefusalReason::NotServed,
            Self::Unauthenticated(_) => RefusalReason::Unauthenticated,
            Self::TooManyRequests { .. }
            | Self::TooManyStreams { .. }
            | Self::NoRoom { .. }
            | Self::AnswerNotKept(Full::Node(_)) => RefusalReason::Overloaded,
            Self::TooManyRequestsOfPrincipal { .. }
            | Self::TooManyStreamsOfPrincipal { .. }
            | Self::NoRoomOfPrincipal { .. }
            | Self::AnswerNotKept(Full::Principal(_)) => RefusalReason::Quota,
            Self::BodyTooLarge { .. } => RefusalReason::BodyTooLarge,
            Self::BodyTooSlow { .. } | Self::BodyBroken => RefusalReason::BodyBroken,
            Self::UnsupportedVersionHeader(_) => RefusalReason::Revision,
            Self::Modern(error) if error.code == code::UNSUPPORTED_VERSION => {
                RefusalReason::Revision
            }
            Self::Modern(error) if error.code == code::HEADER_MISMATCH => RefusalReason::Headers,
            Self::HostMissing
            | Self::HostUnlikeAuthority
            | Self::HeaderTwice(_)
            | Self::MirroredTwice(_)
            | Self::HeadersTooLarge { .. }
            | Self::NotAcceptable(_)
            | Self::UnsupportedMediaType(_)
            | Self::EncodedBody
            | Self::SessionMissing
            | Self::SessionParameterMissing
            | Self::InvalidSessionId
            | Self::InvalidEventId(_) => RefusalReason::Headers,
            Self::Message(_) | Self::Modern(_) => RefusalReason::Malformed,
            Self::Gateway(error) => reason_of(error),
        }
    }
}

/// The same of a refusal of the sessions.
fn reason_of(error: &GatewayError) -> RefusalReason {
    match error {
        GatewayError::NotFound | GatewayError::HistoryGone(_) => RefusalReason::SessionGone,
        GatewayError::Rejected(_) => RefusalReason::Malformed,
        GatewayError::TooManySessionsOfPrincipal { .. }
        | GatewayError::TooManyBytesOfPrincipal { .. } => RefusalReason::Quota,
        GatewayError::TooManySessions { .. } | GatewayError::Overloaded { .. } => {
            RefusalReason::Overloaded
        }
        GatewayError::Moved { .. }
        | GatewayError::Unavailable { .. }
        | GatewayError::Unreachable { .. } => RefusalReason::Unavailable,
        GatewayError::Internal(_) => RefusalReason::Other,
    }
}
