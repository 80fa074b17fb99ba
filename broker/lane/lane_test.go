package lane

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/streams"
	"delaybroker/test/natstest"
)

// level is the lane that most tests read.
func level() streams.Spec {
	return streams.Spec{
		Stream: "DELAY_30m", Kind: streams.Level, Name: "30m", Delay: 30 * time.Minute, Prefix: "delay",
		Subjects: []string{"delay.30m.>", "delaysys.hop.30m.>"}, MaxMsgSize: 1 << 20, Replicas: 1,
		Duplicates: 30 * time.Second,
	}
}

// rig is a stream and a client that publishes to it.
type rig struct {
	t      testing.TB
	server *natstest.Server
	js     jetstream.JetStream
	nc     *nats.Conn
	spec   streams.Spec
}

func newRig(t testing.TB, s *natstest.Server) *rig {
	t.Helper()
	nc := s.Connect(nats.Name("client"))
	r := &rig{t: t, server: s, nc: nc, js: s.JetStream(nc), spec: level()}
	r.create()
	return r
}

func (r *rig) create() {
	r.t.Helper()
	if _, err := r.js.CreateStream(context.Background(), r.spec.Config()); err != nil {
		r.t.Fatalf("create %s: %v", r.spec.Stream, err)
	}
}

// publish stores messages with the numbers from first to last as bodies.
func (r *rig) publish(first, last int) {
	r.t.Helper()
	for i := first; i <= last; i++ {
		r.store(&nats.Msg{Subject: "delay.30m.x", Data: fmt.Append(nil, i)})
	}
}

func (r *rig) store(m *nats.Msg) {
	r.t.Helper()
	if _, err := r.js.PublishMsg(context.Background(), m); err != nil {
		r.t.Fatalf("publish: %v", err)
	}
}

// burst stores messages so quickly that the first is delivered before the last is stored.
func (r *rig) burst(first, last int) {
	r.t.Helper()
	for i := first; i <= last; i++ {
		if err := r.nc.Publish("delay.30m.x", fmt.Append(nil, i)); err != nil {
			r.t.Fatalf("publish: %v", err)
		}
	}
	natstest.Flush(r.t, r.nc)
}

func (r *rig) purge(opts ...jetstream.StreamPurgeOpt) {
	r.t.Helper()
	s, err := r.js.Stream(context.Background(), r.spec.Stream)
	if err == nil {
		err = s.Purge(context.Background(), opts...)
	}
	if err != nil {
		r.t.Fatalf("purge: %v", err)
	}
}

func (r *rig) deleteConsumers() {
	r.t.Helper()
	for _, name := range r.consumers() {
		if err := r.js.DeleteConsumer(context.Background(), r.spec.Stream, name); err != nil {
			r.t.Fatalf("delete the consumer: %v", err)
		}
	}
}

func (r *rig) consumers() []string {
	r.t.Helper()
	st, err := r.js.Stream(context.Background(), r.spec.Stream)
	if err != nil {
		r.t.Fatalf("stream: %v", err)
	}
	var names []string
	for name := range st.ConsumerNames(context.Background()).Name() {
		names = append(names, name)
	}
	return names
}

// replace creates another stream of the same name.
func (r *rig) replace() {
	r.t.Helper()
	if err := r.js.DeleteStream(context.Background(), r.spec.Stream); err != nil {
		r.t.Fatalf("delete: %v", err)
	}
	time.Sleep(100 * time.Millisecond) // until the server has removed the files
	r.create()
}

// retry publishes a message repeatedly, until the server accepts it.
func (r *rig) retry(m *nats.Msg) {
	for {
		if _, err := r.js.PublishMsg(context.Background(), m); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// owner takes the items of a reader.
type owner struct {
	*Reader
	t    testing.TB
	stop context.CancelFunc

	mu     sync.Mutex
	got    []string // bodies, in the order of the reader
	epochs []Epoch
	stored []Message
}

// read starts a reader, and an owner that takes all items immediately.
func (r *rig) read(nc *nats.Conn, from uint64) *owner {
	r.t.Helper()
	o := r.reader(nc, from)
	go o.take(1 << 30)
	return o
}

// reader starts a reader whose owner takes no items.
func (r *rig) reader(nc *nats.Conn, from uint64) *owner {
	r.t.Helper()
	return r.readerOf(ReaderConfig{Conn: nc, JetStream: r.server.JetStream(nc), From: from})
}

func (r *rig) readerOf(cfg ReaderConfig) *owner {
	r.t.Helper()
	cfg.APIPrefix, cfg.Inbox, cfg.Stream, cfg.Delay = "$JS.API", "_INBOX", r.spec.Stream, r.spec.Delay
	cfg.Log = slog.New(slog.NewTextHandler(r.t.Output(), nil))
	o := &owner{t: r.t, Reader: NewReader(cfg)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	go o.adopt(done)
	o.stop = func() { cancel(); <-done; close(o.items) }
	r.t.Cleanup(func() { o.stop() })
	return o
}

// adopt accepts every epoch immediately, as an owner must.
func (o *owner) adopt(done <-chan struct{}) {
	for {
		select {
		case e := <-o.Epochs():
			o.mu.Lock()
			o.epochs = append(o.epochs, e)
			o.mu.Unlock()
		case <-done:
			return
		}
	}
}

// take takes at most n items. It also ends when the reader stops.
func (o *owner) take(n int) {
	for range n {
		it, ok := <-o.Items()
		if !ok {
			return
		}
		o.Release(it)
		o.mu.Lock()
		o.got = append(o.got, string(it.Data))
		o.stored = append(o.stored, it.Message)
		o.mu.Unlock()
	}
}

// check checks that the owner has taken exactly the messages from first to last, in order.
func (o *owner) check(first, last int) {
	o.t.Helper()
	o.checkBodies(numbers(first, last)...)
}

func (o *owner) checkBodies(want ...string) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.got, want) {
		o.t.Fatalf("read %s, want %s", brief(o.got), brief(want))
	}
}

// checkEpochs checks the epochs so far: "fresh" for an epoch with a new history, and "same" otherwise.
func (o *owner) checkEpochs(want ...string) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	var got []string
	for i, e := range o.epochs {
		if e.Number != uint64(i+1) {
			o.t.Errorf("epoch %d has number %d", i+1, e.Number)
		}
		got = append(got, map[bool]string{true: "fresh", false: "same"}[e.NewHistory])
	}
	if !slices.Equal(got, want) {
		o.t.Fatalf("epochs %s, want %s", brief(got), brief(want))
	}
}

// brief formats a list, and abbreviates a long one.
func brief(list []string) string {
	if len(list) <= 12 {
		return fmt.Sprint(list)
	}
	return fmt.Sprintf("%d: [%s … %s]", len(list), strings.Join(list[:5], " "), strings.Join(list[len(list)-5:], " "))
}
