package shoal

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"

	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// listening is a node that notes what a worker says up to its announcement.
type listening struct {
	workerv1.UnimplementedWorkerLinkServer
	said chan []string
}

func (n *listening) Link(stream grpc.BidiStreamingServer[workerv1.WorkerFrame, workerv1.NodeFrame]) error {
	welcome := &workerv1.Welcome{Version: highestVersion, Node: "node"}
	if err := stream.Send(&workerv1.NodeFrame{Frame: &workerv1.NodeFrame_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	var said []string
	for {
		frame, err := stream.Recv()
		if err != nil {
			return err
		}
		switch frame := frame.GetFrame().(type) {
		case *workerv1.WorkerFrame_Hello:
			said = append(said, "hello")
		case *workerv1.WorkerFrame_Load:
			if frame.Load.GetCapacity() > 0 {
				said = append(said, "capacity")
			}
		case *workerv1.WorkerFrame_Announce:
			n.said <- append(said, "announce")
			return nil
		}
	}
}

func TestANodeKnowsTheCapacityBeforeTheTools(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := &listening{said: make(chan []string, 1)}
	server := grpc.NewServer()
	workerv1.RegisterWorkerLinkServer(server, node)
	go server.Serve(listener)
	defer server.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- dialLink(ctx, newRuntime(NewWorker("test"), "test"), listener.Addr().String(), nil, func(*link) {})
	}()
	if said := await(t, node.said, "the announcement"); !slices.Equal(said, []string{"hello", "capacity", "announce"}) {
		t.Errorf("the worker said %v", said)
	}
	await(t, ended, "the link's end")
}

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
