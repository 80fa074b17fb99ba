package clienttest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/levels"
)

const (
	maxPayload = 1 << 20 // bytes; the default of nats-server

	// As in a broker with the default configuration.
	levelReserve  = 4 << 10 // bytes below maxPayload
	intakeReserve = 8 << 10 // bytes below maxPayload
	dedupWindow   = 30 * time.Second
)

// plainDurations builds its long list once, and not for each publish.
var plainDurations = sync.OnceValue(levels.PlainDurations)

type stream struct {
	lastSequence uint64
	ids          map[string]publish          // the last publish with each Nats-Msg-Id
	messages     map[uint64]message.Incoming // the messages for ReadMessage, by sequence
}

type publish struct {
	sequence uint64
	at       time.Time
}

// store implements client.Store on a Fake.
type store struct{ *Fake }

var _ client.Store = store{}

// PublishMsg stores a message as JetStream does. It ignores the options: the client passes only options about retries.
func (s store) PublishMsg(
	ctx context.Context, m *nats.Msg, _ ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	name, maxSize, ok := s.streamOf(m.Subject)
	if !ok {
		return nil, jetstream.ErrNoStreamResponse
	}
	if size := m.Size() - len(m.Subject); size > maxPayload {
		return nil, nats.ErrMaxPayload
	} else if size > maxSize {
		return nil, &jetstream.APIError{
			Code: 400, ErrorCode: jsapi.CodeTooLarge, Description: "message size exceeds maximum allowed",
		}
	}
	if err := s.checkExpected(m.Subject, message.Header(m.Header)); err != nil {
		return nil, err
	}
	st := s.stream(name)
	id := m.Header.Get(nats.MsgIdHdr)
	if earlier, ok := st.ids[id]; ok && s.now.Sub(earlier.at) < dedupWindow {
		return &jetstream.PubAck{Stream: name, Sequence: earlier.sequence, Duplicate: true}, nil
	}
	in := s.newMessage(name, m.Subject, message.Header(m.Header), slices.Clone(m.Data))
	if id != "" {
		st.ids[id] = publish{in.Sequence, s.now}
	}
	s.accept(st, in)
	return &jetstream.PubAck{Stream: name, Sequence: in.Sequence}, nil
}

// newMessage returns a message with the next sequence of a stream.
func (f *Fake) newMessage(stream, subject string, header message.Header, body []byte) message.Incoming {
	st := f.stream(stream)
	st.lastSequence++
	return message.Incoming{
		Stream: stream, Sequence: st.lastSequence, At: f.now, Subject: subject, Header: header, Data: body,
	}
}

// stream returns a stream by name. It creates the stream at the first call.
func (f *Fake) stream(name string) *stream {
	st := f.streams[name]
	if st == nil {
		st = &stream{ids: make(map[string]publish), messages: make(map[uint64]message.Incoming)}
		f.streams[name] = st
	}
	return st
}

// accept parses a stored message as the broker does. A cancel ends its timer. Any other message becomes pending, or a
// dead letter.
func (f *Fake) accept(st *stream, in message.Incoming) {
	if in.Stream == f.policy.Names.TimersStream() {
		if e := f.setLast(in); e.Kind == entry.Cancel {
			return
		}
	}
	parsed, problem := entry.ParseAny(f.policy, in)
	if problem != nil {
		f.letters = append(f.letters, Letter{Subject: in.Subject, Code: problem.Code, Reason: problem.Sentence})
		return
	}
	st.messages[in.Sequence] = in
	f.requests = append(f.requests, f.addPending(in, parsed))
}

func (f *Fake) addPending(in message.Incoming, parsed entry.Pending) Publication {
	if latest := f.timers[in.Subject].runStart.Add(parsed.MaxWait); parsed.MaxWait > 0 && latest.Before(parsed.Due) {
		parsed.Due = latest
	}
	r := Publication{
		Stream: in.Stream, Sequence: in.Sequence, Subject: in.Subject, ID: parsed.ID, Target: parsed.Target,
		Due:    parsed.NextAttempt(), // later than parsed.Due for an overdue round of a series
		Header: nats.Header(in.Header), Body: in.Data, parsed: parsed,
	}
	f.insert(r)
	return r
}

// insert makes a message pending.
func (f *Fake) insert(r Publication) {
	index, _ := slices.BinarySearchFunc(f.pending, r, func(a, b Publication) int {
		if a.Due.After(b.Due) {
			return 1
		}
		return -1 // r sorts after requests with the same due time
	})
	f.pending = slices.Insert(f.pending, index, r)
}

// streamOf returns the stream that listens on a subject, and its maximum message size in bytes.
func (f *Fake) streamOf(subject string) (name string, maxSize int, ok bool) {
	addr := f.policy.Names.Parse(subject)
	if addr.Token == "" || addr.Target == "" {
		return "", 0, false
	}
	switch addr.Form {
	case message.FormTimer:
		return f.policy.Names.TimersStream(), maxPayload - levelReserve, true
	case message.FormIn, message.FormTime:
		return f.policy.Names.IntakeStream(), maxPayload - intakeReserve, true
	case message.FormLevel:
		if _, isLevel := f.ladder.Lookup(addr.Token); isLevel {
			return f.policy.Names.LevelStream(addr.Token), maxPayload - levelReserve, true
		}
		isPlain := slices.Contains(plainDurations(), addr.Token)
		return f.policy.Names.IntakeStream(), maxPayload - intakeReserve, isPlain
	}
	return "", 0, false
}

// PublishMsgAsync returns a future that already has its answer.
func (s store) PublishMsgAsync(m *nats.Msg, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	ack, err := s.PublishMsg(context.Background(), m, opts...)
	f := future{msg: m, ok: make(chan *jetstream.PubAck, 1), err: make(chan error, 1)}
	if err != nil {
		f.err <- err
	} else {
		f.ok <- ack
	}
	return f, nil
}

// ReadMessage returns an undelivered message. A broker moves messages out of the intake; the fake does not.
func (s store) ReadMessage(_ context.Context, name string, sequence uint64) (message.Incoming, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in, ok := s.stream(name).messages[sequence]; ok {
		return in, nil
	}
	return message.Incoming{}, client.ErrGone
}

// Streams ignores the subject: the client asks only for the streams with subjects delay.*.>.
func (s store) Streams(context.Context, string) ([]string, error) {
	names := []string{s.policy.Names.IntakeStream()}
	for _, l := range s.ladder.Levels() {
		names = append(names, s.policy.Names.LevelStream(l.Name))
	}
	return names, nil
}

func (s store) Refusal(string) error { return nil }

// future is a jetstream.PubAckFuture.
type future struct {
	msg *nats.Msg
	ok  chan *jetstream.PubAck
	err chan error
}

func (f future) Ok() <-chan *jetstream.PubAck { return f.ok }
func (f future) Err() <-chan error            { return f.err }
func (f future) Msg() *nats.Msg               { return f.msg }
