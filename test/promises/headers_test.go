package promises

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
	"delaybroker/test/poison"
)

// userLines are ordinary header lines of a client. They accompany every poisonous line, and must arrive unchanged.
var userLines = []string{
	"X-Order: 42", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate: a=b,c=d",
	"b3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90",
	"X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7",
	"X-Multi: one", "X-Multi: two", "x-multi: three", "Nats: kept", "X-Status: kept",
}

// TestReservedHeaders publishes each reserved header in each spelling that might hide it, on the raw protocol. It then
// reads the raw bytes of the message in every place: the next level, a retry lane, the target, and the dead letters.
// The test parses these bytes once as the server does, and once as nats.go does. Each time they have all user headers,
// and no reserved headers except those of the broker. A failure is one line for all messages that fail in the same way.
func TestReservedHeaders(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{
			Ladder: harness.Ladder(t, "1s 3s 7s 30s"), Attempts: 2, RetryLadder: harness.Ladder(t, "5s"),
		})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>")
		v := vectors{c: c, start: time.Now(), blocks: make(map[string]string), accepted: make(map[string]bool)}
		v.publish(harness.DialRaw(t, s))

		target := []string{"nats-msg-id", "delay-id", "delay-due", "delay-accepted"}
		hop := []string{"nats-msg-id", "delay-state", "delay-seal"}
		v.check("DELAY_7s", "hop ", 10*time.Second, hop, "/1")
		time.Sleep(time.Second)
		v.check("DELAY_RETRY_5s", "retry ", time.Second, hop, "/1")
		time.Sleep(time.Minute)
		v.check("ORDERS", "hop ", 10*time.Second, target, "")
		v.check("DELAY_DEAD", "retry ", time.Second,
			append(target, "delay-format", "delay-hop", "delay-subject", "delay-seal", "delay-attempts",
				"delay-first-failure", "delay-last-failure", "delay-error-code", "delay-error", "delay-refusals"), "/1/dead")
		c.CheckEmptyBut("DELAY_DEAD")
		if letters := c.DeadLetters(); len(letters) != 1 || len(letters[string(message.Undelivered)]) == 0 {
			t.Errorf("there are dead letters of %d codes, want only undelivered", len(letters))
		}
	})
}

// vectors has messages with every reserved header in every spelling. On one route the messages hop, on the other the
// target refuses them.
type vectors struct {
	c        *harness.Client
	start    time.Time
	blocks   map[string]string // the headers of each message, by its body
	accepted map[string]bool   // by body
}

func (v vectors) publish(raw *harness.RawConn) {
	v.c.T.Helper()
	numbers := make(map[string]int) // the number of each publish, by its body
	for _, disguise := range poison.Disguises {
		for _, line := range poison.Headers {
			block := "NATS/1.0\r\n" + strings.Join(userLines, "\r\n") + "\r\n" + disguise.Lines(line) + "\r\n\r\n"
			for route, subject := range map[string]string{"hop ": "delayin.10s.orders.x", "retry ": "delay.1s.nobody.x"} {
				body := route + line + ", " + disguise.Name
				v.blocks[body] = block
				numbers[body] = raw.Publish(subject, block, body)
			}
		}
	}
	stored, all := raw.AwaitAcks(), 0
	for body, n := range numbers {
		if v.accepted[body] = stored[n]; stored[n] {
			all++
			continue
		}
		// A stream may refuse only the server's own headers, in the server's spelling.
		if !slices.ContainsFunc(rawLines(v.blocks[body], "\r\n"),
			func(h rawHeader) bool { return strings.HasPrefix(h.name, "Nats-") }) {
			v.c.T.Errorf("%q was not stored", body)
		}
	}
	if published := 2 * len(poison.Disguises) * len(poison.Headers); all < published*3/4 || all == published {
		v.c.T.Errorf("the streams stored %d of %d messages, want three quarters or more, but not all", all, published)
	}
}

// check compares the messages in a stream with the accepted messages of one route.
func (v vectors) check(stream, route string, due time.Duration, set []string, suffix string) {
	v.c.T.Helper()
	failed := make(failures)
	defer failed.report(v.c.T, stream)
	seen := make(map[string]bool)
	for _, m := range rawMessages(v.c, stream) {
		if !strings.HasPrefix(m.body, route) {
			continue
		}
		if seen[m.body] || !v.accepted[m.body] {
			failed.add(m.body, "is there twice, or although the stream refused it")
		}
		seen[m.body] = true
		// The broker passes on the client's Nats-Msg-Id in Delay-Msg-Id.
		allowed := set
		if slices.ContainsFunc(rawLines(v.blocks[m.body], "\n"),
			func(h rawHeader) bool { return h.name == "Nats-Msg-Id" }) {
			allowed = append(slices.Clone(set), "delay-msg-id")
		}
		for _, eol := range []string{"\r\n", "\n"} {
			failed.checkRaw(fmt.Sprintf("%s, lines ended by %q", m.body, eol), rawLines(m.block, eol), allowed,
				v.start.Add(due), suffix)
		}
	}
	for body, ok := range v.accepted {
		if ok && strings.HasPrefix(body, route) && !seen[body] {
			failed.add(body, "is missing")
		}
	}
}

