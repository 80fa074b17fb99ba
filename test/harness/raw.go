package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/test/natstest"
)

// RawConn is a connection without a client library, for messages that a client library would refuse.
type RawConn struct {
	t    testing.TB
	conn net.Conn

	mu      sync.Mutex // guards answers
	answers []string   // indexed by the number of the publish; empty until the answer arrives
}

const rawInbox = "_INBOX.raw."

// DialRaw returns a connection, which answers pings until the test ends.
func DialRaw(t testing.TB, s *natstest.Server) *RawConn {
	t.Helper()
	conn, err := s.Dial("", "")
	natstest.NoError(t, err)
	c := &RawConn{t: t, conn: conn}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		c.listen()
	}()
	c.write(`CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}` +
		"\r\nSUB " + rawInbox + "* 1\r\n")
	return c
}

func (c *RawConn) write(s string) {
	if _, err := c.conn.Write([]byte(s)); err != nil {
		c.t.Errorf("the raw connection: %v", err)
	}
}

// listen records the answers until the connection is closed.
func (c *RawConn) listen() {
	r := textproto.NewReader(bufio.NewReader(c.conn))
	to := -1
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		switch {
		case line == "PING":
			c.write("PONG\r\n")
		case strings.HasPrefix(line, "-ERR"):
			c.t.Errorf("the raw connection got an error from the server: %s", line)
		case strings.HasPrefix(line, "MSG "), strings.HasPrefix(line, "HMSG "):
			n, _, _ := strings.Cut(line[strings.Index(line, rawInbox)+len(rawInbox):], " ")
			if to, err = strconv.Atoi(n); err != nil {
				c.t.Errorf("answer to an unknown publish: %s", line)
			}
		case strings.HasPrefix(line, "{"), strings.HasPrefix(line, "NATS/1.0 503"):
			c.mu.Lock()
			c.answers[to] = line
			c.mu.Unlock()
		}
	}
}

// Publish sends a message, with a header block unless block is empty. It returns the number of the publish.
func (c *RawConn) Publish(subject, block, body string) int {
	c.mu.Lock()
	n := len(c.answers)
	c.answers = append(c.answers, "")
	c.mu.Unlock()
	var b bytes.Buffer
	if block == "" {
		fmt.Fprintf(&b, "PUB %s %s%d %d\r\n%s\r\n", subject, rawInbox, n, len(body), body)
	} else {
		fmt.Fprintf(&b, "HPUB %s %s%d %d %d\r\n%s%s\r\n", subject, rawInbox, n, len(block), len(block)+len(body), block,
			body)
	}
	c.write(b.String())
	return n
}

// AwaitAcks returns for each publish whether a stream acknowledged it, and not as a duplicate. It waits for the answers
// for a second of fake time. Every answer takes less.
func (c *RawConn) AwaitAcks() []bool {
	c.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]bool, len(c.answers))
	for i, a := range c.answers {
		all[i] = strings.Contains(a, `"stream":"`) && strings.Contains(a, `"seq":`) &&
			!strings.Contains(a, `"error"`) && !strings.Contains(a, `"duplicate"`)
	}
	return all
}
