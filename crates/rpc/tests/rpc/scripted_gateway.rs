use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, LazySender, OpenSession, Opened, Post,
    SessionGateway, SessionId, SessionRef, SessionTasks, StreamItem, TaskRequest, lazy_channel,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId, StreamId};
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Open(OpenSession),
    Deliver(SessionRef, Post),
    Listen(Option<EventId>),
    Close,
    Adopt(SessionRef, AdoptCall),
    Task(SessionRef, TaskRequest),
    Tasks,
    UntilOver(SessionRef, Option<Vec<RequestId>>),
}

pub(crate) enum Answer {
    Delivered(Delivered),
    Refused(GatewayError),
    Later(watch::Receiver<bool>, Delivered),
    Never,
    Panic,
}

pub(crate) struct ScriptedGateway {
    pub(crate) name: &'static str,
    pub(crate) asked: watch::Sender<Vec<Asked>>,
    pub(crate) answers: Mutex<VecDeque<Answer>>,
    pub(crate) opened: Mutex<Option<Result<Opened, GatewayError>>>,
    pub(crate) tasks: Mutex<Option<SessionTasks>>,
    pub(crate) dropped: watch::Sender<usize>,
}

impl ScriptedGateway {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            asked: watch::Sender::default(),
            answers: Mutex::default(),
            opened: Mutex::default(),
            tasks: Mutex::default(),
            dropped: watch::Sender::default(),
        })
    }

    pub(crate) fn will(&self, answer: Answer) {
        self.answers.lock().push_back(answer);
    }

    pub(crate) fn will_stream(&self) -> LazySender<StreamItem> {
        let (sender, items) = lazy_channel(10_000);
        let stream = EventStream {
            items: items.into(),
            cursor: event_id(0),
        };
        self.will(Answer::Delivered(Delivered::Stream(stream)));
        sender
    }

    pub(crate) async fn first(&self) -> Asked {
        let mut asked = self.asked.subscribe();
        let asked = asked.wait_for(|asked| !asked.is_empty()).await.unwrap();
        asked[0].clone()
    }

    fn note(&self, asked: Asked) {
        self.asked.send_modify(|all| all.push(asked));
    }

    async fn answer(&self) -> Result<Delivered, GatewayError> {
        let answer = self.answers.lock().pop_front();
        match answer {
            Some(Answer::Delivered(delivered)) => Ok(delivered),
            Some(Answer::Refused(error)) => Err(error),
            Some(Answer::Later(mut now, delivered)) => {
                now.wait_for(|now| *now).await.unwrap();
                Ok(delivered)
            }
            Some(Answer::Panic) => panic!("as scripted"),
            Some(Answer::Never) => {
                let _dropped = Dropped(&self.dropped);
                std::future::pending().await
            }
            None => Err(GatewayError::NotFound),
        }
    }
}

struct Dropped<'a>(&'a watch::Sender<usize>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

pub(crate) fn event_id(sequence: u64) -> EventId {
    EventId {
        epoch: 7,
        stream: StreamId(3),
        sequence,
    }
}

#[async_trait]
impl SessionGateway for ScriptedGateway {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        self.note(Asked::Open(open));
        let opened = self.opened.lock().take();
        opened.unwrap_or(Err(GatewayError::Internal(self.name.to_owned())))
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        self.note(Asked::Deliver(to.clone(), post));
        self.answer().await
    }

    async fn listen(
        &self,
        _: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        self.note(Asked::Listen(cursor));
        match self.answer().await? {
            Delivered::Stream(stream) => Ok(stream),
            other => panic!("{other:?} is no stream"),
        }
    }

    async fn close(&self, _: &SessionRef) -> Result<(), GatewayError> {
        self.note(Asked::Close);
        self.answer().await.map(|_| ())
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Err(GatewayError::Internal(self.name.to_owned()))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        self.note(Asked::Adopt(to.clone(), call));
        task_of(self.answer().await?)
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        self.note(Asked::Task(to.clone(), request));
        task_of(self.answer().await?)
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        let requests = requests.map(<[_]>::to_vec);
        self.note(Asked::UntilOver(to.clone(), requests));
        self.answer().await.map(|_| ())
    }

    async fn tasks_of(&self, _: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.note(Asked::Tasks);
        Ok(self.tasks.lock().clone())
    }
}

fn task_of(delivered: Delivered) -> Result<Task, GatewayError> {
    match delivered {
        Delivered::Task(task) => Ok(task),
        other => panic!("{other:?} is no task"),
    }
}
