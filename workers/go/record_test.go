package shoal

import (
	"context"
	"errors"
	"testing"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

func newReader(r *record, after uint64) *flight {
	reader := &flight{record: r, wake: make(chan struct{}, 1)}
	r.attach(reader, after, 0)
	return reader
}

func (f *flight) reads(t *testing.T) *workerv1.Event {
	t.Helper()
	next, ok := f.record.nextAfter(f.read)
	if !ok {
		return nil
	}
	f.read = next.sequence
	f.record.wasRead(next.sequence)
	return next.kind
}

func question(ask uint64) *workerv1.Event {
	return &workerv1.Event{Kind: &workerv1.Event_Ask_{Ask: &workerv1.Event_Ask{Ask: ask, Method: "roots/list"}}}
}

func asked(r *record) uint64 {
	ask, _ := r.ask(question, 0)
	return ask
}

func TestAReaderHearsOfTheEndOfQuestionsThatItHas(t *testing.T) {
	r := newRecord(&typesv1.Call{Id: make([]byte, 16)})
	reader := newReader(r, 0)
	r.withdrawAsk(asked(r))
	if said := reader.reads(t); said != nil {
		t.Fatalf("%v ends a question that the reader does not have", said)
	}
	had := asked(r)
	reader.reads(t)
	r.withdrawAsk(had)
	if said := reader.reads(t).GetWithdrawn(); said == nil || said.GetAsk() != had {
		t.Fatalf("%v does not end question %d", said, had)
	}
}

func TestALaterReaderHearsOfTheEndOfAnEarlierOnesQuestion(t *testing.T) {
	for after := range uint64(2) {
		r := newRecord(&typesv1.Call{Id: make([]byte, 16)})
		reader := newReader(r, 0)
		had := asked(r)
		reader.reads(t)
		later := newReader(r, after)
		r.withdrawAsk(had)
		if said := later.reads(t).GetWithdrawn(); said == nil || said.GetAsk() != had {
			t.Fatalf("after event %d: %v does not end question %d", after, said, had)
		}
	}
}

func TestQuestionsThatAreGivenUpTakeNoRoomBeforeAReaderThatStalls(t *testing.T) {
	r := newRecord(&typesv1.Call{Id: make([]byte, 16)})
	newReader(r, 0)
	for range 100 {
		r.withdrawAsk(asked(r))
	}
	if r.bytes != 0 {
		t.Fatalf("they take %d bytes", r.bytes)
	}
}

func TestARequestToTheSessionIsClosedInSilence(t *testing.T) {
	r := newRecord(&typesv1.Call{Id: make([]byte, 16)})
	reader := newReader(r, 0)
	state, _ := r.ask(func(ask uint64) *workerv1.Event {
		return &workerv1.Event{Kind: &workerv1.Event_State_{State: &workerv1.Event_State{Ask: ask}}}
	}, 0)
	reader.reads(t)
	r.withdrawAsk(state)
	if said := reader.reads(t); said != nil {
		t.Fatalf("%v was said", said)
	}
}

func TestAToolThatGivesUpTakesItsQuestionBack(t *testing.T) {
	r := newRecord(&typesv1.Call{Id: make([]byte, 16)})
	reader := newReader(r, 0)
	call := &Call{runtime: newRuntime(NewWorker("test"), "test"), record: r}
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	ended := make(chan error, 1)
	go func() { ended <- call.answered(ctx, 0, nil, question) }()
	await(t, reader.wake, "the question")
	call.runtime.mu.Lock()
	ask := reader.reads(t).GetAsk().GetAsk()
	call.runtime.mu.Unlock()
	giveUp()
	if err := await(t, ended, "the end of the wait"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if said := reader.reads(t).GetWithdrawn(); said == nil || said.GetAsk() != ask {
		t.Fatalf("%v does not end question %d", said, ask)
	}
}
