package role

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

const (
	// copiesTimeout is the timeout of a request to a replica. It is less than readAhead, so that the leader can be asked
	// before the due time.
	copiesTimeout = 2 * time.Second
	// After a request without an answer, replicas are not asked for minCopiesPause. Each further one doubles that pause,
	// up to maxCopiesPause, until a replica answers. The first pause is short: while thousands of timers fire, a server
	// answers late, and reads from the leader are slower still.
	minCopiesPause = time.Second
	maxCopiesPause = time.Minute
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
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	found, err := s.Copies.LastOfEach(ctx, s.Name(), subjects, CopiesBytes+len(subjects)*headerRoom)
	s.noteCopies(err, asked, time.Now())
	copies := make(map[string]message.Incoming, len(found))
	for _, in := range found {
		copies[in.Subject] = in
	}
	return copies, err
}

// noteCopies begins a pause if err shows that a replica does not answer. Each pause without an answer since the last
// one is twice as long. An answer ends the pause. If several requests of the same time fail, the first of them begins
// the pause. Asked is the time of the request. Both times are local.
func (s *Stream) noteCopies(err error, asked, now time.Time) {
	p := &s.copiesPause
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, jetstream.ErrMsgNotFound):
		p.length, p.until = 0, time.Time{}
	case asked.Before(p.until):
	case !s.Copies.Conn.IsConnected():
		p.length = minCopiesPause
		p.until = now.Add(p.length)
	default:
		p.length = min(max(2*p.length, minCopiesPause), maxCopiesPause)
		p.until = now.Add(p.length)
	}
}

// CopiesPause returns the rest of the pause in which replicas get no request, at a local time. If the broker never asks
// replicas, the pause does not end. Failing reports whether no replica has answered since the last failed request.
func (s *Stream) CopiesPause(local time.Time) (left time.Duration, failing bool) {
	if s.Copies.Conn == nil {
		return math.MaxInt64, true
	}
	p := &s.copiesPause
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until.Sub(local)), p.length > 0
}

// asksReplicas reports whether replicas may be asked at a local time.
func (s *Stream) asksReplicas(local time.Time) bool {
	left, _ := s.CopiesPause(local)
	return left == 0
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
