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
	// copiesTimeout is how long replicas may take to answer, and copiesRetry how long they are not asked after they have
	// not.
	copiesTimeout = time.Second
	copiesRetry   = time.Minute
	// MaxCopies is the number of timers that are read in one request at most, and CopiesBytes that of their bodies' bytes,
	// unless one is larger. A replica reads and writes nothing else meanwhile.
	MaxCopies   = jsapi.MaxDirect
	CopiesBytes = 1 << 20
	// headerRoom is what a replica may send besides the bodies, for each timer: headers are bounded by the server.
	headerRoom = 64 << 10
)

// ErrNoCopies is returned where replicas are not asked, because they have not answered lately.
var ErrNoCopies = errors.New("the replicas of the timers' stream do not answer")

// ReadCopies reads the last entries of some subjects, as a replica has them. Entries that a replica lacks, or that do
// not fit into one answer, are missing. Where it fails, some may have been read: they are good.
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

// asksReplicas reports whether replicas are asked at a local time.
func (s *Stream) asksReplicas(local time.Time) bool {
	return s.Copies.Conn != nil && local.UnixNano() >= s.leaderOnly.Load()
}

// Copied notes the last entry of a marker's subject, as a replica has it, and decides what comes next. A replica may
// lag, so of what it has counts only what stays true: the body of the generation, as the firing will expect that to be
// the last entry, and a cancel that was stored in place of it. All else is left to the leader.
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

// KnowsBefore notes what this process knows of the rounds before one, and reports whether that is enough: they are
// settled.
func (s *Stream) KnowsBefore(a *Alarm) bool {
	settled, alone := s.settled.Before(a.Generation, a.before)
	if settled && a.Later {
		a.BeforeSettled(alone)
	}
	return settled
}

// Removed notes that the entry of a round was removed, and whether nothing stays before the next one.
func (s *Stream) Removed(a *Alarm, alone bool) {
	if a.next != 0 {
		s.settled.Note(a.Generation, a.At, a.next, alone)
	}
}
