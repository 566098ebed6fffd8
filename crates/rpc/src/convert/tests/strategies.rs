use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::{Just, Strategy, any};
use proptest::{collection, option, prop_oneof};
use shoal_ports::{
    AskId, Binding, Call, CallEvent, CallEventKind, CallFailure, CallId, CallOutcome, Caller,
    ClientInfo, Epoch, ForwardedHeaders, GatewayError, Grant, LedgerNumber, ListScope, LogFilter,
    MayStart, Memo, NodeId, PoolCatalog, Principal, RawObjectOrEmpty, Repeat, SessionId,
    SessionTransport, StateRequest, StreamItem, WorkerId,
};
use shoal_protocol::{
    Body, EventId, InvalidMessage, LogLevel, Message, Method, Notification, Outcome, RawJson,
    Request, RequestId, Response, Revision, RpcError, StreamId, TraceContext,
};
use tokio::time::Instant;

pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), any::<String>()]
}

pub(super) fn json() -> impl Strategy<Value = RawJson> {
    prop_oneof![
        Just(RawJson::from_static("null")),
        Just(RawJson::from_static("{}")),
        Just(RawJson::from_static(
            r#"{"b":1.0,  "a":[1e400,123456789012345678901]}"#
        )),
        any::<String>().prop_map(|text| RawJson::of(&text)),
        any::<i64>().prop_map(|number| RawJson::of(&number)),
    ]
}

pub(super) fn millis() -> impl Strategy<Value = Duration> {
    (0..10_000_000_u64).prop_map(Duration::from_millis)
}

pub(super) fn transport() -> impl Strategy<Value = SessionTransport> {
    prop_oneof![
        Just(SessionTransport::Streamable),
        Just(SessionTransport::SingleStream),
    ]
}

pub(super) fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::ToolsCall),
        Just(Method::Progress),
        any::<String>().prop_map(|name| Method::from_name(&name)),
    ]
}

pub(super) fn error() -> impl Strategy<Value = RpcError> {
    (any::<i64>(), text(), option::of(json())).prop_map(|(code, message, data)| RpcError {
        code,
        message,
        data,
    })
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        json().prop_map(Outcome::Result),
        error().prop_map(Outcome::Error)
    ]
}

pub(super) fn failure() -> impl Strategy<Value = CallFailure> {
    prop_oneof![
        text().prop_map(|reason| CallFailure::NotExecuted { reason }),
        (text(), millis()).prop_map(|(reason, retry_after)| CallFailure::Overloaded {
            reason,
            retry_after
        }),
        text().prop_map(|reason| CallFailure::OutcomeUnknown { reason }),
        millis().prop_map(|limit| CallFailure::DeadlineExceeded { limit }),
        Just(CallFailure::Cancelled),
        any::<u64>().prop_map(|epoch| CallFailure::Superseded {
            epoch: Epoch(epoch)
        }),
    ]
}

fn state() -> impl Strategy<Value = StateRequest> {
    prop_oneof![
        text().prop_map(|key| StateRequest::Get { key }),
        (text(), option::of(json()), any::<u64>()).prop_map(|(key, value, writing)| {
            StateRequest::Set {
                key,
                value,
                writing,
            }
        }),
        Just(StateRequest::Keys),
    ]
}

pub(super) fn event() -> impl Strategy<Value = CallEvent> {
    let ends = prop_oneof![
        json().prop_map(CallOutcome::Result),
        error().prop_map(CallOutcome::Error),
        failure().prop_map(CallOutcome::Failed),
    ];
    let kinds = prop_oneof![
        (method(), option::of(json()))
            .prop_map(|(method, params)| CallEventKind::Notification { method, params }),
        (any::<u64>(), method(), option::of(json())).prop_map(|(ask, method, params)| {
            CallEventKind::Ask {
                ask: AskId(ask),
                method,
                params,
            }
        }),
        (any::<u64>(), state()).prop_map(|(ask, request)| CallEventKind::State {
            ask: AskId(ask),
            request,
        }),
        millis().prop_map(|retry| CallEventKind::CloseStream { retry }),
        ends.prop_map(CallEventKind::Finished),
    ];
    (any::<u64>(), kinds).prop_map(|(sequence, kind)| CallEvent { sequence, kind })
}

