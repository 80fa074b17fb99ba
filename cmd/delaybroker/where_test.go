package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// mustFind searches a message that must be found.
func (o *testServer) mustFind(id string) inspect.Whereabouts {
	o.t.Helper()
	return decode[inspect.Whereabouts](o.t, o.must("where", id, "--json"))
}

// mustNotFind searches a message that must not be found, and returns the answer.
func (o *testServer) mustNotFind(args ...string) inspect.Whereabouts {
	o.t.Helper()
	out, _, err := o.run(append([]string{"where", "--json"}, args...)...)
	if got, want := exitCode(err), 1; got != want {
		o.t.Fatalf("exit code: got %d, want %d for %v\n%s", got, want, err, out)
	}
	return decode[inspect.Whereabouts](o.t, out)
}

// idOf returns the id of a message, from the time at which its first stream stored it.
func (o *testServer) idOf(stream string, sequence uint64) message.ID {
	o.t.Helper()
	s, err := o.js.Stream(o.t.Context(), stream)
	natstest.NoError(o.t, err)
	m, err := s.GetMsg(o.t.Context(), sequence)
	natstest.NoError(o.t, err)
	return message.ID{Stream: stream, Sequence: sequence, At: m.Time.UTC()}
}

func TestWhereInItsFirstStream(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 1h")
	o.must("provision")
	ack := o.publish("delay.1h.orders.expire", "")
	id := o.idOf(ack.Stream, ack.Sequence)
	w := o.mustFind(id.String())
	if w.Stream != "DELAY_1h" || w.Target != "orders.expire" ||
		!w.Due.Equal(id.At.Add(time.Hour)) || !w.Accepted.Equal(id.At) {
		t.Errorf("got %+v, want DELAY_1h, orders.expire, due after an hour", w)
	}
	out := o.must("where", id.String())
	wantParts(t, out, "waiting, due in 59m", "stored in  DELAY_1h", "sequence   1", "orders.expire")

	other := id
	other.At = id.At.Add(-time.Nanosecond)
	const gone = "delivered, unless it was purged, or the id is invented"
	if w := o.mustNotFind(other.String()); !strings.Contains(w.Answer, gone) {
		t.Errorf("another time: got %q", w.Answer)
	}
}

func TestWhereNeverStored(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	for _, test := range []struct {
		id   message.ID
		want string
	}{
		{message.ID{Stream: "DELAY_77s", Sequence: 1, At: time.Now()}, "the stream DELAY_77s does not exist"},
		{message.ID{Stream: "DELAY_5s", Sequence: 9, At: time.Now()}, "the last sequence of DELAY_5s is 0"},
		{message.ID{Stream: "DELAY_5s", Sequence: 9, At: time.Now().Add(-time.Hour)}, "is newer than the id"},
	} {
		if w := o.mustNotFind(test.id.String()); w.Found || !strings.Contains(w.Answer, test.want) {
			t.Errorf("%s: got %+v, want %q", test.id, w, test.want)
		}
	}
	_, _, err := o.run("where", "42")
	if got, want := exitCode(err), 2; got != want {
		t.Errorf("exit code for an invalid id: got %d, want %d", got, want)
	}
}

// The command where searches many messages. Some of them would end a consumer of nats.go, and one has the broker's
// header on a client's subject.
func TestWhereSearches(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	id := message.ID{Stream: "DELAY_5s", Sequence: 1, At: time.Now()}
	o.publish("delay.5s.x", "so that the sequence was given out")
	hop := func(subject, id string, header nats.Header) {
		msg := nats.NewMsg(subject)
		msg.Header = header
		maps.Copy(msg.Header, hopHeader(id))
		if _, err := o.js.PublishMsgAsync(msg); err != nil {
			t.Fatal(err)
		}
	}
	hop("delay.1s.forged", id.String(), nats.Header{})
	const others = 2010
	for i := range others {
		ends := nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}
		hop("delaysys.hop.1s.x", fmt.Sprintf("DELAY_5s-%d-1", i+2), ends)
	}
	<-o.js.PublishAsyncComplete()
	if w := o.mustNotFind(id.String()); w.Searched != others {
		t.Errorf("searched: got %d, want %d", w.Searched, others)
	}
	hop("delaysys.hop.1s.orders.expire", id.String(), nats.Header{})
	<-o.js.PublishAsyncComplete()
	w := o.mustFind(id.String())
	if w.Stream != "DELAY_1s" || w.Sequence != others+2 || w.Searched != others+1 || w.Target != "orders.expire" {
		t.Errorf("got %+v, want sequence %d of DELAY_1s", w, others+2)
	}
	w = o.mustNotFind(id.String(), "--most", "1500")
	if !strings.Contains(w.Answer, "--most") || w.Searched < 1500 || w.Searched > 2500 {
		t.Errorf("got %+v, want an end after about 1500", w)
	}
	s, err := o.js.Stream(t.Context(), "DELAY_1s")
	natstest.NoError(t, err)
	for name := range s.ConsumerNames(t.Context()).Name() {
		t.Errorf("consumer %s was not removed", name)
	}
}

// hopHeader returns the header of a message between lanes that is due in an hour. The id need not be valid.
func hopHeader(id string) nats.Header {
	now := time.Now()
	h := message.Request{ID: id, Accepted: now, Due: now.Add(time.Hour)}.HopHeader()
	return nats.Header{message.HeaderState: h[message.HeaderState]}
}

// The command pub may print only the stream and the sequence of a message.
func TestWhereByStreamAndSequence(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	ack := o.publish("delay.5s.orders.expire", "")
	id := o.idOf(ack.Stream, ack.Sequence)
	if w := o.mustFind("DELAY_5s-1"); w.ID != id.String() || w.Target != "orders.expire" {
		t.Errorf("in its first stream: got %+v, want %s", w, id)
	}
	moved := message.ID{Stream: "DELAY_INTAKE", Sequence: 29, At: time.Now().Add(-time.Hour)}
	for _, other := range []string{"DELAY_INTAKE-2-29", "DELAY_INTAKE-290-1", moved.String()} {
		hop := nats.NewMsg("delaysys.hop.1s.orders.moved")
		hop.Header = hopHeader(other)
		if _, err := o.js.PublishMsg(t.Context(), hop); err != nil {
			t.Fatal(err)
		}
	}
	if w := o.mustFind("DELAY_INTAKE-29"); w.ID != moved.String() || w.Sequence != 3 || w.Stream != "DELAY_1s" {
		t.Errorf("in the next stream: got %+v, want %s", w, moved)
	}
	const never = "never accepted: the last sequence"
	if w := o.mustNotFind("DELAY_INTAKE-30"); w.ID != "DELAY_INTAKE-30" || !strings.Contains(w.Answer, never) {
		t.Errorf("got %+v", w)
	}
	for _, words := range []string{"DELAY_INTAKE-", "-3", "DELAY INTAKE-3", "DELAY_INTAKE-0"} {
		if _, _, err := o.run("where", words); exitCode(err) != 2 {
			t.Errorf("%q: got %v, want a usage error", words, err)
		}
	}
}
