// Package test checks the broker's promises, end to end, on a real nats-server. Each file is named after its subject.
// Most tests run under fake time, where durations are exact.
package test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// mute leaves those requests of brokers with this configuration unanswered that begin so, while the result is true. A
// test in which there is none fails.
func mute(t *testing.T, s *natstest.Server, cfg *broker.Config, begins string) *atomic.Bool {
	t.Helper()
	return meddle(t, s, cfg, begins, func(*nats.Msg) {})
}

// meddle is mute with an answer to those requests.
func meddle(
	t *testing.T, s *natstest.Server, cfg *broker.Config, begins string, answer func(m *nats.Msg),
) *atomic.Bool {
	t.Helper()
	on, met := new(atomic.Bool), new(atomic.Int64)
	natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		if !on.Load() || !strings.HasPrefix(question, begins) {
			return false
		}
		met.Add(1)
		answer(m)
		return true
	})
	t.Cleanup(func() {
		if met.Load() == 0 {
			t.Errorf("there was no request that begins with %s", begins)
		}
	})
	cfg.APIPrefix = natstest.ProxyAPI
	return on
}

// instance is a running broker.
type instance struct {
	t      testing.TB
	broker *broker.Broker
	links  broker.Links
	cancel context.CancelFunc
	done   chan error
	ended  bool
}

// startBroker runs a broker on its own connections until the test ends. It returns when the broker is ready.
func startBroker(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *instance {
	t.Helper()
	i := launchBroker(t, s, cfg, opts...)
	select {
	case <-i.broker.Ready():
	case err := <-i.done:
		t.Fatalf("the broker ended before it was ready: %v", err)
	}
	return i
}

func launchBroker(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *instance {
	t.Helper()
	cfg.Provision = true
	return launchVerifying(t, s, cfg, opts...)
}

// launchVerifying runs a broker that creates streams only if its configuration says so.
func launchVerifying(t testing.TB, s *natstest.Server, cfg broker.Config, opts ...nats.Option) *instance {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	dial := func(name string, more ...nats.Option) *nats.Conn {
		return s.Connect(slices.Concat(opts, more, []nats.Option{nats.Name(name)})...)
	}
	links := broker.Links{
		Read: dial("read"), Write: dial("write", nats.ReconnectBufSize(-1)),
		Deliver: dial("deliver", nats.ReconnectBufSize(-1)), Control: dial("control", nats.ReconnectBufSize(-1)),
	}
	b, err := broker.New(links, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{t: t, broker: b, links: links, cancel: cancel, done: make(chan error, 1)}
	go func() { i.done <- b.Run(ctx) }()
	t.Cleanup(i.stop)
	return i
}

// stop stops the broker cleanly.
func (i *instance) stop() {
	i.t.Helper()
	if i.ended {
		return
	}
	i.ended = true
	i.cancel()
	if err := <-i.done; err != nil {
		i.t.Errorf("Run ended with %v, want nil after a clean stop", err)
	}
	i.close()
}

// crash closes all connections at once, so that the broker can no longer acknowledge, commit or deliver, and then ends
// it.
func (i *instance) crash() {
	i.t.Helper()
	i.ended = true
	i.close()
	i.cancel()
	<-i.done
}

func (i *instance) close() {
	for _, nc := range []*nats.Conn{i.links.Read, i.links.Write, i.links.Deliver, i.links.Control} {
		nc.Close()
	}
}

// client publishes requests and reads what arrives.
type client struct {
	t  testing.TB
	nc *nats.Conn
	js jetstream.JetStream
}

func newClient(t testing.TB, s *natstest.Server) *client {
	nc := s.Connect(nats.Name("client"))
	return &client{t: t, nc: nc, js: s.JetStream(nc)}
}

// connected makes a client of an existing connection.
func connected(t testing.TB, nc *nats.Conn) *client {
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("JetStream: %v", err)
	}
	return &client{t: t, nc: nc, js: js}
}

// target creates a stream for these subjects.
func (c *client) target(name string, subjects ...string) jetstream.Stream {
	c.t.Helper()
	return c.create(jetstream.StreamConfig{Name: name, Subjects: subjects})
}

// newMsg is a message with headers, of which each name is before its value.
func newMsg(subject, body string, headers ...string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{}}
	for h := range slices.Chunk(headers, 2) {
		m.Header.Add(h[0], h[1])
	}
	return m
}

// publish stores a message and returns the server's acknowledgement.
func (c *client) publish(subject, body string, headers ...string) *jetstream.PubAck {
	c.t.Helper()
	return c.store(newMsg(subject, body, headers...))
}

// store is publish for a message that is already made.
func (c *client) store(m *nats.Msg) *jetstream.PubAck {
	c.t.Helper()
	ack, err := c.js.PublishMsg(context.Background(), m)
	if err != nil {
		c.t.Fatalf("publish on %s: %v", m.Subject, err)
	}
	return ack
}

// arrival is a message in a target stream.
type arrival struct {
	At      time.Time // when the target's server stored it
	Due     time.Time
	ID      string
	Body    string
	Subject string
	Header  nats.Header
}

// arrivals returns all messages of a stream.
func (c *client) arrivals(stream string) []arrival {
	c.t.Helper()
	s := c.stream(stream)
	var all []arrival
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(context.Background(), seq)
		if err != nil {
			continue // deleted
		}
		due, _ := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
		all = append(all, arrival{At: m.Time, Due: due, ID: m.Header.Get(message.HeaderID), Body: string(m.Data),
			Subject: m.Subject, Header: m.Header})
	}
	return all
}