pub(super) fn revision() -> impl Strategy<Value = Revision> {
    proptest::sample::select(Revision::ALL.to_vec())
}

pub(super) fn caller() -> impl Strategy<Value = Caller> {
    (
        text(),
        option::of(text()),
        revision(),
        option::of(json()),
        json(),
        headers(),
    )
        .prop_map(
            |(principal, session, revision, client_info, capabilities, headers)| Caller {
                principal: Principal::new(principal),
                session: session.map(SessionId::new),
                revision,
                client_info: client_info.map(ClientInfo::new),
                capabilities,
                headers,
                grant: None,
            },
        )
}

pub(super) fn grant() -> impl Strategy<Value = Arc<Grant>> {
    let scopes = collection::vec(text().prop_map(Arc::from), 0..3);
    (scopes, json()).prop_map(|(scopes, claims)| {
        Arc::new(Grant {
            scopes: scopes.into(),
            claims,
            until: None,
            read: Memo::default(),
        })
    })
}

pub(super) fn headers() -> impl Strategy<Value = ForwardedHeaders> {
    let header = (text(), any::<Vec<u8>>());
    let header = header.prop_map(|(name, value)| (name.into(), value.into()));
    collection::vec(header, 0..3).prop_map(ForwardedHeaders::new)
}

pub(super) fn log() -> impl Strategy<Value = LogFilter> {
    proptest::sample::select(vec![
        LogFilter::Off,
        LogFilter::AtLeast(LogLevel::Debug),
        LogFilter::AtLeast(LogLevel::Info),
        LogFilter::AtLeast(LogLevel::Notice),
        LogFilter::AtLeast(LogLevel::Warning),
        LogFilter::AtLeast(LogLevel::Error),
        LogFilter::AtLeast(LogLevel::Critical),
        LogFilter::AtLeast(LogLevel::Alert),
        LogFilter::AtLeast(LogLevel::Emergency),
    ])
}

pub(super) fn call(now: Instant) -> impl Strategy<Value = Call> {
    let what = (any::<[u8; 16]>(), method(), option::of(json()), caller());
    let how = (
        option::of(json()),
        log(),
        millis(),
        any::<bool>(),
        trace(),
        (
            option::of(binding()),
            any::<bool>(),
            option::of(any::<u64>()),
        ),
    );
    (what, how).prop_map(
        move |((id, method, params, caller), (token, log, left, repeatable, trace, bound))| Call {
            id: CallId::from_bytes(id),
            method,
            params,
            caller: Arc::new(caller),
            progress_token: token,
            log,
            deadline: now + left,
            repeat: if repeatable {
                Repeat::Safe
            } else {
                Repeat::Never
            },
            trace,
            binding: bound.0,
            may_start: match bound.1 {
                true => MayStart::No,
                false => MayStart::Yes,
            },
            epoch: bound.2.map(Epoch),
        },
    )
}

pub(super) fn trace() -> impl Strategy<Value = Option<TraceContext>> {
    // W3C Trace Context forbids zero IDs.
    let ids = (1_u128.., 1_u64.., any::<bool>());
    let state = option::of("[a-z]{1,8}=[a-z0-9]{1,8}");
    option::of((ids, state).prop_map(|((trace, span, kept), state)| {
        let parent = format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(kept));
        TraceContext::parse_trusted(&parent, state.as_deref()).expect("a trace context")
    }))
}

pub(super) fn request_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<u64>().prop_map(RequestId::from_number),
        any::<String>().prop_map(|text| RequestId::from_string(&text)),
    ]
}

pub(super) fn request() -> impl Strategy<Value = Request> {
    (request_id(), method(), option::of(json())).prop_map(|(id, method, params)| Request {
        id,
        method,
        params,
    })
}

pub(super) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        request().prop_map(Message::Request),
        (method(), option::of(json()))
            .prop_map(|(method, params)| Message::Notification(Notification { method, params })),
        (request_id(), outcome())
            .prop_map(|(id, outcome)| Message::Response(Response { id, outcome })),
    ]
}

