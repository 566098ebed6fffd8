package shoal

import (
	"context"
	"net"
	"testing"
)

func TestNoProxyIsAskedForANode(t *testing.T) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	asked := make(chan struct{})
	go func() {
		if _, err := proxy.Accept(); err == nil {
			close(asked)
		}
	}()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	// Go does not use proxies for loopback addresses, so the node has an invented name.
	up := func(*link) { t.Error("there is no such node") }
	if err := dialLink(context.Background(), newRuntime(NewWorker("test"), "test"), "node.invalid:7001", nil, up); err == nil {
		t.Error("there is no such node")
	}
	select {
	case <-asked:
		t.Error("the proxy was asked")
	default:
	}
}
