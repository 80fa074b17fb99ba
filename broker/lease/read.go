package lease

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/ratelog"
)

// read reads the table and the counters of its instances. Fresh is true if the server has just shown this instance's
// own beat, and so does not lag.
func (s *Shared) read(ctx context.Context, fresh bool) error {
	if err := s.readTable(ctx, fresh); err != nil {
		return err
	}
	for _, id := range s.otherMembers(s.view.table) {
		m, ours, err := s.store.lastMessage(ctx, s.store.Beat+id)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		counter, err := strconv.ParseUint(string(m.Data), 10, 64)
		if !ours || err != nil {
			s.ask(time.Now()) // another message hides the counter; a live instance answers the call
			continue
		}
		s.view.liveness.record(id, counter, false, time.Now())
	}
	return nil
}

// readTable reads the table. If the stored message is not a table, has no valid seal, or is an old table, readTable
// uses only the sequence of the message, which the next write must name. The last good table stays the current one.
func (s *Shared) readTable(ctx context.Context, fresh bool) error {
	m, ours, err := s.store.lastMessage(ctx, s.store.Table)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		s.view.sequence, s.view.needsRewrite = 0, s.view.hasTable // not written yet, or purged
		return nil
	case err != nil:
		return err
	case m.Sequence == s.view.sequence:
		return nil
	case m.Sequence < s.view.sequence && !fresh:
		return nil // a server that lags has answered
	case m.Sequence < s.view.sequence:
		s.resetSequences()
	}
	s.view.sequence = m.Sequence
	t, err := ParseTable(m.Data)
	if !ours || err != nil || s.view.hasTable && !t.supersedes(s.view.table) {
		s.view.needsRewrite = s.view.hasTable
		s.logRejected(m.Sequence, ours, err)
		return nil
	}
	lost := false
	if s.view.hasTable {
		t, lost = t.merge(s.view.table)
	}
	s.view.hasTable, s.view.needsRewrite = true, lost // lost claims are written back
	s.adopt(t, time.Now())
	return nil
}

// logRejected logs that readTable has not accepted the stored message, at most once per ratelog.Interval.
func (s *Shared) logRejected(sequence uint64, sealed bool, err error) {
	if _, ok := s.logState.table.Allow(ratelog.Interval); ok {
		s.log.Warn("the stored table of lanes is invalid or outdated; this instance keeps its own table, or creates one. "+
			"Probably a client, or a broker with another secret, stored the bad table",
			"stream", s.store.Stream, "sequence", sequence, "sealed", sealed, "err", err)
	}
}

// resetSequences resets the sequences after the stream was created again, or restored. The table stays valid.
func (s *Shared) resetSequences() {
	s.view.sequence, s.view.needsRewrite, s.view.rewritten = 0, s.view.hasTable, true
	s.view.table.Replaces = 0
}

// adopt makes a stored table the current one.
func (s *Shared) adopt(t Table, now time.Time) {
	if !slices.Equal(t.members(), s.view.table.members()) {
		s.view.membersChanged = now
	}
	for id := range s.view.table.Instances {
		if _, stays := t.Instances[id]; !stays && id != s.self.id {
			s.rounds.sweepSequence, s.rounds.sweepAt = 0, now.Add(sweepDelay)
		}
	}
	maps.DeleteFunc(s.view.liveness.sightings, func(id string, _ sighting) bool {
		_, ok := t.Instances[id]
		return !ok
	})
	s.view.table = t
	owners := make(map[string]string, len(t.Lanes))
	for lane, c := range t.Lanes {
		owners[lane] = c.Instance
	}
	s.mu.Lock()
	s.state.owners = owners
	s.mu.Unlock()
}
