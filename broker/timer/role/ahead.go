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
	// copiesTimeout is the time within which replicas must answer. If they do not, they are not asked for copiesRetry.
	copiesTimeout = time.Second
	copiesRetry   = time.Minute
	// MaxCopies is the maximum number of timers in one request, and CopiesBytes the maximum size of their bodies, unless
	// one body is larger. While it answers, a replica reads and writes nothing else.
	MaxCopies   = jsapi.MaxDirect
	CopiesBytes = 1 << 20
	// headerRoom is the room for the headers of one timer in an answer: the server bounds headers.
	headerRoom = 64 << 10
)

// ErrNoCopies is returned when replicas are not asked, because they did not answer a recent request.
var ErrNoCopies = errors.New("the replicas of the timers' stream do not answer")

// ReadCopies reads the last entries of some subjects from a replica. The result lacks entries that the replica lacks,
// or that do not fit into one answer. With an error, the entries in the result are valid.
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

// noteCopies notes whether replicas answer.
func (s *Stream) noteCopies(err error) {
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && s.Copies.Conn.IsConnected() {
		s.leaderOnly.Store(time.Now().Add(copiesRetry).UnixNano())
	}
}

// asksReplicas reports whether replicas may be asked at a local time.
func (s *Stream) asksReplicas(local time.Time) bool {
	return s.Copies.Conn != nil && local.UnixNano() >= s.leaderOnly.Load()
}

// Copied notes the last entry of a marker's subject, as a replica has it, and decides the next step. A replica may lag,
// so only facts that cannot change count: the body of the generation, since the firing will expect the generation to be
// the last entry, and a cancel that replaced it. For all else, the leader is asked.
func (s *Stream) Copied(a *Alarm, in message.Incoming) (entry.Entry, Step) {
	a.fresh = false
	e := entry.Parse(s.Policy, in)
	switch {
	case in.Sequence == a.Generation && in.At.Equal(a.At) && e.Kind == entry.Set:
		a.Stage, a.unread = Pending, false
		return e, Step{Kind: Restart}
	case in.Sequence > a.Generation && in.At.After(a.At) && e.Kind == entry.Cancel && e.Cancelled == a.Generation:
		return e, Step{Kind: LetGo}
	}
	return e, Step{Kind: Examine}
}

// KnowsBefore notes whether this process has settled the rounds before one, and reports it.
func (s *Stream) KnowsBefore(a *Alarm) bool {
	settled, alone := s.settled.Before(a.Generation, a.before)
	if settled && a.Later {
		a.BeforeSettled(alone)
	}
	return settled
}

// Removed notes that the entry of a round was removed, and whether no entry stays before the next round's.
func (s *Stream) Removed(a *Alarm, alone bool) {
	if a.next != 0 {
		s.settled.Note(a.Generation, a.At, a.next, alone)
	}
}