// failures has the messages that fail, by the kind of failure.
type failures map[string][]string

func (f failures) add(what, kind string) { f[kind] = append(f[kind], what) }

// report reports each kind of failure in one line, with one of its messages.
func (f failures) report(t testing.TB, stream string) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(f)) {
		t.Errorf("%s: a message %s; %d times, such as %s", stream, kind, len(f[kind]), f[kind][0])
	}
}

type rawHeader struct{ name, value string }

// rawLines splits a header block. For nats-server only CRLF ends a line, for nats.go also LF.
func rawLines(block, eol string) []rawHeader {
	var all []rawHeader
	for _, l := range strings.Split(block, eol)[1:] {
		if name, value, ok := strings.Cut(l, ":"); ok {
			all = append(all, rawHeader{name, strings.TrimSpace(value)})
		}
	}
	return all
}

// foldName returns a name as a very tolerant parser might read it: in lower case, without the characters that are
// invalid in a name.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return -1
	}, name)
}

// checkRaw expects exactly the reserved headers in set, each once, with the right id and due time, and all user headers
// unchanged. Between lanes, the id and the due time are in Delay-State.
func (f failures) checkRaw(what string, lines []rawHeader, set []string, due time.Time, suffix string) {
	reserved := make(map[string]string)
	var user []string
	for _, l := range lines {
		name := foldName(l.name)
		switch {
		case strings.HasPrefix(name, "nats-"), strings.HasPrefix(name, "nmqtt-"), strings.HasPrefix(name, "delay-"),
			name == "status", name == "description", name == "kv-operation":
			if _, twice := reserved[name]; twice || !slices.Contains(set, name) {
				f.add(fmt.Sprintf("%s, with the value %q", what, l.value), "has a wrong or second "+name)
			}
			reserved[name] = l.value
		default:
			user = append(user, l.name+": "+l.value)
		}
	}
	for _, name := range set {
		if _, ok := reserved[name]; !ok {
			f.add(what, "has no "+name)
		}
	}
	id, dueAt := reserved["delay-id"], reserved["delay-due"]
	if state, ok := reserved["delay-state"]; ok {
		read, fields := message.Policy{}.ReadState(message.Request{},
			message.Block{Delay: map[string][]string{message.HeaderState: {state}}}, message.InLane)
		if fields.Problem != nil {
			f.add(fmt.Sprintf("%s: %v", what, fields.Problem), "has an unreadable Delay-State")
			return
		}
		id, dueAt = read.ID, read.Due.UTC().Format(time.RFC3339Nano)
	}
	if _, err := message.ParseID(id); err != nil || reserved["nats-msg-id"] != id+suffix {
		f.add(fmt.Sprintf("%s: the id is %q, and Nats-Msg-Id is %q", what, id, reserved["nats-msg-id"]),
			"has a wrong id")
	}
	if want := due.UTC().Format(time.RFC3339Nano); dueAt != want {
		f.add(fmt.Sprintf("%s: due %s, want %s", what, dueAt, want), "has a wrong due time")
	}
	for _, line := range userLines {
		if !slices.Contains(user, line) {
			f.add(what, fmt.Sprintf("lacks the user header %q", line))
		}
	}
	if slices.Index(user, "X-Multi: one") > slices.Index(user, "X-Multi: two") {
		f.add(what, "has the values of X-Multi in the wrong order")
	}
}

// rawMessage is a stored message with its header block as bytes.
type rawMessage struct{ subject, block, body string }

// rawMessages returns all messages of a stream, read from its leader.
func rawMessages(c *harness.Client, stream string) []rawMessage {
	c.T.Helper()
	var all []rawMessage
	for next := uint64(1); ; {
		m, err := c.NC.RequestWithContext(context.Background(), "$JS.API.STREAM.MSG.GET."+stream,
			fmt.Appendf(nil, `{"seq":%d,"next_by_subj":">"}`, next))
		if err != nil {
			c.T.Fatalf("read %s: %v", stream, err)
		}
		var answer struct {
			Error *struct {
				ErrCode int `json:"err_code"`
			} `json:"error"`
			Message struct {
				Subject  string `json:"subject"`
				Sequence uint64 `json:"seq"`
				Header   []byte `json:"hdrs"`
				Data     []byte `json:"data"`
			} `json:"message"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			c.T.Fatalf("read %s: %v", stream, err)
		}
		if answer.Error != nil {
			if answer.Error.ErrCode != 10037 { // the server found no message
				c.T.Fatalf("read %s: %s", stream, m.Data)
			}
			return all
		}
		all = append(all, rawMessage{answer.Message.Subject, string(answer.Message.Header),
			string(answer.Message.Data)})
		next = answer.Message.Sequence + 1
	}
}
