package deadletter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/config"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/streams/provision"
	"delaybroker/test/natstest"
)

// kit is a store of letters on a server with the streams of a broker. No broker runs.
type kit struct {
	*Store
	t      *testing.T
	nc     *nats.Conn
	js     jetstream.JetStream
	policy message.Policy
}

// bubble runs f with a kit under fake time.
func bubble(t *testing.T, f func(t *testing.T, k *kit)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) { f(t, newKit(t, s)) })
}

func newKit(t *testing.T, s *natstest.Server) *kit {
	t.Helper()
	k := &kit{t: t, nc: s.Connect()}
	k.js = s.JetStream(k.nc)
	streams, err := provision.StreamsOf(config.Config{Targets: []string{"orders.>", "payments.>"}})
	if err != nil {
		t.Fatal(err)
	}
	k.policy = streams.Policy()
	for _, spec := range streams.Wanted(k.nc.MaxPayload(), false) {
		if spec.Stream != "DELAY_DEAD" && spec.Stream != "DELAY_RETRY_1s" {
			continue
		}
		if _, err := k.js.CreateStream(k.ctx(), spec.Config()); err != nil {
			t.Fatal(err)
		}
	}
	k.Store = New(lane.Scan{Conn: k.nc, JetStream: k.js, APIPrefix: "$JS.API"}, k.policy, "1s")
	return k
}

// ctx returns a context that is valid in cleanups. The test's own context ends before the cleanups.
func (k *kit) ctx() context.Context { return context.Background() }

// request parses a client's message on a subject of the level 1m. Its sequence is n.
func (k *kit) request(n uint64, subject string, headers ...string) (message.Request, *message.Problem) {
	h := make(message.Header)
	for pair := range slices.Chunk(headers, 2) {
		h[pair[0]] = []string{pair[1]}
	}
	return k.policy.Parse(message.Incoming{Stream: "DELAY_1m", Sequence: n, At: time.Now().UTC(), Subject: subject,
		Header: h})
}

// deadLetter stores a letter as a broker does.
func (k *kit) deadLetter(r message.Request, p *message.Problem, body string) *jetstream.PubAck {
	k.t.Helper()
	return k.store(&nats.Msg{Subject: k.policy.Names.Dead(p.Code, r.Target), Header: nats.Header(r.DeadHeader(p)),
		Data: []byte(body)})
}

func (k *kit) store(m *nats.Msg) *jetstream.PubAck {
	k.t.Helper()
	ack, err := k.js.PublishMsg(k.ctx(), m)
	if err != nil {
		k.t.Fatalf("publish on %s: %v", m.Subject, err)
	}
	return ack
}

// undelivered stores the letter of a message that its target refused three times.
func (k *kit) undelivered(n uint64, target, body string) message.Request {
	k.t.Helper()
	subject := "delay.1m." + target
	r, problem := k.request(n, subject, "X-Order", "42")
	if problem != nil {
		k.t.Fatal(problem)
	}
	for range 3 {
		r = r.WithRefusal(time.Now().UTC(), time.Now().UTC(), "no stock")
	}
	r.Hop = 2
	k.deadLetter(r, message.Problemf(message.Undelivered, "it is full"), body)
	return r
}

// list returns the letters of a query. It fails the test at an error.
func (k *kit) list(q Query) []Letter {
	k.t.Helper()
	var letters []Letter
	for l, err := range k.List(k.ctx(), q) {
		if err != nil {
			k.t.Fatalf("list: %v", err)
		}
		letters = append(letters, l)
	}
	return letters
}

func (k *kit) onlyLetter(q Query) Letter {
	k.t.Helper()
	letters := k.list(q)
	if len(letters) != 1 {
		k.t.Fatalf("%d letters, want one", len(letters))
	}
	return letters[0]
}

// newLetter stores and returns a letter. The stream must be empty.
func (k *kit) newLetter() Letter {
	k.t.Helper()
	k.undelivered(1, "orders.expire", "body")
	return k.onlyLetter(Query{})
}

func (k *kit) resend(l Letter, c Resend) error {
	k.t.Helper()
	return k.Resend(k.ctx(), l, c, time.Now())
}

// crash stores the message of a resend, and does not remove the letter.
func (k *kit) crash(l Letter, c Resend) {
	k.t.Helper()
	m, err := k.Store.newMessage(l, c, time.Now())
	if err == nil {
		err = k.Store.store(k.ctx(), l.ID, m)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) stream(name string) jetstream.Stream {
	k.t.Helper()
	s, err := k.js.Stream(k.ctx(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

func (k *kit) wantCount(stream string, want uint64) {
	k.t.Helper()
	if got := k.stream(stream).CachedInfo().State.Msgs; got != want {
		k.t.Errorf("%s holds %d messages, want %d", stream, got, want)
	}
}

func (k *kit) purge(stream string) {
	k.t.Helper()
	if err := k.stream(stream).Purge(k.ctx()); err != nil {
		k.t.Fatal(err)
	}
}

// resent returns the messages in the retry lane, parsed as a broker parses them.
func (k *kit) resent() []message.Request {
	k.t.Helper()
	var messages []message.Request
	for _, m := range k.lane() {
		r, problem := k.policy.Parse(message.Incoming{
			Stream: "DELAY_RETRY_1s", Sequence: m.Sequence, At: m.Time, Subject: m.Subject,
			Header: maps.Clone(message.Header(m.Header)),
		})
		if problem != nil {
			k.t.Errorf("a broker would make it a dead letter again: %v", problem)
		}
		messages = append(messages, r)
	}
	return messages
}

func (k *kit) bodies() (bodies [][]byte) {
	k.t.Helper()
	for _, m := range k.lane() {
		bodies = append(bodies, m.Data)
	}
	return bodies
}

func (k *kit) lane() (messages []*jetstream.RawStreamMsg) {
	k.t.Helper()
	s := k.stream("DELAY_RETRY_1s")
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(k.ctx(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			k.t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func numbersOf(letters []Letter) []uint64 {
	var numbers []uint64
	for _, l := range letters {
		numbers = append(numbers, l.Sequence)
	}
	return numbers
}