// dead returns the dead letters by code.
func (c *client) dead() map[string][]arrival {
	c.t.Helper()
	byCode := make(map[string][]arrival)
	for _, a := range c.arrivals("DELAY_DEAD") {
		code := a.Header.Get(message.HeaderErrorCode)
		byCode[code] = append(byCode[code], a)
	}
	return byCode
}

// checkNoDead fails the test for every dead letter.
func (c *client) checkNoDead() {
	c.t.Helper()
	for code, letters := range c.dead() {
		c.t.Errorf("%d dead letters %s, the first: %s", len(letters), code, letters[0].Header.Get(message.HeaderError))
	}
}

// checkEmpty fails the test for every stream of the broker that still holds messages.
func (c *client) checkEmpty() { c.checkEmptyBut("") }

func (c *client) checkEmptyBut(stream string) {
	c.t.Helper()
	list := c.js.ListStreams(context.Background())
	for info := range list.Info() {
		kind := info.Config.Metadata["delaybroker.kind"]
		if n := c.waiting(info); kind != "" && kind != "owners" && n > 0 && info.Config.Name != stream {
			c.t.Errorf("%s still holds %d messages", info.Config.Name, n)
		}
	}
}

// waiting is how many messages wait in a stream: in that of pauses, those that a broker has put there.
func (c *client) waiting(info *jetstream.StreamInfo) (n uint64) {
	c.t.Helper()
	if info.Config.Metadata["delaybroker.kind"] != "paused" {
		return info.State.Msgs
	}
	for _, a := range c.arrivals(info.Config.Name) {
		if a.Header.Get(message.HeaderSeal) != "" && !strings.HasSuffix(a.Subject, "sys.pauses") { // the list of pauses
			n++
		}
	}
	return n
}

// inbox is what a core subscriber received, with the times.
type inbox struct {
	mu   sync.Mutex
	msgs []arrival
}

func (c *client) subscribe(subject string) *inbox {
	c.t.Helper()
	in := &inbox{}
	if _, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		due, _ := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.msgs = append(in.msgs, arrival{At: time.Now(), Due: due, ID: m.Header.Get(message.HeaderID),
			Body: string(m.Data), Subject: m.Subject, Header: m.Header})
	}); err != nil {
		c.t.Fatalf("subscribe %s: %v", subject, err)
	}
	natstest.Flush(c.t, c.nc)
	return in
}

func (in *inbox) all() []arrival {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.msgs)
}

// await waits until this many messages have come, while that may be for a busy machine.
func (in *inbox) await(count int) {
	for end := time.Now().Add(natstest.Patience); len(in.all()) < count && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
}

// checkExactly expects count messages one nanosecond before due, and one more when it is due.
func checkExactly(t *testing.T, in *inbox, due time.Time, count int) {
	t.Helper()
	time.Sleep(time.Until(due) - 1)
	synctest.Wait()
	if got := len(in.all()); got != count {
		t.Fatalf("1ns before due: %d messages, want %d", got, count)
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	got := in.all()
	if len(got) != count+1 {
		t.Fatalf("when due: %d messages, want %d", len(got), count+1)
	}
	if last := got[count]; !last.At.Equal(due) || !last.Due.Equal(due) {
		t.Errorf("came at %s saying it was due %s, want %s", last.At, last.Due, due)
	}
}

// ladder parses a list of levels.
func ladder(t testing.TB, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatalf("ladder %q: %v", spec, err)
	}
	return l
}

// bodies are the bodies of messages, sorted, each with a count if it came more than once.
func bodies(all []arrival) string {
	count := make(map[string]int)
	for _, a := range all {
		count[a.Body]++
	}
	var words []string
	for _, body := range slices.Sorted(maps.Keys(count)) {
		if n := count[body]; n > 1 {
			body = fmt.Sprintf("%s×%d", body, n)
		}
		words = append(words, body)
	}
	return strings.Join(words, " ")
}

// owns is the configuration of an instance that owns these lanes and no others.
func owns(lanes ...string) lease.Leaser { return lease.Static{Lanes: lanes} }

// streams are the lanes that an instance owns, separated by spaces.
func ownedLanes(i *instance) string {
	var names []string
	for _, l := range i.broker.Status().Lanes {
		if l.Owned {
			names = append(names, l.Stream)
		}
	}
	return strings.Join(names, " ")
}

// policy is that of a broker with a prefix and no other settings, with the keys from the metadata of its streams.
func (c *client) policy(prefix string) message.Policy {
	c.t.Helper()
	streams, err := broker.StreamsOf(broker.Config{Prefix: prefix})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.js)
	}
	if err != nil {
		c.t.Fatalf("read the keys: %v", err)
	}
	return streams.Policy()
}

// keys are those of a broker.
func (c *client) keys(prefix string) *message.Keys {
	c.t.Helper()
	return c.policy(prefix).Keys
}

// publishSealed stores a message with a seal made by these keys.
func (c *client) publishSealed(k *message.Keys, subject, body string, headers ...string) {
	c.t.Helper()
	m := newMsg(subject, body, headers...)
	k.SealMessage(subject, message.Header(m.Header), m.Data, time.Now())
	c.store(m)
}
