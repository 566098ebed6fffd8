package shoal

import (
	"context"
	"time"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

// retire keeps an ended call and drops the oldest ones. The lock is held.
func (r *runtime) retire(rec *record) {
	if r.calls[rec.id] != rec {
		return
	}
	rec.kept = rec.bytes
	r.keptBytes += rec.kept
	rec.place = r.ended.PushBack(rec)
	if rec.delivered && rec.isPassing() {
		r.forget(rec)
	}
	for r.ended.Len() > r.limits.KeptCalls || r.keptBytes > int64(r.limits.KeptBytes) {
		r.forget(r.ended.Front().Value.(*record))
	}
}

// isPassing reports whether a call is dropped once its end was read: it may be repeated and sent only its end.
func (r *record) isPassing() bool { return !r.once && r.last == 1 }

// wasDelivered marks that a reader has the call's end. The lock is held.
func (r *runtime) wasDelivered(rec *record) {
	rec.delivered = true
	if rec.isPassing() && rec.closed {
		r.forget(rec)
	}
}

// forget drops a call. It keeps the id if the call must not run again. The lock is held.
func (r *runtime) forget(rec *record) {
	if r.calls[rec.id] != rec {
		return
	}
	delete(r.calls, rec.id)
	if rec.place != nil {
		r.ended.Remove(rec.place)
		r.keptBytes -= rec.kept
	}
	if rec.once {
		var refused *typesv1.CallFailure
		if !rec.begun {
			// The call was refused without running.
			refused = rec.outcome.GetFailure()
		}
		r.ledger.remember(rec.id, refused)
	}
}

// acknowledge drops a result that is safe elsewhere.
func (r *runtime) acknowledge(id callID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec, ok := r.calls[id]; ok && rec.outcome != nil {
		r.forget(rec)
	}
}

// sweep drops calls that were kept long enough.
func (r *runtime) sweep(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			r.mu.Lock()
			for oldest := r.ended.Front(); oldest != nil; oldest = r.ended.Front() {
				rec := oldest.Value.(*record)
				if time.Since(rec.endedAt) < r.limits.Kept {
					break
				}
				r.forget(rec)
			}
			r.mu.Unlock()
		}
	}
}
