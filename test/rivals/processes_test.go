package rivals_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
	"delaybroker/test/rivals/bench"
)

// TestMain runs a nats-server if the variable serverDir is in the environment, and otherwise the benchmarks. As in
// production, a benchmark has a process for each nats-server and for each broker. The benchmark's own process
// publishes, and reads the arrivals.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		runServer(dir, os.Getenv(serverRoutes))
		return
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}

// A process is a server or a broker. It ends at the latest at the end of the benchmark.
type process struct {
	b      testing.TB
	cmd    *exec.Cmd         // nil for a broker
	broker *natstest.Process // nil for a server
	url    string            // the address of the nats-server, which may be embedded in the broker

	// These fields are only for a server.
	monitor string // URL of the monitoring endpoint
	in      io.WriteCloser
	out     io.Reader
}

type processes []*process

func (ps processes) cpu() times {
	var ts times
	for _, p := range ps {
		ts = append(ts, p.cpu())
	}
	return ts
}

type times []time.Duration

// since returns the CPU time per message of each process between the times before and ts.
func (ts times) since(before times, count int) times {
	var perMessage times
	for i, t := range ts {
		perMessage = append(perMessage, (t-before[i])/time.Duration(count))
	}
	return perMessage
}

func (ts times) sum() time.Duration {
	var sum time.Duration
	for _, t := range ts {
		sum += t
	}
	return sum
}

// String formats the times in microseconds, as in "31+12".
func (ts times) String() string {
	var words []string
	for _, t := range ts {
		words = append(words, strconv.Itoa(int(t.Round(time.Microsecond)/time.Microsecond)))
	}
	return strings.Join(words, "+")
}

// startBroker starts a broker, and returns when the broker is ready.
func startBroker(b testing.TB, env ...string) *process {
	b.Helper()
	p := natstest.StartBroker(b, env...)
	return &process{b: b, broker: p, url: p.URL}
}

// kill kills the process, like kill -9, and waits until it has exited.
func (p *process) kill() {
	if p.broker != nil {
		p.broker.Crash()
		return
	}
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.b.Errorf("kill: %v", err)
	}
	_ = p.cmd.Wait() // ignored: Wait always fails for a killed process
}

// connect connects to the process's nats-server until the end of the benchmark.
func (p *process) connect() *nats.Conn {
	p.b.Helper()
	nc, err := nats.Connect(p.url, nats.Name("rivals"))
	if err != nil {
		p.b.Fatalf("connect: %v", err)
	}
	p.b.Cleanup(nc.Close)
	return nc
}

// memory returns the resident memory of the process, in megabytes. It is zero on systems other than Linux.
func (p *process) memory() float64 { return float64(p.usage().Memory) / 1e6 }

// cpu returns the CPU time of the process. It is zero on systems other than Linux.
func (p *process) cpu() time.Duration { return p.usage().CPU }

func (p *process) usage() bench.Usage {
	p.b.Helper()
	u, err := bench.UsageOf(p.pid())
	natstest.NoError(p.b, err)
	return u
}

func (p *process) pid() int {
	if p.broker != nil {
		return p.broker.Pid
	}
	return p.cmd.Process.Pid
}
