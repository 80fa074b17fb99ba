package role

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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
)

// ErrNoCopies is returned by ReadCopies, without a request, if the replicas did not answer a recent request.
var ErrNoCopies = errors.New("the replicas of the timers' stream do not answer")

// copiesPause is the pause after a replica has not answered. It is safe for concurrent use. All times are local.
type copiesPause struct {
	mu     sync.Mutex
	length time.Duration // of the last pause; zero after an answer
	until  time.Time
}

// askReplica sends a request to a replica, with a timeout. During a pause it returns ErrNoCopies without a request.
func (s *Stream) askReplica(ctx context.Context, ask func(context.Context) error) error {
	asked := time.Now()
	if pause, _ := s.CopiesPause(asked); pause > 0 {
		return ErrNoCopies
	}
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	err := ask(ctx)
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		s.copiesPause.end()
	} else {
		s.copiesPause.begin(asked, time.Now(), s.Copies.Conn.IsConnected())
	}
	return err
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

// end ends the pause: a replica has answered. The next pause is short.
func (p *copiesPause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.length, p.until = 0, time.Time{}
}

// begin begins a pause, because a request that was sent at asked had no answer at now. If several requests of the same
// time fail, only the first of them begins a pause. A lost connection does not make the pause longer: the replicas may
// be well.
func (p *copiesPause) begin(asked, now time.Time, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked.Before(p.until) {
		return
	}
	if !connected {
		p.length = 0
	}
	p.length = min(max(2*p.length, minCopiesPause), maxCopiesPause)
	p.until = now.Add(p.length)
}
