package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Part is a process of a run. The program starts itself again for each part.
type Part string

// The parts of a run. RunPart runs the load and the pipeline, and the command runs the others.
const (
	PartServer   Part = "server"   // a nats-server
	PartBroker   Part = "broker"   // delaybroker serve
	PartLoad     Part = "load"     // publishes a Load
	PartPipeline Part = "pipeline" // the bare pipeline
)

const (
	// startTimeout is the timeout for a part to become ready. A broker creates some forty streams, each with an
	// election.
	startTimeout = 2 * time.Minute
	// stopTimeout is the timeout for a part to exit after its stdin was closed.
	stopTimeout = 30 * time.Second
	// lastWords is the number of bytes at the end of a part's stderr that an error shows.
	lastWords = 4 << 10
)

// Said is one line of a part's stdout.
type Said struct {
	Ready    bool    `json:"ready,omitempty"`
	URL      string  `json:"url,omitempty"`      // address of a server
	Accepted int     `json:"accepted,omitempty"` // progress of a load, in messages
	Loaded   *Loaded `json:"loaded,omitempty"`   // result of a load
}

// A Child is a running part. It exits when its stdin is closed, so no part outlives a killed run.
type Child struct {
	URL string // address of a server

	part  Part
	cmd   *exec.Cmd
	stdin io.Closer
	heard chan Said // closed at the end of the part's stdout

	mu     sync.Mutex // guards stderr
	stderr []byte     // the end of the part's stderr
}

// StartChild starts a part, writes the order to its stdin, and waits until it is ready. The context limits only this
// wait: the caller stops the child.
func StartChild(ctx context.Context, part Part, cmd *exec.Cmd, order any) (*Child, error) {
	c := &Child{part: part, cmd: cmd, heard: make(chan Said, 16)}
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
	err = json.NewEncoder(stdin).Encode(order)
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
		defer cancel()
		for said := (Said{}); err == nil && !said.Ready; {
			said, err = c.Next(ctx)
			c.URL = said.URL
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s: %w", part, err), c.Stop())
	}
	return c, nil
}

// Next returns the next line of the part's stdout. After the last line it returns an error with the end of the part's
// stderr.
func (c *Child) Next(ctx context.Context) (Said, error) {
	select {
	case said, ok := <-c.heard:
		if !ok {
			return Said{}, fmt.Errorf("the %s ended: %s", c.part, c.words())
		}
		return said, nil
	case <-ctx.Done():
		return Said{}, context.Cause(ctx)
	}
}

// Usage returns its resource usage so far.
func (c *Child) Usage() (Usage, error) { return UsageOf(c.cmd.Process.Pid) }

// Stop closes the part's stdin and waits until the part has exited. After half a minute it kills the part. A nil Child
// has exited.
func (c *Child) Stop() error {
	if c == nil {
		return nil
	}
	_ = c.stdin.Close() // the part may have closed its end
	late := time.AfterFunc(stopTimeout, func() { _ = c.cmd.Process.Kill() })
	for range c.heard { // until the end of the part's stdout
	}
	err := c.cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("the %s did not end within %s: %s", c.part, stopTimeout, c.words())
	}
	if err != nil {
		return fmt.Errorf("the %s: %w: %s", c.part, err, c.words())
	}
	return nil
}

// Kill kills the part immediately, like kill -9.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // the part may have exited
	for range c.heard {
	}
	_ = c.cmd.Wait() // the error reports the kill
}

func (c *Child) listen(stdout io.Reader) {
	defer close(c.heard)
	for lines := json.NewDecoder(stdout); ; {
		var said Said
		if lines.Decode(&said) != nil {
			return
		}
		c.heard <- said
	}
}

// Write keeps the end of the part's stderr.
func (c *Child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stderr = append(c.stderr, p...)
	c.stderr = c.stderr[max(0, len(c.stderr)-lastWords):]
	return len(p), nil
}

func (c *Child) words() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stderr) == 0 {
		return "no output on stderr"
	}
	return strings.TrimSpace(string(c.stderr))
}