pub(super) fn body() -> impl Strategy<Value = Body> {
    let invalid = (option::of(request_id()), error())
        .prop_map(|(id, error)| Err(InvalidMessage { id, error }));
    prop_oneof![
        message().prop_map(Body::Single),
        collection::vec(prop_oneof![message().prop_map(Ok), invalid], 0..5).prop_map(Body::Batch),
    ]
}

pub(super) fn binding() -> impl Strategy<Value = Binding> {
    ("[a-z]{1,8}", option::of(any::<(u64, u64)>())).prop_map(|(worker, ledger)| Binding {
        worker: WorkerId::new(worker),
        ledger: ledger.map(|(incarnation, number)| LedgerNumber {
            incarnation,
            number,
        }),
    })
}

pub(super) fn event_id() -> impl Strategy<Value = EventId> {
    any::<(u32, u32, u64)>().prop_map(|(epoch, stream, sequence)| EventId {
        epoch,
        stream: StreamId(stream),
        sequence,
    })
}

pub(super) fn item() -> impl Strategy<Value = StreamItem> {
    prop_oneof![
        (event_id(), any::<Vec<u8>>()).prop_map(|(id, data)| StreamItem::Event {
            id,
            data: data.into()
        }),
        any::<Vec<u8>>().prop_map(|data| StreamItem::Passing { data: data.into() }),
        event_id().prop_map(|id| StreamItem::Prime { id }),
        millis().prop_map(StreamItem::Retry),
        Just(StreamItem::Moved),
    ]
}

pub(super) fn refusal() -> impl Strategy<Value = GatewayError> {
    let many = || (any::<u32>().prop_map(|limit| limit as usize), millis());
    prop_oneof![
        Just(GatewayError::NotFound),
        error().prop_map(GatewayError::Rejected),
        option::of(text()).prop_map(|owner| GatewayError::Moved {
            owner: owner.map(NodeId::new)
        }),
        text().prop_map(|reason| GatewayError::Unreachable { reason }),
        text().prop_map(|reason| GatewayError::Unsent { reason }),
        text().prop_map(|reason| GatewayError::WorkerAway { reason }),
        text().prop_map(|why| GatewayError::HistoryGone(why.into())),
        many().prop_map(
            |(limit, retry_after)| GatewayError::TooManySessionsOfPrincipal { limit, retry_after }
        ),
        many().prop_map(
            |(limit, retry_after)| GatewayError::TooManyBytesOfPrincipal { limit, retry_after }
        ),
        many()
            .prop_map(|(limit, retry_after)| GatewayError::TooManySessions { limit, retry_after }),
        (text(), millis()).prop_map(|(reason, retry_after)| GatewayError::Overloaded {
            reason,
            retry_after
        }),
        (text(), millis()).prop_map(|(reason, retry_after)| GatewayError::Unavailable {
            reason,
            retry_after
        }),
        text().prop_map(GatewayError::Internal),
    ]
}

pub(super) fn catalog() -> impl Strategy<Value = PoolCatalog> {
    let list = || collection::vec(json(), 0..4);
    let said = (option::of(json()), option::of(text()), json());
    let lists = prop_oneof![Just(ListScope::Shared), Just(ListScope::Principal)];
    let numbers = (any::<[u64; 3]>(), any::<[Option<u64>; 4]>(), lists);
    let headers = (
        collection::vec(text().prop_map(Arc::from), 0..3),
        collection::vec(text(), 0..3),
        collection::vec(text(), 0..3),
    );
    (said, list(), list(), list(), list(), numbers, headers).prop_map(
        |(
            (server_info, instructions, capabilities),
            tools,
            resources,
            templates,
            prompts,
            (ages, ttl_ms, lists),
            (headers, left_out, cut),
        )| {
            PoolCatalog {
                server_info,
                instructions,
                capabilities: RawObjectOrEmpty(capabilities),
                tools,
                resources,
                resource_templates: templates,
                prompts,
                ttl_ms,
                generations: ages,
                headers,
                lists,
                left_out,
                cut,
            }
        },
    )
}
