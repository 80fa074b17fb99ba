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

	"delaybroker/broker/bench"
	"delaybroker/test/natstest"
)

// The processes of a benchmark run as they would in production: nats-servers (this test binary, started again), brokers
// (the command), and this process, which publishes and reads what arrives.

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		beServer(dir, os.Getenv(serverRoutes))
		return
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}

// process is a child process that ends with the benchmark at the latest.
type process struct {
	b      testing.TB
	cmd    *exec.Cmd         // a server, or
	broker *natstest.Process // a broker
	url    string            // where its nats-server listens, or the one that it uses

	monitor string // of a server, its monitoring address
	in      io.WriteCloser
	out     io.Reader
}

// processes are all processes of a delayer.
type processes []*process

// cpu is the CPU time that each process has used.
func (ps processes) cpu() times {
	var ts times
	for _, p := range ps {
		ts = append(ts, p.cpu())
	}
	return ts
}

// times are the CPU times of several processes.
type times []time.Duration

// since returns the CPU time of each process for one of count messages.
func (ts times) since(before times, count int) times {
	var each times
	for i, t := range ts {
		each = append(each, (t-before[i])/time.Duration(count))
	}
	return each
}

func (ts times) sum() time.Duration {
	var sum time.Duration
	for _, t := range ts {
		sum += t
	}
	return sum
}

// String writes them in microseconds, as "31+12".
func (ts times) String() string {
	var words []string
	for _, t := range ts {
		words = append(words, strconv.Itoa(int(t.Round(time.Microsecond)/time.Microsecond)))
	}
	return strings.Join(words, "+")
}

// startBroker runs the command until it is ready.
func startBroker(b testing.TB, env ...string) *process {
	b.Helper()
	p := natstest.StartBroker(b, env...)
	return &process{b: b, broker: p, url: p.URL}
}

// kill ends it at once, as kill -9 does.
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
	_ = p.cmd.Wait() // says that it was killed
}

// connect connects to the server of the process.
func (p *process) connect() *nats.Conn {
	p.b.Helper()
	nc, err := nats.Connect(p.url, nats.Name("rivals"))
	if err != nil {
		p.b.Fatalf("connect: %v", err)
	}
	p.b.Cleanup(nc.Close)
	return nc
}

// memory is the resident memory of the process in MB. Linux only, as is cpu.
func (p *process) memory() float64 { return float64(p.usage().Memory) / 1e6 }

// cpu is the CPU time that the process has used.
func (p *process) cpu() time.Duration { return p.usage().CPU }

func (p *process) usage() bench.Usage {
	p.b.Helper()
	u, err := bench.UsageOf(p.pid())
	if err != nil {
		p.b.Fatal(err)
	}
	return u
}

func (p *process) pid() int {
	if p.broker != nil {
		return p.broker.Pid
	}
	return p.cmd.Process.Pid
}
