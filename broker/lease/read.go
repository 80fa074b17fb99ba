package lease

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/ratelog"
)

// read takes in the table and the counters of those who are in it. Each is asked for by name: whatever else somebody had
// put into the stream costs nothing. Fresh means that whoever answers has just shown our own beat.
func (s *Shared) read(ctx context.Context, fresh bool) error {
	if err := s.readTable(ctx, fresh); err != nil {
		return err
	}
	for _, id := range s.others(s.table) {
		m, ours, err := s.bucket.last(ctx, s.bucket.Beat+id)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		counter, err := strconv.ParseUint(string(m.Data), 10, 64)
		if !ours || err != nil {
			s.ask(time.Now()) // something hides the counter: who lives says so
			continue
		}
		s.roster.saw(id, counter, false, time.Now())
	}
	return nil
}

// readTable takes in what is stored as the table. Of what is none, or an old one, it takes only the sequence, which the
// next to write replaces: the last good table goes on being the table.
func (s *Shared) readTable(ctx context.Context, fresh bool) error {
	m, ours, err := s.bucket.last(ctx, s.bucket.Table)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		s.last, s.garbled = 0, s.known // purged
		return nil
	case err != nil:
		return err
	case m.Sequence == s.last:
		return nil
	case m.Sequence < s.last && !fresh:
		return nil // yesterday's
	case m.Sequence < s.last:
		s.otherStream()
	}
	s.last = m.Sequence
	t, err := ParseTable(m.Data)
	if ours && s.bucket.seal == nil && err == nil && t.Version == 0 {
		t.Version, t.Replaces = s.table.Version+1, s.table.Replaces // written by an older broker
	}
	if !ours || err != nil || s.known && !t.supersedes(s.table) {
		s.garbled = s.known
		s.reject(m.Sequence, ours, err)
		return nil
	}
	s.known, s.garbled = true, false
	s.adopt(t, time.Now())
	return nil
}

// reject says, not too often, that what is stored as the table is none.
func (s *Shared) reject(sequence uint64, sealed bool, err error) {
	if _, ok := s.rejected.Allow(ratelog.Every); ok {
		s.log.Warn("what is stored as the table of lanes is none that can be believed: the last good one is written back. A broker with "+
			"another secret, or a client, has it put there", "stream", s.bucket.Stream, "sequence", sequence, "sealed", sealed, "err", err)
	}
}

// otherStream begins anew with the sequences, which are those of a stream made anew, or from a backup. What the table says
// holds on.
func (s *Shared) otherStream() {
	s.last, s.garbled, s.rewritten = 0, s.known, true
	s.table.Replaces = 0
}

// adopt takes over a table that is stored.
func (s *Shared) adopt(t Table, now time.Time) {
	if !slices.Equal(t.members(), s.table.members()) {
		s.stable = now
	}
	for id := range s.table.Instances {
		if _, stays := t.Instances[id]; !stays && id != s.id {
			s.sweepBelow, s.sweepAt = 0, now.Add(sweepAfter)
		}
	}
	for id := range s.roster.seen {
		if _, there := t.Instances[id]; !there {
			s.roster.forget(id)
		}
	}
	s.table = t
	owned := make(map[string]string, len(t.Lanes))
	for lane, c := range t.Lanes {
		owned[lane] = c.Instance
	}
	s.mu.Lock()
	s.owners = owned
	s.mu.Unlock()
}
