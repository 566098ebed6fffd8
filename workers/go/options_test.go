package shoal

import (
	"context"
	"strings"
	"testing"
)

func TestAnIncompleteEnvironmentIsRefused(t *testing.T) {
	if TLSFromEnvironment() != nil {
		t.Skip("the environment names certificates")
	}
	t.Setenv("SHOAL_TLS_CERTIFICATE", "a.crt")
	t.Setenv("SHOAL_TLS_AUTHORITY", "ca.crt")
	ended, end := context.WithCancel(context.Background())
	end()
	err := NewWorker("p").Run(ended, "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "SHOAL_TLS_KEY") {
		t.Fatalf("a worker without its key runs: %v", err)
	}
	t.Setenv("SHOAL_TLS_KEY", "a.key")
	err = NewWorker("p").Run(ended, "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "a.crt") {
		t.Fatalf("a worker without its files runs: %v", err)
	}
}
