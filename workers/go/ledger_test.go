package shoal

import (
	"testing"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

func id(number int) callID { return callID{14: byte(number >> 8), 15: byte(number)} }

func TestARefusalIsFinalUnderItsNumberAndThoseBefore(t *testing.T) {
	l := newLedger(ledgerPart * 4)
	bound := &typesv1.Ledger{Incarnation: l.incarnation, Number: l.number()}
	l.remember(id(1), overloaded("full"))
	if l.check(id(1), bound).GetOverloaded() == nil {
		t.Fatal("another refusal, or none")
	}
	for n := 2; l.number() == bound.GetNumber(); n++ {
		l.remember(id(n), nil)
	}
	later := &typesv1.Ledger{Incarnation: l.incarnation, Number: l.number()}
	if failure := l.check(id(1), later); failure != nil {
		t.Fatalf("bound anew it is refused: %v", failure)
	}
}

func TestWhatMayBeForgottenIsNotRun(t *testing.T) {
	l := newLedger(ledgerPart * 4)
	first := &typesv1.Ledger{Incarnation: l.incarnation, Number: l.number()}
	for n := 1; n <= ledgerPart*4+4; n++ {
		l.remember(id(n), nil)
		if l.check(id(n), first).GetOutcomeUnknown() == nil {
			t.Fatalf("call %d would run again", n)
		}
	}
	for n := 1; n <= ledgerPart*4+4; n++ {
		for _, bound := range []*typesv1.Ledger{first, nil} {
			if l.check(id(n), bound).GetOutcomeUnknown() == nil {
				t.Fatalf("call %d would run again, bound under %v", n, bound)
			}
		}
	}
	if len(l.fates) > ledgerPart*4 {
		t.Fatalf("%d calls are remembered", len(l.fates))
	}
	present := &typesv1.Ledger{Incarnation: l.incarnation, Number: l.number()}
	if failure := l.check(id(60_000), present); failure != nil {
		t.Fatalf("a new call is refused: %v", failure)
	}
}
