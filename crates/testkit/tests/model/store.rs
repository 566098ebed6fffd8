use super::fault::Fault;
use super::setup::Setup;
use super::state::{Binding, Entry, Epoch, Event, NodeId, Past, Store};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Append {
    pub(crate) after: u8,
    pub(crate) event: Event,
    pub(crate) seen: u8,
}

impl Store {
    /// Makes `node` the owner if owner and epoch are still those that its claim has read.
    pub(crate) fn swap_owner(
        &mut self,
        setup: &Setup,
        node: NodeId,
        read: (NodeId, Epoch),
    ) -> Result<Epoch, Stale> {
        if read != (self.owner, self.epoch) && !setup.plants(Fault::BlindClaim) {
            return Err(Stale);
        }
        self.claimed_lately |= self.owner != node;
        self.owner = node;
        self.epoch = read.1 + 1;
        Ok(self.epoch)
    }

    pub(crate) fn begin(
        &mut self,
        setup: &Setup,
        past: &mut Past,
        epoch: Epoch,
        binding: Binding,
    ) -> Result<&Entry, Stale> {
        self.admit(setup, past, epoch)?;
        Ok(self.entry.get_or_insert_with(|| Entry::new(binding)))
    }

    pub(crate) fn rebind(
        &mut self,
        setup: &Setup,
        past: &mut Past,
        epoch: Epoch,
        binding: Binding,
    ) -> Result<(), Stale> {
        self.admit(setup, past, epoch)?;
        let entry = self.entry.get_or_insert_with(|| Entry::new(binding));
        entry.binding = binding;
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        setup: &Setup,
        past: &mut Past,
        epoch: Epoch,
        binding: Binding,
    ) -> Result<(), Stale> {
        self.admit(setup, past, epoch)?;
        past.writings += u8::from(!self.written);
        self.written = true;
        if !setup.plants(Fault::UnjournaledWriting) {
            self.entry.get_or_insert_with(|| Entry::new(binding));
        }
        Ok(())
    }

    /// Recognises an append that has succeeded before.
    pub(crate) fn append(
        &mut self,
        setup: &Setup,
        past: &mut Past,
        epoch: Epoch,
        append: Append,
    ) -> Result<(), Stale> {
        self.admit(setup, past, epoch)?;
        let Some(entry) = &mut self.entry else {
            return Ok(());
        };
        if !setup.plants(Fault::NoPositionCheck) {
            let position = u8::try_from(entry.events.len()).expect("few events");
            if position == append.after + 1 {
                return Ok(());
            }
            if position != append.after {
                return Err(Stale);
            }
        }
        entry.events.push(append.event);
        entry.seen = append.seen;
        entry.ended |= append.event.is_answer();
        Ok(())
    }

    pub(crate) fn delete(
        &mut self,
        setup: &Setup,
        past: &mut Past,
        epoch: Epoch,
    ) -> Result<(), Stale> {
        self.admit(setup, past, epoch)?;
        self.deleted = true;
        Ok(())
    }

    /// Reads the journal's entry. The store remembers a write as long as its call is journaled.
    pub(crate) fn read_journal(&mut self, epoch: Epoch) -> Result<Option<&Entry>, Stale> {
        if epoch != self.epoch {
            return Err(Stale);
        }
        self.written &= self.entry.is_some();
        Ok(self.entry.as_ref())
    }

    /// Refuses former owners, because a claim counts as a write of the newest epoch.
    fn admit(&self, setup: &Setup, past: &mut Past, epoch: Epoch) -> Result<(), Stale> {
        if epoch < self.epoch {
            if !setup.plants(Fault::NoEpochCheck) {
                return Err(Stale);
            }
            past.regressed = true;
        }
        Ok(())
    }
}

impl Entry {
    fn new(binding: Binding) -> Self {
        Self {
            binding,
            events: Vec::new(),
            seen: 0,
            ended: false,
        }
    }
}
