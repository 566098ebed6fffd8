package shoal

import (
	"bytes"
	"math/rand/v2"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

// Each number has this fraction of all remembered ids.
const ledgerPart = 64

type callID [16]byte

// ledger remembers calls that must not run again, by numbers.
//
// It counts up with what it remembers, without a clock, and forgets whole numbers, the oldest first. An unknown call
// that was bound under a remembered number was neither accepted nor refused under that or an older binding.
type ledger struct {
	incarnation uint64
	part        int
	oldest      uint64
	numbers     [][]callID
	fates       map[callID]fate
	// The greatest forgotten id, for calls without a number.
	horizon callID
}

// fate is why a call was refused, or nil if it was accepted.
type fate struct {
	number  uint64
	refused *typesv1.CallFailure
}

func newLedger(most int) *ledger {
	return &ledger{
		incarnation: rand.Uint64() | 1,
		part:        max(1, most/ledgerPart),
		numbers:     [][]callID{nil},
		fates:       map[callID]fate{},
	}
}

// number is the present number, under which nodes bind calls to this worker.
func (l *ledger) number() uint64 { return l.oldest + uint64(len(l.numbers)) - 1 }

// check returns why an unknown journaled call must not run; nil if it may run or be refused.
func (l *ledger) check(id callID, bound *typesv1.Ledger) *typesv1.CallFailure {
	known, ok := l.fates[id]
	switch {
	case ok && known.refused == nil:
		return outcomeUnknown("its worker may have run it before, and its result is gone")
	case ok && known.refused.GetCancelled() != nil:
		// A node that binds the call anew does not know that it is cancelled.
		return known.refused
	case bound == nil && bytes.Compare(id[:], l.horizon[:]) <= 0:
		return outcomeUnknown("its worker may have forgotten that it has run it")
	case bound == nil:
		return nil
	case bound.GetIncarnation() != l.incarnation:
		return outcomeUnknown("its worker has started anew since the call was bound to it")
	case ok && bound.GetNumber() <= known.number:
		return known.refused
	case bound.GetNumber() < l.oldest || bound.GetNumber() > l.number():
		return outcomeUnknown("it was bound so long ago that its worker may have forgotten it")
	}
	return nil
}

// remember records a refused call, or an accepted one that is otherwise forgotten.
func (l *ledger) remember(id callID, refused *typesv1.CallFailure) {
	l.fates[id] = fate{l.number(), refused}
	last := len(l.numbers) - 1
	l.numbers[last] = append(l.numbers[last], id)
	if len(l.numbers[last]) < l.part {
		return
	}
	l.numbers = append(l.numbers, nil)
	if len(l.numbers) > ledgerPart {
		l.forgetOldest()
	}
}

func (l *ledger) forgetOldest() {
	number, ids := l.oldest, l.numbers[0]
	l.oldest++
	l.numbers = l.numbers[1:]
	for _, id := range ids {
		if bytes.Compare(id[:], l.horizon[:]) > 0 {
			l.horizon = id
		}
		// The call may have been recorded again since.
		if l.fates[id].number == number {
			delete(l.fates, id)
		}
	}
}
