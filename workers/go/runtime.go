package shoal

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// Maximum remembered ended sessions, whose late calls are refused.
const endedSessions = 10_000

// runtime runs a worker's calls within limits, over all links, and remembers which have run.
type runtime struct {
	name, pool string
	limits     Limits
	log        *slog.Logger
	catalog    func() *workerv1.Catalog
	tool       func(context.Context, *Call) *typesv1.CallOutcome
	// Holds one token for each free slot.
	free chan struct{}
	// Signals changes of the links.
	linksChanged chan struct{}

	mu                      sync.Mutex
	ledger                  *ledger
	calls                   map[callID]*record
	ended                   *list.List
	keptBytes               int64
	over                    map[string]struct{}
	overOrder               []string
	running, queued, asking int
	askingOf                map[string]int
	draining                bool
}

func newRuntime(w *Worker, name string) *runtime {
	r := &runtime{
		name: name, pool: w.pool, limits: w.limits, log: w.log, catalog: w.catalog, tool: w.run,
		free:         make(chan struct{}, w.limits.Concurrency),
		linksChanged: make(chan struct{}, 1),
		ledger:       newLedger(w.limits.Remembered),
		calls:        map[callID]*record{},
		ended:        list.New(),
		over:         map[string]struct{}{},
		askingOf:     map[string]int{},
	}
	for range w.limits.Concurrency {
		r.free <- struct{}{}
	}
	return r
}

func (r *runtime) load() *workerv1.Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := r.ledger.number()
	load := &workerv1.Load{Running: uint64(r.running), Queued: uint64(r.queued), Ledger: &number}
	if !r.draining {
		load.Capacity = uint64(r.limits.Concurrency)
	}
	return load
}

// start runs a call, or finds a known one. The lock is held.
func (r *runtime) start(call *typesv1.Call, parted bool) (*record, *typesv1.CallFailure) {
	id := callID(call.GetId())
	if known, ok := r.calls[id]; ok {
		return known, nil
	}
	once := call.GetDurability() != typesv1.Durability_DURABILITY_REPEATABLE
	if once {
		if failure := r.ledger.check(id, call.GetLedger()); failure != nil {
			return nil, failure
		}
	}
	if failure := r.refusal(call, parted); failure != nil {
		if once {
			// Final for this binding, so that the node may bind the call elsewhere.
			r.ledger.remember(id, failure)
		}
		return nil, failure
	}
	added := newRecord(call)
	r.calls[id] = added
	r.queued++
	go r.carry(added)
	return added, nil
}

func (r *runtime) refusal(call *typesv1.Call, parted bool) *typesv1.CallFailure {
	_, over := r.over[call.GetCaller().GetSession()]
	switch {
	case call.GetAttachOnly():
		return cancelled()
	case over:
		return cancelled()
	case parted:
		return notExecuted("the worker has left")
	case r.queued >= r.limits.Queue:
		return overloaded(fmt.Sprintf("the queue of pool %s is full", r.pool))
	}
	return nil
}

// carry runs a call: slot, deadline, tool.
func (r *runtime) carry(rec *record) {
	ctx, cancel := context.WithTimeout(rec.ctx, time.Duration(rec.call.GetTimeoutMs())*time.Millisecond)
	defer cancel()
	// A context of its own, so that the tool is stopped before the record ends.
	defer rec.cancel()
	age := time.NewTimer(r.limits.QueueAge)
	defer age.Stop()
	var failure *typesv1.CallFailure
	select {
	case <-r.free:
	case <-age.C:
		failure = overloaded(fmt.Sprintf("it waited too long for a place in pool %s", r.pool))
	case <-ctx.Done():
		failure = overloaded(fmt.Sprintf("its time was over before it had a place in pool %s", r.pool))
	}
	r.mu.Lock()
	r.queued--
	if failure != nil {
		rec.finish(failed(failure))
		r.retire(rec)
		r.mu.Unlock()
		return
	}
	r.running++
	rec.placed = true
	rec.begun = rec.outcome == nil
	r.mu.Unlock()
	if rec.begun {
		r.runTo(ctx, rec)
	}
	r.mu.Lock()
	rec.closed = true
	r.leavePlace(rec)
	r.retire(rec)
	r.mu.Unlock()
}

func (r *runtime) runTo(ctx context.Context, rec *record) {
	done := make(chan *typesv1.CallOutcome, 1)
	go func() {
		outcome := erred(rpcError(codeInternal, "the tool ended its goroutine"))
		defer func() {
			if panicked := recover(); panicked != nil {
				r.log.Error("a tool panicked", "panic", panicked)
				outcome = erred(rpcError(codeInternal, "the tool panicked"))
			}
			done <- outcome
		}()
		outcome = r.tool(ctx, newCall(ctx, r, rec))
	}()
	select {
	case outcome := <-done:
		// Both may be ready; then the tool's answer was caused by the stop.
		if ctx.Err() == nil || rec.ctx.Err() != nil {
			r.finish(rec, outcome)
			return
		}
		r.finish(rec, failed(deadlineExceeded(rec.call.GetTimeoutMs())))
	case <-ctx.Done():
		r.finish(rec, failed(deadlineExceeded(rec.call.GetTimeoutMs())))
		// A stopping tool keeps its slot.
		select {
		case <-done:
		case <-time.After(r.limits.CancelGrace):
			r.log.Warn("a tool goes on after it was told to stop", "call", fmt.Sprintf("%x", rec.id))
		}
	}
}

func (r *runtime) finish(rec *record, outcome *typesv1.CallOutcome) {
	r.mu.Lock()
	rec.finish(outcome)
	r.mu.Unlock()
}

// leavePlace returns a call's slot, if it has one. The lock is held.
func (r *runtime) leavePlace(rec *record) {
	if rec.placed {
		rec.placed = false
		r.running--
		r.free <- struct{}{}
	}
}

// enterPlace waits for a slot for a call whose tool continues.
func (r *runtime) enterPlace(ctx context.Context, rec *record) {
	select {
	case <-r.free:
	case <-ctx.Done():
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.placed = true
	r.running++
	if rec.closed {
		r.leavePlace(rec)
	}
}

// endSession stops a session's calls and refuses later ones.
func (r *runtime) endSession(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.over[session]; !ok {
		r.over[session] = struct{}{}
		r.overOrder = append(r.overOrder, session)
	}
	if len(r.overOrder) > endedSessions {
		delete(r.over, r.overOrder[0])
		r.overOrder = r.overOrder[1:]
	}
	for _, rec := range r.calls {
		if rec.session == session {
			rec.stop(cancelled())
		}
	}
}

// deserted cancels a call without a session, unless a reader attaches in time. The lock is held.
func (r *runtime) deserted(rec *record, reader uint64) {
	if rec.session != "" || rec.outcome != nil {
		return
	}
	time.AfterFunc(r.limits.Deserted, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if rec.readers == reader {
			rec.stop(cancelled())
		}
	})
}

// openCalls counts the calls that may still be read.
func (r *runtime) openCalls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := r.running + r.queued + r.asking
	for _, rec := range r.calls {
		recent := rec.outcome != nil && !rec.delivered && time.Since(rec.endedAt) < r.limits.Deserted
		if recent && (rec.session != "" || !rec.stopped) {
			open++
		}
	}
	return open
}

func (r *runtime) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason := "its worker was shut down before it ended"
	for _, rec := range r.calls {
		if rec.begun {
			rec.stop(outcomeUnknown(reason))
		} else {
			rec.stop(notExecuted(reason))
		}
	}
}
