// Package shoal runs tools written in Go for Shoal, which serves one logical MCP server on many nodes.
//
// A worker dials the nodes and needs no open port:
//
//	worker := shoal.NewWorker("search", shoal.WithVersion("1.0.0"))
//	shoal.AddTool(worker, "lookup", "Finds documents.", lookup, shoal.ReadOnly())
//	err := worker.Run(ctx, "127.0.0.1:7001")
//
// When ctx ends, the worker finishes its calls and says goodbye.
//
//go:generate ./generate.sh
package shoal
