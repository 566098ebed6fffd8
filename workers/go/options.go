package shoal

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Limits says how much a worker takes on and how long it keeps what it has done.
type Limits struct {
	// Concurrency is how many calls run at once.
	Concurrency int
	// Queue is how many calls may wait for a place; more are refused.
	Queue int
	// QueueAge is how long a call may wait before it is shed.
	QueueAge time.Duration
	// Asking is how many calls may wait for answers of their clients. They have no place meanwhile.
	Asking int
	// AskingPerPrincipal is how many of one principal may.
	AskingPerPrincipal int
	// Kept is how long the events of a call that has ended can be attached to.
	Kept time.Duration
	// KeptCalls and KeptBytes bound the calls that have ended and are kept.
	KeptCalls, KeptBytes int
	// Remembered is how many ids of calls that must not run again are remembered after their results are gone.
	Remembered int
	// CancelGrace is how long a tool that was told to stop keeps its place, at most.
	CancelGrace time.Duration
	// Deserted is how long a call without a session goes on while nobody reads it.
	Deserted time.Duration
	// FrameBytes is the longest frame that is accepted.
	FrameBytes int
	// Drain is how long calls may go on after the worker was told to end.
	Drain time.Duration
}

// DefaultLimits are the limits of a worker that is given no others.
func DefaultLimits() Limits {
	return Limits{
		Concurrency:        128,
		Queue:              1024,
		QueueAge:           5 * time.Second,
		Asking:             1024,
		AskingPerPrincipal: 256,
		Kept:               time.Minute,
		KeptCalls:          10_000,
		KeptBytes:          64 << 20,
		Remembered:         100_000,
		CancelGrace:        5 * time.Second,
		Deserted:           10 * time.Second,
		FrameBytes:         16 << 20,
		Drain:              30 * time.Second,
	}
}

// TLS names the files of a worker's certificate. They are read again for each link.
type TLS struct {
	Certificate, Key, Authority string
	// Name is the name that nodes' certificates have (cluster.tls.name).
	Name string
}

// TLSFromEnvironment reads SHOAL_TLS_CERTIFICATE, _KEY, _AUTHORITY and _NAME, as the chart sets them; nil if none of the files is
// named. If only some are, [Worker.Run] says which are missing: a worker must not speak plaintext because of a misspelt name.
func TLSFromEnvironment() *TLS {
	files := &TLS{
		Certificate: os.Getenv("SHOAL_TLS_CERTIFICATE"),
		Key:         os.Getenv("SHOAL_TLS_KEY"),
		Authority:   os.Getenv("SHOAL_TLS_AUTHORITY"),
		Name:        os.Getenv("SHOAL_TLS_NAME"),
	}
	if files.Certificate == "" && files.Key == "" && files.Authority == "" {
		return nil
	}
	if files.Name == "" {
		files.Name = "shoal"
	}
	return files
}

func (t *TLS) config() (*tls.Config, error) {
	for _, file := range []struct{ name, path string }{
		{"Certificate", t.Certificate}, {"Key", t.Key}, {"Authority", t.Authority},
	} {
		if file.path == "" {
			return nil, fmt.Errorf("TLS: %s is missing (SHOAL_TLS_%s)", file.name, strings.ToUpper(file.name))
		}
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, err
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", t.Authority)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      authority,
		ServerName:   t.Name,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// Option changes a worker.
type Option func(*Worker)

// WithVersion sets the version that clients see.
func WithVersion(version string) Option { return func(w *Worker) { w.version = version } }

// WithInstructions sets what models are told of the tools.
func WithInstructions(text string) Option { return func(w *Worker) { w.instructions = text } }

// WithLimits sets other limits than [DefaultLimits].
func WithLimits(limits Limits) Option { return func(w *Worker) { w.limits = limits } }

// WithTLS makes links mutual TLS. Without it [TLSFromEnvironment] says.
func WithTLS(files *TLS) Option { return func(w *Worker) { w.tls = files } }

// WithName sets what the worker's name begins with. Without it SHOAL_WORKER or the machine's name does.
func WithName(name string) Option { return func(w *Worker) { w.name = name } }

// WithLogger sets where the worker logs.
func WithLogger(logger *slog.Logger) Option { return func(w *Worker) { w.log = logger } }

// ToolOption changes a tool.
type ToolOption func(*definition)

// ReadOnly says that the tool changes nothing: a call may be run again when its worker is lost.
func ReadOnly() ToolOption { return hint("readOnlyHint", true) }

// Idempotent says that running a call twice does no more than once: it may be run again when its worker is lost.
func Idempotent() ToolOption { return hint("idempotentHint", true) }

// Destructive says whether the tool may destroy something.
func Destructive(destructive bool) ToolOption { return hint("destructiveHint", destructive) }

// OpenWorld says whether the tool deals with the world outside.
func OpenWorld(open bool) ToolOption { return hint("openWorldHint", open) }

// Title sets a tool's title.
func Title(title string) ToolOption { return func(d *definition) { d.Title = title } }

// InputSchema sets a schema of the arguments, any value that JSON can be made of, in place of the one that the type makes.
func InputSchema(schema any) ToolOption { return func(d *definition) { d.InputSchema = schema } }

func hint(name string, value bool) ToolOption {
	return func(d *definition) {
		if d.Annotations == nil {
			d.Annotations = map[string]bool{}
		}
		d.Annotations[name] = value
	}
}
