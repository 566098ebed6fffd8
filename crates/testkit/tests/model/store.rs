//! The store's atomic steps.

use super::setup::{Fault, Setup};
use super::state::{CallId, Epoch, Event, NodeId, RequestId, Store, Stream, WorkerId};

/// Why the store refused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// What `begin` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// A new call.
    New(CallId),
    /// The delivery had begun this call already.
    Before(CallId),
}

/// What became of a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// The call will never be started.
    Yes,
    /// Somebody has started it.
    TooLate,
}

/// An append of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Append {
    /// The stream.
    pub(crate) call: CallId,
    /// The position of the last event, as the writer believes.
    pub(crate) after: u8,
    /// The event.
    pub(crate) event: Event,
    /// The highest of the worker's events, with this one.
    pub(crate) seen: u8,
}

impl Store {
    /// Whether the node may claim: nobody's lease stands in its way, and its own lives. Without the second
    /// half two nodes whose leases have lapsed could take the session from one another for ever.
    pub(crate) fn is_claimable_by(&self, node: NodeId) -> bool {
        let is_free = self.owner == node || !self.leases[usize::from(self.owner)];
        is_free && self.leases[usize::from(node)]
    }

    /// Makes `node` the owner if owner and epoch are still what its claim has read.
    pub(crate) fn swap_owner(
        &mut self,
        setup: &Setup,
        node: NodeId,
        read: (NodeId, Epoch),
    ) -> Result<Epoch, Refused> {
        if read != (self.owner, self.epoch) && !setup.plants(Fault::BlindClaim) {
            return Err(Refused);
        }
        self.owner = node;
        self.epoch = read.1 + 1;
        Ok(self.epoch)
    }

    /// The call that a delivery has begun, also when it has ended.
    pub(crate) fn find(&self, request: RequestId) -> Option<CallId> {
        let found = self.streams.iter().position(|s| s.request == request);
        found.map(|index| u8::try_from(index).expect("few streams"))
    }

    /// Opens a stream and journals its call, unless the delivery has done so before: one step, since two
    /// deliveries of one request may be under way at the same time.
    pub(crate) fn begin(
        &mut self,
        setup: &Setup,
        epoch: Epoch,
        request: RequestId,
        worker: WorkerId,
    ) -> Result<Begun, Refused> {
        self.admit(setup, epoch)?;
        let is_checked_here =
            !setup.plants(Fault::NoDeliveryCheck) && !setup.plants(Fault::CheckApartFromBegin);
        if let Some(call) = self.find(request).filter(|_| is_checked_here) {
            return Ok(Begun::Before(call));
        }
        self.note_write(epoch);
        let call = u8::try_from(self.streams.len()).expect("few streams");
        self.streams.push(Stream {
            request,
            worker,
            events: Vec::new(),
            seen: 0,
            ended: false,
            withdrawn: false,
        });
        Ok(Begun::New(call))
    }

    /// Takes back a call that was begun, unless another delivery of its request has brought it further.
    pub(crate) fn withdraw(
        &mut self,
        setup: &Setup,
        epoch: Epoch,
        call: CallId,
    ) -> Result<Withdrawn, Refused> {
        self.admit(setup, epoch)?;
        let stream = &mut self.streams[usize::from(call)];
        if !stream.events.is_empty() {
            return Ok(Withdrawn::TooLate);
        }
        stream.ended = true;
        stream.withdrawn = true;
        self.note_write(epoch);
        Ok(Withdrawn::Yes)
    }

    /// Appends an event, or finds that this very append was carried out before.
    pub(crate) fn append(
        &mut self,
        setup: &Setup,
        epoch: Epoch,
        append: Append,
    ) -> Result<(), Refused> {
        self.admit(setup, epoch)?;
        let stream = &mut self.streams[usize::from(append.call)];
        let position = u8::try_from(stream.events.len()).expect("few events");
        if !setup.plants(Fault::NoPositionCheck) {
            if position == append.after + 1 {
                return Ok(());
            }
            if position != append.after {
                return Err(Refused);
            }
        }
        stream.events.push(append.event);
        stream.seen = append.seen;
        stream.ended |= append.event.is_answer();
        self.note_write(epoch);
        Ok(())
    }

    /// Whether a node may read the journal. A former owner must not: it could start a call that the present
    /// one has begun, and may yet withdraw.
    pub(crate) fn admit_reader(&self, setup: &Setup, epoch: Epoch) -> Result<(), Refused> {
        if setup.plants(Fault::UnfencedJournal) {
            return Ok(());
        }
        self.admit(setup, epoch)
    }

    fn admit(&self, setup: &Setup, epoch: Epoch) -> Result<(), Refused> {
        if epoch == self.epoch || setup.plants(Fault::NoEpochCheck) {
            Ok(())
        } else {
            Err(Refused)
        }
    }

    /// The claim was a write of the newest epoch, so an older one that is taken goes back.
    fn note_write(&mut self, epoch: Epoch) {
        self.regressed |= epoch < self.epoch;
    }
}
