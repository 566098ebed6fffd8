package shoal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// handle processes a node's frame and ignores unknown ones.
func (l *link) handle(ctx context.Context, frame *workerv1.NodeFrame) error {
	switch said := frame.GetFrame().(type) {
	case *workerv1.NodeFrame_Batch_:
		for _, one := range said.Batch.GetFrames() {
			if err := l.handle(ctx, one); err != nil {
				return err
			}
		}
	case *workerv1.NodeFrame_Fragment:
		whole, err := l.putTogether(said.Fragment)
		if whole == nil || err != nil {
			return err
		}
		return l.handle(ctx, whole)
	case *workerv1.NodeFrame_Ping:
		pong := &typesv1.Pong{Nonce: said.Ping.GetNonce(), ClockUs: uint64(time.Now().UnixMicro())}
		return l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Pong{Pong: pong}})
	case *workerv1.NodeFrame_Close:
		// Ending the stream answers the close.
		return l.put(ctx, nil)
	case *workerv1.NodeFrame_Start:
		return l.start(ctx, said.Start)
	case *workerv1.NodeFrame_Attach:
		return l.attach(ctx, said.Attach)
	case *workerv1.NodeFrame_Nodes:
		l.runtime.mu.Lock()
		l.nodes = said.Nodes.GetNodes()
		l.runtime.mu.Unlock()
		select {
		case l.runtime.linksChanged <- struct{}{}:
		default:
		}
	case *workerv1.NodeFrame_Acknowledge:
		for _, call := range said.Acknowledge.GetCalls() {
			if len(call) == len(callID{}) {
				l.runtime.acknowledge(callID(call))
			}
		}
	case *workerv1.NodeFrame_EndSession:
		l.runtime.endSession(said.EndSession.GetSession())
	case *workerv1.NodeFrame_Subscribe:
		none := rpcError(codeMethodNotFound, "this worker has no resources").proto()
		answer := &workerv1.Subscribed{Request: said.Subscribe.GetRequest(), Error: none}
		return l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Subscribed{Subscribed: answer}})
	default:
		l.steer(frame)
	}
	return nil
}

// steer processes a frame of an open flight.
func (l *link) steer(frame *workerv1.NodeFrame) {
	l.runtime.mu.Lock()
	defer l.runtime.mu.Unlock()
	switch said := frame.GetFrame().(type) {
	case *workerv1.NodeFrame_Answer:
		if f := l.flights[said.Answer.GetFlight()]; f != nil {
			ask := said.Answer.GetAsk()
			open := f.record.answer(f.number, ask, said.Answer.GetOutcome())
			f.taken = append(f.taken, &workerv1.AnswerTaken{Flight: f.flight, Ask: ask, Open: open})
			f.ring()
		}
	case *workerv1.NodeFrame_Cancel:
		if f := l.flights[said.Cancel.GetFlight()]; f != nil && f.number == f.record.readers {
			f.record.stop(cancelled())
		}
	case *workerv1.NodeFrame_Credit:
		if f := l.flights[said.Credit.GetFlight()]; f != nil {
			f.credit += int64(said.Credit.GetBytes())
			f.ring()
		}
	case *workerv1.NodeFrame_Detach:
		f := l.flights[said.Detach.GetFlight()]
		if f == nil {
			return
		}
		f.stopReading()
		if !said.Detach.GetSteering() {
			delete(l.flights, f.flight)
			f.cancel()
		}
	}
}

func (l *link) putTogether(part *typesv1.Fragment) (*workerv1.NodeFrame, error) {
	if _, open := l.parts[part.GetFlight()]; !open && len(l.parts) >= lanes {
		return nil, fmt.Errorf("more than %d frames in fragments at a time", lanes)
	}
	whole := append(l.parts[part.GetFlight()], part.GetData()...)
	if len(whole) > l.runtime.limits.FrameBytes {
		return nil, errors.New("a frame that is too long")
	}
	if !part.GetLast() {
		l.parts[part.GetFlight()] = whole
		return nil, nil
	}
	delete(l.parts, part.GetFlight())
	frame := &workerv1.NodeFrame{}
	return frame, proto.Unmarshal(whole, frame)
}

func (l *link) start(ctx context.Context, said *workerv1.Start) error {
	if len(said.GetCall().GetId()) != len(callID{}) {
		return errors.New("a call whose id is not 16 bytes long")
	}
	l.runtime.mu.Lock()
	record, failure := l.runtime.start(said.GetCall(), l.parted)
	if failure == nil {
		l.open(ctx, said.GetFlight(), record, 0, 0)
	}
	l.runtime.mu.Unlock()
	if failure != nil {
		return l.refuse(ctx, said.GetFlight(), failure)
	}
	return nil
}

func (l *link) attach(ctx context.Context, said *workerv1.Attach) error {
	if len(said.GetCall()) != len(callID{}) {
		return errors.New("a call whose id is not 16 bytes long")
	}
	l.runtime.mu.Lock()
	record, known := l.runtime.calls[callID(said.GetCall())]
	opened := known && l.open(ctx, said.GetFlight(), record, said.GetAfter(), said.GetReader())
	l.runtime.mu.Unlock()
	switch {
	case !known:
		return l.refuse(ctx, said.GetFlight(), outcomeUnknown("its worker does not know it any more"))
	case !opened:
		return l.put(ctx, lost(said.GetFlight()))
	}
	return nil
}

// open opens a flight; false for a reader that was replaced. The lock is held.
func (l *link) open(ctx context.Context, number uint64, record *record, after, name uint64) bool {
	ctx, cancel := context.WithCancel(ctx)
	f := &flight{
		link: l, flight: number, record: record, reading: true, credit: l.credit,
		wake: make(chan struct{}, 1), cancel: cancel,
	}
	if !record.attach(f, after, name) {
		cancel()
		return false
	}
	l.flights[number] = f
	go f.run(ctx)
	return true
}

func (l *link) refuse(ctx context.Context, flight uint64, failure *typesv1.CallFailure) error {
	said := &workerv1.Refused{Flight: flight, Failure: failure}
	return l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Refused{Refused: said}})
}
