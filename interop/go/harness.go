package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// checkTime is how long one check may take before it counts as failed.
const checkTime = 30 * time.Second

// skip is the error of a check that the SDK or the era does not support.
type skip string

func (s skip) Error() string { return string(s) }

// check is a named check.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// runner counts the checks' results.
type runner struct {
	only   []string
	failed int
}

// do runs one check and prints a line for it. It returns false if the check failed.
func (r *runner) do(c check) bool {
	if len(r.only) > 0 && !slices.Contains(r.only, c.name) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	done := make(chan error, 1)
	// In a goroutine, because not all of the SDK observes its context.
	go func() { done <- c.run(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(checkTime + time.Second):
		err = fmt.Errorf("no answer within %v", checkTime)
	}
	var skipped skip
	switch {
	case err == nil:
		fmt.Println("ok", c.name)
	case errors.As(err, &skipped):
		fmt.Printf("skip %s: %v\n", c.name, skipped)
	default:
		r.failed++
		fmt.Printf("FAIL %s: %s\n", c.name, strings.ReplaceAll(err.Error(), "\n", " | "))
		return false
	}
	return true
}

// exit ends the program with the checks' status.
func (r *runner) exit() {
	if r.failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// equal is an error unless both values are deeply equal.
func equal(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: expected %#v, got %#v", what, want, got)
}

// contains is an error unless text contains part.
func contains(text, part string) error {
	if strings.Contains(text, part) {
		return nil
	}
	return fmt.Errorf("odd text %q, which lacks %q", text, part)
}

// includes is an error unless every wanted name is among names.
func includes(what string, names []string, wanted ...string) error {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s: no %q among %q", what, name, names)
		}
	}
	return nil
}
