package shoal

import (
	"container/list"
	"context"
	"slices"
	"time"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

const (
	keptEvents = 256
	keptBytes  = 1 << 20
	// Maximum unread events; then the tool waits.
	unreadEvents = 64
	// The cost of an event besides its payload.
	eventWeight = 256
	// Maximum remembered answered questions.
	answeredAsks = 128
)

// event is an event, with its number in its call.
type event struct {
	sequence uint64
	kind     *workerv1.Event
	cost     int64
	ask      uint64
	state    bool
	ends     bool
}

// record is the state of one call, from its admission until readers can no longer attach. The runtime's lock guards it.
type record struct {
	id      callID
	call    *typesv1.Call
	once    bool
	session string
	ctx     context.Context
	cancel  context.CancelFunc

	begun bool
	// Whether the call has a slot, and whether it can no longer get one.
	placed, closed bool
	stopped        bool
	delivered      bool
	endedAt        time.Time
	outcome        *typesv1.CallOutcome
	kept           int64
	// The position among ended calls.
	place *list.Element

	reader  *flight
	readers uint64
	// The latest reader's name: its number at its first attach.
	name uint64
	// The number of the newest event that any reader was sent.
	read uint64

	events   []event
	last     uint64
	bytes    int64
	asks     map[uint64]chan *typesv1.Outcome
	asked    uint64
	answered []uint64
	// Closed and replaced when a reader has taken an event.
	room chan struct{}
}

func newRecord(call *typesv1.Call) *record {
	ctx, cancel := context.WithCancel(context.Background())
	return &record{
		id:      callID(call.GetId()),
		call:    call,
		once:    call.GetDurability() != typesv1.Durability_DURABILITY_REPEATABLE,
		session: call.GetCaller().GetSession(),
		ctx:     ctx,
		cancel:  cancel,
		asks:    map[uint64]chan *typesv1.Outcome{},
		room:    make(chan struct{}),
	}
}

func (r *record) push(kind *workerv1.Event, payload int, ask uint64) {
	r.last++
	added := event{
		sequence: r.last,
		kind:     kind,
		cost:     int64(payload) + eventWeight,
		ask:      ask,
		state:    kind.GetState() != nil,
		ends:     kind.GetFinished() != nil,
	}
	r.events = append(r.events, added)
	r.bytes += added.cost
	r.trim()
	r.reader.ring()
}

func (r *record) nextAfter(sequence uint64) (event, bool) {
	at := slices.IndexFunc(r.events, func(e event) bool { return e.sequence > sequence })
	if at < 0 {
		return event{}, false
	}
	return r.events[at], true
}

// isFull reports whether the reader is too far behind.
func (r *record) isFull() bool {
	if r.reader == nil {
		return false
	}
	unread, cost := 0, int64(0)
	for _, e := range r.events {
		if e.sequence > r.reader.read {
			unread++
			cost += e.cost
		}
	}
	return unread >= unreadEvents || cost >= keptBytes
}

// wasRead marks the events up to this number as read.
func (r *record) wasRead(sequence uint64) {
	r.read = max(r.read, sequence)
	r.makeRoom()
}

// makeRoom wakes the waiting tool.
func (r *record) makeRoom() {
	close(r.room)
	r.room = make(chan struct{})
}

// trim drops the oldest read events, except open questions and the end.
func (r *record) trim() {
	read := r.last
	if r.reader != nil {
		read = r.reader.read
	}
	for len(r.events) > keptEvents || r.bytes > keptBytes {
		at := slices.IndexFunc(r.events, func(e event) bool { return e.sequence <= read && e.ask == 0 && !e.ends })
		if at < 0 {
			return
		}
		r.drop(at)
	}
}

func (r *record) drop(at int) event {
	dropped := r.events[at]
	r.bytes -= dropped.cost
	r.events = slices.Delete(r.events, at, at+1)
	return dropped
}

func (r *record) finish(outcome *typesv1.CallOutcome) {
	if r.outcome != nil {
		return
	}
	r.outcome, r.endedAt = outcome, time.Now()
	failure := outcome.GetError()
	payload := len(outcome.GetResult()) + len(failure.GetMessage()) + len(failure.GetData())
	r.push(&workerv1.Event{Kind: &workerv1.Event_Finished{Finished: outcome}}, payload, 0)
	for ask, answer := range r.asks {
		r.forgetAsk(ask)
		close(answer)
	}
	clear(r.asks)
	r.makeRoom()
}

// stop ends the call with a failure, and tells the tool to stop.
func (r *record) stop(failure *typesv1.CallFailure) {
	r.finish(failed(failure))
	r.stopped = true
	r.cancel()
}

// ask sends a question. The channel yields its answer, or closes when the call ends first.
func (r *record) ask(kind func(ask uint64) *workerv1.Event, payload int) (uint64, <-chan *typesv1.Outcome) {
	r.asked++
	answer := make(chan *typesv1.Outcome, 1)
	if r.outcome != nil {
		close(answer)
		return r.asked, answer
	}
	r.asks[r.asked] = answer
	r.push(kind(r.asked), payload, r.asked)
	return r.asked, answer
}

// answer reports whether the question has its answer: this one, or an earlier one whose acknowledgement was lost.
func (r *record) answer(reader, ask uint64, outcome *typesv1.Outcome) bool {
	if reader != r.readers {
		return false
	}
	waiting, ok := r.asks[ask]
	if !ok {
		return slices.Contains(r.answered, ask)
	}
	delete(r.asks, ask)
	r.forgetAsk(ask)
	if len(r.answered) == answeredAsks {
		r.answered = r.answered[1:]
	}
	r.answered = append(r.answered, ask)
	waiting <- outcome
	return true
}

// withdrawAsk drops an open question, and tells a node that has asked the client.
func (r *record) withdrawAsk(ask uint64) {
	if _, ok := r.asks[ask]; !ok {
		return
	}
	delete(r.asks, ask)
	if forgotten, ok := r.forgetAsk(ask); ok && forgotten.sequence <= r.read && !forgotten.state {
		said := &workerv1.Event_Withdrawn{Ask: ask}
		r.push(&workerv1.Event{Kind: &workerv1.Event_Withdrawn_{Withdrawn: said}}, 0, 0)
	}
}

func (r *record) forgetAsk(ask uint64) (event, bool) {
	at := slices.IndexFunc(r.events, func(e event) bool { return e.ask == ask })
	if at < 0 {
		return event{}, false
	}
	return r.drop(at), true
}

// attach gives the call to a reader; false for a returning reader that was replaced.
func (r *record) attach(f *flight, after, name uint64) bool {
	if name != 0 && name != r.name {
		return false
	}
	r.readers++
	if name == 0 {
		r.name = r.readers
	}
	before := r.reader
	r.reader = f
	f.number, f.name, f.read = r.readers, r.name, after
	r.read = max(r.read, min(after, r.last))
	// The answer to a session request may be lost with the node that saw it, so send the request again.
	for {
		at := slices.IndexFunc(r.events, func(e event) bool { return e.state && e.sequence <= after })
		if at < 0 {
			break
		}
		renewed := r.drop(at)
		r.push(renewed.kind, int(renewed.cost-eventWeight), renewed.ask)
	}
	before.ring()
	r.makeRoom()
	return true
}

// leave removes a reader. It reports whether the call has no reader now.
func (r *record) leave(f *flight) bool {
	if r.reader != f {
		return false
	}
	r.reader = nil
	r.makeRoom()
	return true
}
