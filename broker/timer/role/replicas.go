package role

import (
	"context"
	"errors"
	"math"
	"sync"
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
	// After a failed request, no request to a replica is sent for minCopiesBackoff. Each further failure doubles that
	// backoff, up to maxCopiesBackoff, until a replica answers. The first backoff is short: while thousands of timers
	// fire, a server answers late, and reads from the leader are slower still.
	minCopiesBackoff = time.Second
	maxCopiesBackoff = time.Minute

	// MaxCopies is the maximum number of timers in one request. CopiesBytes is the maximum total size of their bodies,
	// unless there is only one body. While a replica answers such a request, it serves no other request of the stream.
	MaxCopies   = jsapi.MaxDirect
	CopiesBytes = 1 << 20
	// headerRoom is the server's limit for the headers of one message.
	headerRoom = 64 << 10
)

// ErrNoCopies is returned by ReadCopies if it sends no request: see CopiesBackoff.
var ErrNoCopies = errors.New("the replicas of the timers' stream do not answer")

// copiesBackoff is the backoff after a replica has not answered. It is safe for concurrent use. All times are local.
type copiesBackoff struct {
	mu     sync.Mutex
	length time.Duration // of the last backoff; zero before a failure, and after an answer
	until  time.Time     // the end of the last backoff
}

// askReplica sends a request to a replica, with copiesTimeout. During a backoff, it returns ErrNoCopies instead.
func (s *Stream) askReplica(ctx context.Context, ask func(context.Context) error) error {
	sent := time.Now()
	if backoff, _ := s.CopiesBackoff(sent); backoff > 0 {
		return ErrNoCopies
	}
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	err := ask(ctx)
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		s.copiesBackoff.end()
	} else {
		s.copiesBackoff.begin(sent, time.Now(), s.Copies.Conn.IsConnected())
	}
	return err
}

// CopiesBackoff returns how long, from the time local, replicas get no more requests. Failing reports whether no
// replica has answered since the last failed request. If the broker never asks replicas, the backoff does not end, and
// failing is true.
func (s *Stream) CopiesBackoff(local time.Time) (remaining time.Duration, failing bool) {
	if s.Copies.Conn == nil {
		return math.MaxInt64, true
	}
	p := &s.copiesBackoff
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until.Sub(local)), p.length > 0
}

// end ends the backoff: a replica has answered. The next backoff is minCopiesBackoff again.
func (p *copiesBackoff) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.length, p.until = 0, time.Time{}
}

// begin begins a backoff after a failed request. Sent is the time of the request, now the time of the failure. If
// several concurrent requests fail, only the first failure begins a backoff. If the connection is lost, the backoff is
// minCopiesBackoff: the replicas may be healthy.
func (p *copiesBackoff) begin(sent, now time.Time, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent.Before(p.until) {
		return
	}
	if !connected {
		p.length = 0
	}
	p.length = min(max(2*p.length, minCopiesBackoff), maxCopiesBackoff)
	p.until = now.Add(p.length)
}

// ReadCopies reads the last entry of each subject from a replica. The result lacks entries that the replica does not
// have, or that do not fit into one answer. After an error, the result may have some entries; they are valid.
func (s *Stream) ReadCopies(ctx context.Context, subjects []string) (map[string]Event, error) {
	copies := make(map[string]Event, len(subjects))
	err := s.askReplica(ctx, func(ctx context.Context) error {
		entries, err := s.Copies.LastOfEach(ctx, s.Name(), subjects, CopiesBytes+len(subjects)*headerRoom)
		for _, in := range entries {
			copies[in.Subject] = copied(in)
		}
		return err
	})
	return copies, err
}

// copied is a replica's copy of the last entry of a marker's subject. A replica may lag, so only two kinds of copies
// count. The first is the generation's own entry: its body cannot change, and the stream accepts the firing only if
// that entry is still the last one. The second is a cancel of the generation. After any other copy, the next step is a
// read from the leader.
type copied message.Incoming

func (in copied) record(a *Alarm, s Situation) Step {
	e := entry.Parse(a.lane.Policy, message.Incoming(in))
	switch {
	case in.Sequence == a.Generation && in.At.Equal(a.At) && e.Kind == entry.Set:
		return Step{Kind: Restart, Content: a.restart(e, in.Data, s)}
	case in.Sequence > a.Generation && in.At.After(a.At) && e.Kind == entry.Cancel && e.Cancelled == a.Generation:
		return Step{Kind: Drop}
	}
	a.AskLeader()
	return Step{Kind: Read}
}
