use super::action::Reply;
use super::fault::Fault;
use super::setup::Setup;
use super::state::{
    Asked, Belief, Binding, Epoch, Event, Frame, Link, NodeId, Phase, State, Step, Task, What,
};

impl State {
    /// If other nodes may have claimed, the node checks the owner now and a lease later.
    pub(crate) fn renew(&mut self, setup: &Setup, node: NodeId) {
        let index = usize::from(node);
        let lapsed = !self.store.leases[index];
        let noted = std::mem::take(&mut self.store.notes[index]);
        // A process that was suspended knows that its lease is uncertain, even if the store does not.
        let doubts = noted || lapsed || !self.node(node).certain;
        self.store.leases[index] = true;
        self.node_mut(node).certain = true;
        if doubts && !setup.plants(Fault::KeepsAfterLapse) {
            self.ask(setup, node);
            let still = matches!(self.node(node).belief, Belief::Owner(_) | Belief::Fresh(_));
            self.node_mut(node).doubts = still && !setup.plants(Fault::AsksOnce);
        }
    }

    pub(crate) fn ask_again(&mut self, setup: &Setup, node: NodeId) {
        self.node_mut(node).doubts = false;
        self.ask(setup, node);
    }

    pub(crate) fn ask(&mut self, setup: &Setup, node: NodeId) {
        if let Belief::Owner(epoch) | Belief::Fresh(epoch) = self.node(node).belief
            && epoch != self.store.epoch
        {
            self.step_down(setup, node);
        }
    }

    /// Returns whether the node may claim: the owner's lease has ended, or the node has evidence that the
    /// owner is gone.
    pub(crate) fn may_claim(&self, setup: &Setup, node: NodeId) -> bool {
        let owner = self.store.owner;
        if self.store.deleted || self.store.away || !self.store.leases[usize::from(node)] {
            return false;
        }
        let held = self.store.leases[usize::from(owner)];
        owner == node || !held || self.has_evidence(setup, owner)
    }

    fn has_evidence(&self, setup: &Setup, owner: NodeId) -> bool {
        let owner = self.node(owner);
        let lately = self.store.claimed_lately && !setup.plants(Fault::NoQuietAfterClaim);
        let heard = setup.plants(Fault::Hearsay) && self.client.attempt > 0;
        !lately && (!owner.alive || owner.refuses || heard)
    }

    pub(crate) fn look(&mut self, setup: &Setup, node: NodeId) {
        let (owner, epoch) = (self.store.owner, self.store.epoch);
        self.node_mut(node).belief = Belief::Claiming(owner, epoch);
        let lives = owner != node && self.store.leases[usize::from(owner)];
        let former = self.node(owner);
        self.past.claimed_needlessly |= lives && former.alive && !former.refuses;
        self.store.notes[usize::from(owner)] |= lives && !setup.plants(Fault::NoNotes);
    }

    pub(crate) fn swap(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let Belief::Claiming(owner, epoch) = self.node(node).belief else {
            unreachable!("only a claim swaps");
        };
        let claimed = self.store.swap_owner(setup, node, (owner, epoch));
        self.past.claims += u8::from(claimed.is_ok() && owner != node);
        self.node_mut(node).belief = match (claimed, reply) {
            (Ok(epoch), Reply::Arrives) => Belief::Fresh(epoch),
            _ => Belief::None,
        };
    }

    pub(crate) fn read_journal(&mut self, setup: &Setup, node: NodeId) {
        let Belief::Fresh(epoch) = self.node(node).belief else {
            unreachable!("only a new owner reads the journal");
        };
        let open = match self.store.read_journal(epoch) {
            Ok(entry) => entry.is_some_and(|entry| !entry.ended),
            Err(_) => return self.step_down(setup, node),
        };
        self.node_mut(node).belief = Belief::Owner(epoch);
        if open {
            self.take_up(setup, node);
        }
    }

    pub(crate) fn take_up(&mut self, setup: &Setup, node: NodeId) {
        let entry = self.store.entry.as_ref().expect("it is journaled");
        let mut task = Task {
            step: Step::Logged,
            after: u8::try_from(entry.events.len()).expect("few events"),
            seen: entry.seen,
            repeated: true,
            ..Task::new(entry.binding)
        };
        task.cancel = std::mem::take(&mut self.node_mut(node).cancels);
        task.attach_only = task.cancel;
        if setup.plants(Fault::BlindRetry) {
            task.binding = self.bind(1 - task.binding.worker);
        }
        self.node_mut(node).task = Some(task);
        self.start_task(node);
    }

    /// Makes the driver check whether its node still owns the session. Another driver reads the worker's events, or a
    /// worker refused a frame as a former owner's; neither is an outcome of the call.
    pub(crate) fn superseded(&mut self, setup: &Setup, node: NodeId) {
        if setup.plants(Fault::StolenReaderIsOutcome) {
            let task = self.task_mut(node);
            task.link = Link::Down;
            task.pending = Some(Event::Unknown);
            return;
        }
        let epoch = self.epoch_of(node);
        if epoch == self.store.epoch {
            self.task_mut(node).link = Link::Unsent;
            self.start_task(node);
        } else {
            self.step_down(setup, node);
        }
    }

    /// Gives up the session. The call continues at its worker.
    pub(crate) fn step_down(&mut self, setup: &Setup, node: NodeId) {
        let epoch = match self.node(node).belief {
            Belief::Owner(epoch) | Belief::Fresh(epoch) => Some(epoch),
            Belief::None | Belief::Claiming(..) => None,
        };
        let this = self.node_mut(node);
        this.belief = Belief::None;
        this.doubts = false;
        let task = this.task.take();
        self.lose_requests(node, task.as_ref());
        if let (Some(task), Some(epoch)) = (task, epoch) {
            if setup.plants(Fault::CancelOnLostSession) {
                self.send(frame(task.binding, node, epoch, What::Cancel));
            }
            let waits = |attempt| self.is_awaited(node, attempt);
            if task.waiter.is_some_and(waits) {
                let left = self.client.left;
                self.lose_node();
                // The node reports the session as moved, which tells the edge that nothing was sent
                // to a worker.
                if setup.plants(Fault::MovedAfterStart) {
                    self.client.left = left;
                }
            }
        }
    }

    pub(crate) fn lose_requests(&mut self, node: NodeId, task: Option<&Task>) {
        let this = self.node_mut(node);
        let cancels = std::mem::take(&mut this.cancels) || task.is_some_and(|task| task.cancel);
        if cancels {
            self.client.also = Asked::No;
        }
        if self.client.reply == Asked::At(node) {
            self.client.reply = Asked::No;
        }
        let held = task.is_some_and(|task| task.step != Step::Logged);
        if held && self.client.phase == Phase::Gone {
            self.past.cancel_lost = true;
        }
    }
}

impl Task {
    pub(crate) fn new(binding: Binding) -> Self {
        Self {
            binding,
            refused: 0,
            repeated: false,
            link: Link::Unsent,
            step: Step::Hold,
            waiter: None,
            after: 0,
            seen: 0,
            pending: None,
            cancel: false,
            attach_only: false,
            denied: false,
        }
    }
}

pub(crate) fn frame(binding: Binding, node: NodeId, epoch: Epoch, what: What) -> Frame {
    Frame {
        binding,
        node,
        epoch,
        what,
    }
}
