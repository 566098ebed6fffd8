package shoal

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// Time without an event before the node is told that the call runs.
const acceptAfter = time.Millisecond

// flight is one reader of one call, for as long as its link lasts. Its goroutine sends everything in order. The
// runtime's lock guards it.
type flight struct {
	link   *link
	flight uint64
	record *record
	wake   chan struct{}
	cancel context.CancelFunc

	number, name uint64
	// The number of the last sent event.
	read    uint64
	reading bool
	credit  int64
	spoken  bool
	taken   []*workerv1.AnswerTaken
}

// ring wakes the flight.
func (f *flight) ring() {
	if f == nil {
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// stopReading drops the events; the call continues.
func (f *flight) stopReading() {
	f.reading = false
	if f.record.leave(f) {
		f.link.runtime.deserted(f.record, f.number)
	}
}

// run sends frames until the flight or its link ends.
func (f *flight) run(ctx context.Context) {
	accept := time.NewTimer(acceptAfter)
	defer accept.Stop()
	for {
		said, over := f.step()
		if said == nil {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			case <-accept.C:
				said = f.accepted()
			}
		}
		if said != nil && f.link.send(ctx, f.flight, said) != nil {
			return
		}
		if over {
			f.link.over(f)
			return
		}
	}
}

// step returns the next frame, and whether the flight ends with it.
func (f *flight) step() (*workerv1.WorkerFrame, bool) {
	runtime := f.link.runtime
	runtime.mu.Lock()
	defer runtime.mu.Unlock()
	if len(f.taken) > 0 {
		said := f.taken[0]
		f.taken = f.taken[1:]
		return &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_AnswerTaken{AnswerTaken: said}}, false
	}
	if f.reading && f.number != f.record.readers {
		return lost(f.flight), true
	}
	if !f.reading || f.credit <= 0 {
		return nil, false
	}
	next, ok := f.record.nextAfter(f.read)
	if !ok {
		return nil, false
	}
	said := f.event(next)
	f.read, f.spoken = next.sequence, true
	f.record.wasRead(next.sequence)
	if next.ends {
		runtime.wasDelivered(f.record)
	}
	return &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Event{Event: said}}, next.ends
}

// event converts an event and charges the flight's credit.
func (f *flight) event(next event) *workerv1.Event {
	said := &workerv1.Event{Flight: f.flight, Sequence: next.sequence, Kind: next.kind.GetKind()}
	if !f.spoken {
		said.Reader = f.name
	}
	if proto.Size(said) <= f.link.longestFrame {
		f.credit -= next.cost
		return said
	}
	// An overlong end becomes an error; other overlong events only count.
	tooLong := fmt.Sprintf("it is longer than the %d bytes that the node takes", f.link.longestFrame)
	said.Kind = nil
	f.credit -= eventWeight
	if next.ends {
		said.Kind = &workerv1.Event_Finished{Finished: erred(rpcError(codeInternal, "the result was not passed on: %s", tooLong))}
	} else if next.ask != 0 {
		err := rpcError(codeInternal, "the request was not passed on: %s", tooLong).proto()
		f.record.answer(f.number, next.ask, &typesv1.Outcome{Outcome: &typesv1.Outcome_Error{Error: err}})
	}
	return said
}

// accepted reports that the call runs, if nothing has been sent yet.
func (f *flight) accepted() *workerv1.WorkerFrame {
	f.link.runtime.mu.Lock()
	defer f.link.runtime.mu.Unlock()
	if f.spoken {
		return nil
	}
	f.spoken = true
	said := &workerv1.Accepted{Flight: f.flight, Reader: f.name}
	return &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Accepted{Accepted: said}}
}

func lost(flight uint64) *workerv1.WorkerFrame {
	said := &workerv1.Lost{Flight: flight, Replaced: true}
	return &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Lost{Lost: said}}
}
