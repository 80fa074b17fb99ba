package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Part is a process of a run. The program starts itself again for each part.
type Part string

// The parts of a run. RunPart runs the load and the pipeline. The command test/rivals/compare runs the server and the
// broker.
const (
	PartServer   Part = "server"   // a nats-server
	PartBroker   Part = "broker"   // delaybroker serve
	PartLoad     Part = "load"     // publishes a Load
	PartPipeline Part = "pipeline" // the bare pipeline
)

const (
	// startTimeout is the timeout for a part to become ready. A broker creates about forty streams. In a cluster, each
	// stream has an election.
	startTimeout = 2 * time.Minute
	// stopTimeout is the timeout for a part to exit after its stdin has been closed.
	stopTimeout = 30 * time.Second
	// maxStderr is the maximum length, in bytes, of the end of a part's stderr that an error contains.
	maxStderr = 4 << 10
)

// PartOutput is one line of a part's stdout, with Ready, Accepted or Loaded. The line of a server also has URL.
type PartOutput struct {
	Ready    bool        `json:"ready,omitempty"`
	URL      string      `json:"url,omitempty"`      // of the nats-server
	PID      int         `json:"pid,omitempty"`      // of the process to measure, if it is a child of the part
	Accepted int         `json:"accepted,omitempty"` // number of messages of the load that the server accepted
	Loaded   *LoadResult `json:"loaded,omitempty"`   // the result of the load
}

// A Child is the process of a part. It exits when its stdin is closed, and so also if the run is killed.
type Child struct {
	URL string // of the nats-server; empty unless the part is PartServer

	part  Part
	cmd   *exec.Cmd
	pid   int // of the process to measure: cmd's, or a child of it
	stdin io.Closer
	lines chan PartOutput // closed at the end of the part's stdout

	mu     sync.Mutex // guards stderr
	stderr []byte     // the end of the part's stderr
}

// StartChild starts a part, writes the task to its stdin as JSON, and waits until the part is ready. Ctx bounds only
// this wait. The caller must stop or kill the child.
func StartChild(ctx context.Context, part Part, cmd *exec.Cmd, task any) (*Child, error) {
	c := &Child{part: part, cmd: cmd, lines: make(chan PartOutput, 16)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdin, cmd.Stderr = stdin, c
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", part, err)
	}
	go c.listen(stdout)
	err = json.NewEncoder(stdin).Encode(task)
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
		defer cancel()
		for output := (PartOutput{}); err == nil && !output.Ready; {
			output, err = c.Next(ctx)
			c.URL, c.pid = output.URL, cmp.Or(output.PID, cmd.Process.Pid)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s: %w", part, err), c.Stop())
	}
	return c, nil
}

// Next returns the next line of the part's stdout. After the last line, it returns an error with the end of the part's
// stderr. When ctx ends, it returns the cause of ctx.
func (c *Child) Next(ctx context.Context) (PartOutput, error) {
	select {
	case output, ok := <-c.lines:
		if !ok {
			return PartOutput{}, fmt.Errorf("the %s exited: %s", c.part, c.stderrTail())
		}
		return output, nil
	case <-ctx.Done():
		return PartOutput{}, context.Cause(ctx)
	}
}

// Usage returns the part's resource usage so far.
func (c *Child) Usage() (Usage, error) { return UsageOf(c.pid) }

// Stop closes the part's stdin and waits until the part has exited. It kills the part after stopTimeout. For a nil
// Child it does nothing.
func (c *Child) Stop() error {
	if c == nil {
		return nil
	}
	_ = c.stdin.Close() // fails if the part has exited, which Wait reports
	kill := time.AfterFunc(stopTimeout, func() { _ = c.cmd.Process.Kill() })
	for range c.lines { // until the end of the part's stdout
	}
	err := c.cmd.Wait()
	if !kill.Stop() {
		return fmt.Errorf("the %s did not exit within %s and was killed: %s", c.part, stopTimeout, c.stderrTail())
	}
	if err != nil {
		return fmt.Errorf("the %s: %w: %s", c.part, err, c.stderrTail())
	}
	return nil
}

// Kill kills the part, like kill -9, and waits until it has exited.
func (c *Child) Kill() {
	if child, err := os.FindProcess(c.pid); err == nil {
		_ = child.Kill() // the process may have exited
	}
	_ = c.cmd.Process.Kill()
	for range c.lines {
	}
	_ = c.cmd.Wait() // its error is the kill
}

func (c *Child) listen(stdout io.Reader) {
	defer close(c.lines)
	for lines := json.NewDecoder(stdout); ; {
		var output PartOutput
		if lines.Decode(&output) != nil {
			return
		}
		c.lines <- output
	}
}

// Write receives the part's stderr, and keeps the last maxStderr bytes.
func (c *Child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stderr = append(c.stderr, p...)
	c.stderr = c.stderr[max(0, len(c.stderr)-maxStderr):]
	return len(p), nil
}

func (c *Child) stderrTail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stderr) == 0 {
		return "no output on stderr"
	}
	return strings.TrimSpace(string(c.stderr))
}
