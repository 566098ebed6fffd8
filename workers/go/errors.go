package shoal

import (
	"encoding/json"
	"fmt"
	"strings"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

const (
	codeInvalidParams     = -32602
	codeMethodNotFound    = -32601
	codeInternal          = -32603
	codeMissingCapability = -32021
)

// RPCError is a JSON-RPC error of a call, of its client or of its session. A tool that returns one ends its call with
// it. Any other error becomes a result with isError, which the model sees.
type RPCError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// proto replaces an error that cannot be sent, because an invalid message would end the link.
func (e *RPCError) proto() *typesv1.RpcError {
	said := &typesv1.RpcError{Code: e.Code, Message: strings.ToValidUTF8(e.Message, "?")}
	if json.Valid(e.Data) {
		said.Data = e.Data
	}
	return said
}

func rpcError(code int64, format string, arguments ...any) *RPCError {
	return &RPCError{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

func notExecuted(reason string) *typesv1.CallFailure {
	said := &typesv1.CallFailure_NotExecuted{Reason: reason}
	return &typesv1.CallFailure{Failure: &typesv1.CallFailure_NotExecuted_{NotExecuted: said}}
}

func overloaded(reason string) *typesv1.CallFailure {
	said := &typesv1.CallFailure_Overloaded{Reason: reason, RetryAfterMs: 1000}
	return &typesv1.CallFailure{Failure: &typesv1.CallFailure_Overloaded_{Overloaded: said}}
}

func outcomeUnknown(reason string) *typesv1.CallFailure {
	said := &typesv1.CallFailure_OutcomeUnknown{Reason: reason}
	return &typesv1.CallFailure{Failure: &typesv1.CallFailure_OutcomeUnknown_{OutcomeUnknown: said}}
}

func deadlineExceeded(limitMS uint64) *typesv1.CallFailure {
	said := &typesv1.CallFailure_DeadlineExceeded{LimitMs: limitMS}
	return &typesv1.CallFailure{Failure: &typesv1.CallFailure_DeadlineExceeded_{DeadlineExceeded: said}}
}

func cancelled() *typesv1.CallFailure {
	said := &typesv1.CallFailure_Cancelled{}
	return &typesv1.CallFailure{Failure: &typesv1.CallFailure_Cancelled_{Cancelled: said}}
}

func failed(failure *typesv1.CallFailure) *typesv1.CallOutcome {
	return &typesv1.CallOutcome{Outcome: &typesv1.CallOutcome_Failure{Failure: failure}}
}

func erred(err *RPCError) *typesv1.CallOutcome {
	return &typesv1.CallOutcome{Outcome: &typesv1.CallOutcome_Error{Error: err.proto()}}
}
