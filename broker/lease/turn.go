package lease

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/ratelog"
)

const (
	// roundPause keeps those who call all the time from costing more than this.
	roundPause = 2 * time.Millisecond
	// lookEvery is how often counters are looked at: the sooner a beat is seen, the sooner its absence is.
	lookEvery = beatEvery / 2
	// retryEvery is how soon a round that failed is tried again.
	retryEvery = 250 * time.Millisecond
	// offlineEvery is how often to look for a connection whose return was not announced.
	offlineEvery = 5 * time.Second
	// glanceEvery is how often an instance that is alone looks whether it still is, with one question: a call does not
	// cross a link that is down, however well its own connection is.
	glanceEvery = 10 * time.Second
	// forgetAfter is how long what others said is remembered.
	forgetAfter = time.Minute
	// alertEvery is how often the log says that the bucket cannot be used.
	alertEvery = time.Minute
)

// turn does what is to be done now, and returns when to come again at the latest.
func (s *Shared) turn(ctx context.Context, asked bool) time.Duration {
	now := time.Now()
	s.pending = s.pending || asked
	s.listen(now)
	if st := s.standing.Load(); !s.pending && st != nil && st.alone && st.good(s.at(now), s.bucket.conn.IsConnected()) {
		s.standing.Store(&standing{since: s.at(now), alone: true})
		switch changed, err := s.glance(ctx, now); {
		case err != nil:
			s.pending = true
			s.failed(ctx, now, err)
			return s.again(ctx, err)
		case !changed:
			return signEvery
		}
	}
	if soon := s.begun.Add(roundPause).Sub(now); soon > 0 {
		return soon
	}
	if !s.bucket.conn.IsConnected() {
		s.roster.failed()
		s.failing = time.Time{} // nobody is heard, and nothing can be delivered
		return offlineEvery     // or when the connection is back
	}
	var err error
	if before := s.last; s.look.After(now) && !s.pending {
		err = s.read(ctx, false)
		s.pending = s.last != before
		s.begun = now
	} else {
		s.pending = false
		err = s.round(ctx, now)
	}
	if err != nil {
		s.pending = true
		return s.again(ctx, err)
	}
	if s.pending {
		return roundPause
	}
	s.agreed()
	if st := s.standing.Load(); st != nil && st.alone {
		return signEvery
	}
	return min(lookEvery, max(time.Until(s.look), 0))
}

// again says when to try again after an error.
func (s *Shared) again(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	s.disagreed(err)
	if isFull(err) {
		return beatEvery // it was answered; there is no hurry
	}
	return retryEvery
}

// glance is how an instance that is alone sees, once in a while, whether the table is another.
func (s *Shared) glance(ctx context.Context, now time.Time) (changed bool, err error) {
	if now.Sub(s.glanced) < glanceEvery {
		return false, nil
	}
	m, _, err := s.bucket.last(ctx, s.bucket.Table)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // purged
	case err != nil:
		return false, err
	}
	s.glanced = now
	return m.Sequence != s.last, nil
}

// agreed says, after the log said otherwise, that rounds succeed again.
func (s *Shared) agreed() {
	if s.disagreement.Reset() {
		s.log.Info("instances can agree again", "after", time.Since(s.disagreeing).Round(time.Millisecond))
	}
	s.disagreeing = time.Time{}
}

// disagreed logs why rounds fail: every ten seconds, and every minute once they have failed for longer than that.
func (s *Shared) disagreed(err error) {
	now := time.Now()
	if s.disagreeing.IsZero() {
		s.disagreeing = now
	}
	every := ratelog.Every
	if now.Sub(s.disagreeing) > alertEvery {
		every = alertEvery
	}
	if _, ok := s.disagreement.Allow(every); ok {
		s.log.Warn("instances cannot agree who owns what; trying again", "err", err, "since", s.disagreeing.UTC())
	}
}
