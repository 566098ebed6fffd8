package shoal

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

// definition is a tool as clients see it.
type definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  any             `json:"inputSchema"`
	OutputSchema any             `json:"outputSchema,omitempty"`
	Annotations  map[string]bool `json:"annotations,omitempty"`
}

// Result is a complete MCP result.
type Result struct {
	Content           []any `json:"content"`
	StructuredContent any   `json:"structuredContent,omitempty"`
	IsError           bool  `json:"isError,omitempty"`
}

// Text is a block of content.
func Text(text string) any { return map[string]string{"type": "text", "text": text} }

type runTool func(ctx context.Context, call *Call, arguments json.RawMessage) (*Result, error)

// AddTool makes a function a tool of a worker. In is a struct whose fields define the arguments' schema (tags json and
// jsonschema). Out is a string, a *Result, or any value convertible to JSON; a struct defines the output schema. An
// error becomes a result with isError, unless it is an [RPCError].
//
// AddTool panics if it cannot make a schema, because that is a programming error.
func AddTool[In, Out any](w *Worker, name, description string, function func(context.Context, *Call, In) (Out, error), options ...ToolOption) {
	d := definition{Name: name, Description: description}
	input, err := jsonschema.For[In](nil)
	if err != nil {
		panic("shoal: tool " + name + ": " + err.Error())
	}
	d.InputSchema = input
	structured := reflect.TypeFor[Out]().Kind() == reflect.Struct
	if structured {
		if d.OutputSchema, err = jsonschema.For[Out](nil); err != nil {
			panic("shoal: tool " + name + ": " + err.Error())
		}
	}
	for _, option := range options {
		option(&d)
	}
	w.add(d, func(ctx context.Context, call *Call, arguments json.RawMessage) (*Result, error) {
		var in In
		if len(arguments) > 0 {
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, err
			}
		}
		out, err := function(ctx, call, in)
		if err != nil {
			return nil, err
		}
		return resultOf(out, structured)
	})
}

func resultOf(out any, structured bool) (*Result, error) {
	switch out := out.(type) {
	case *Result:
		return out, nil
	case string:
		return &Result{Content: []any{Text(out)}}, nil
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	result := &Result{Content: []any{Text(string(encoded))}}
	if structured {
		result.StructuredContent = json.RawMessage(encoded)
	}
	return result, nil
}

// run runs a call and converts every failure to an outcome.
func (w *Worker) run(ctx context.Context, call *Call) *typesv1.CallOutcome {
	result, err := w.result(ctx, call)
	var failure *RPCError
	switch {
	case errors.As(err, &failure):
		return erred(failure)
	case err != nil:
		result = &Result{Content: []any{Text(err.Error())}, IsError: true}
	}
	if result.Content == nil {
		result.Content = []any{}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return erred(rpcError(codeInternal, "the result is no JSON: %s", err))
	}
	return &typesv1.CallOutcome{Outcome: &typesv1.CallOutcome_Result{Result: encoded}}
}

func (w *Worker) result(ctx context.Context, call *Call) (*Result, error) {
	wire := call.record.call
	if wire.GetMethod() != "tools/call" {
		return nil, rpcError(codeMethodNotFound, "method not found: %s", wire.GetMethod())
	}
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(wire.GetParams(), &params); err != nil {
		return nil, rpcError(codeInvalidParams, "%s", err)
	}
	tool, ok := w.tools[params.Name]
	if !ok {
		return nil, rpcError(codeInvalidParams, "unknown tool")
	}
	return tool(ctx, call, params.Arguments)
}
