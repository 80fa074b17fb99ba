package role

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const (
	// copiesTimeout is the timeout of a request to a replica. For copiesRetry after a failed request, the worker asks
	// only the leader.
	copiesTimeout = time.Second
	copiesRetry   = time.Minute
	// MaxCopies is the maximum number of timers in one request. CopiesBytes is the maximum size of their bodies together,
	// unless there is only one body. A replica that answers such a request serves no other request of the stream
	// meanwhile.
	MaxCopies   = jsapi.MaxDirect
	CopiesBytes = 1 << 20
	// headerRoom is the maximum size of the headers of one timer in an answer. The server bounds headers.
	headerRoom = 64 << 10
)

// ErrNoCopies is returned by ReadCopies, without a request, if the replicas did not answer a recent request.
var ErrNoCopies = errors.New("the replicas of the timers' stream do not answer")

// ReadCopies reads the last entries of some subjects from a replica. The result lacks entries that the replica does not
// have, or that do not fit into one answer. After an error, the result may have some entries; they are valid.
func (s *Stream) ReadCopies(ctx context.Context, subjects []string) (map[string]message.Incoming, error) {
	if !s.asksReplicas(time.Now()) {
		return nil, ErrNoCopies
	}
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	found, err := s.Copies.LastOfEach(ctx, s.Name(), subjects, CopiesBytes+len(subjects)*headerRoom)
	s.noteCopies(err)
	copies := make(map[string]message.Incoming, len(found))
	for _, in := range found {
		copies[in.Subject] = in
	}
	return copies, err
}

// noteCopies stops requests to replicas for copiesRetry, if err shows that the replicas do not answer.
func (s *Stream) noteCopies(err error) {
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && s.Copies.Conn.IsConnected() {
		s.leaderOnly.Store(time.Now().Add(copiesRetry).UnixNano())
	}
}

// asksReplicas reports whether replicas may be asked at a local time.
func (s *Stream) asksReplicas(local time.Time) bool {
	return s.Copies.Conn != nil && local.UnixNano() >= s.leaderOnly.Load()
}

// Copied records a replica's copy of the last entry of a marker's subject, and returns the next step. A replica may
// lag, so only two facts count: the copy is the generation's entry, whose body cannot change and which the firing will
// expect to be the last entry; or the copy is a cancel of the generation. In all other cases, the next step is a read
// from the leader.
func (s *Stream) Copied(a *Alarm, in message.Incoming) (entry.Entry, Step) {
	a.Fresh = false
	e := entry.Parse(s.Policy, in)
	switch {
	case in.Sequence == a.Generation && in.At.Equal(a.At) && e.Kind == entry.Set:
		a.Stage, a.unread = Pending, false
		return e, Step{Kind: Restart}
	case in.Sequence > a.Generation && in.At.After(a.At) && e.Kind == entry.Cancel && e.Cancelled == a.Generation:
		return e, Step{Kind: Drop}
	}
	return e, Step{Kind: Examine}
}
