package deliver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	lookupFresh   = 5 * time.Second // how long a look-up is believed
	lookupTimeout = 2 * time.Second
	lookupQueue   = 1024 // subjects waiting to be looked up; more ask again later
	lookupWorkers = 16   // look-ups at once
	lookupsKept   = 1 << 16
	complainEvery = 10 * time.Second
)

// Lookup is the part of JetStream that finds the stream of a subject.
type Lookup interface {
	StreamNameBySubject(ctx context.Context, subject string) (string, error)
	Stream(ctx context.Context, name string) (jetstream.Stream, error)
}

// streams remembers for a while which subjects lie in a stream.
type streams struct {
	lookup Lookup
	log    *slog.Logger
	wanted chan string

	mu         sync.Mutex
	found      map[string]*found
	complained time.Time
}

// found is the result of a look-up.
type found struct {
	name  string // empty: no stream of this account listens on the subject
	noAck bool
	at    time.Time
}

func newStreams(lookup Lookup, log *slog.Logger) *streams {
	return &streams{lookup: lookup, log: log, wanted: make(chan string, lookupQueue), found: make(map[string]*found)}
}

// cached is what was found lately, or nil.
func (s *streams) cached(subject string) *found {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.found[subject]; f != nil && time.Since(f.at) < lookupFresh {
		return f
	}
	return nil
}

// known is what was found lately; otherwise it asks for a look-up and returns nil.
func (s *streams) known(subject string) *found {
	f := s.cached(subject)
	if f == nil {
		select {
		case s.wanted <- subject:
		default: // enough are waiting
		}
	}
	return f
}

// run looks subjects up until ctx ends.
func (s *streams) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range lookupWorkers {
		workers.Go(func() { s.work(ctx) })
	}
	workers.Wait()
}

func (s *streams) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-s.wanted:
			if s.cached(subject) != nil {
				continue // asked for twice
			}
			f, err := s.find(ctx, subject)
			if err != nil {
				// The deliveries go on waiting, and count as not answered when their time is up.
				s.complain(subject, err)
				continue
			}
			s.keep(subject, f)
		}
	}
}

// keep remembers what was found, and forgets what is stale where there is too much.
func (s *streams) keep(subject string, f *found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.found) >= lookupsKept {
		maps.DeleteFunc(s.found, func(_ string, old *found) bool { return f.at.Sub(old.at) >= lookupFresh })
		if len(s.found) >= lookupsKept/2 { // or each further one would search them all
			clear(s.found)
		}
	}
	s.found[subject] = f
}

// complain says now and then that look-ups fail: core subscribers then get copies, until their messages are dead letters.
func (s *streams) complain(subject string, err error) {
	s.mu.Lock()
	quiet := time.Since(s.complained) < complainEvery
	if !quiet {
		s.complained = time.Now()
	}
	s.mu.Unlock()
	if !quiet {
		s.log.Warn("cannot look up which stream holds a target; grant STREAM.NAMES, or deliver in mode core", "target", subject, "err", err)
	}
}

func (s *streams) find(ctx context.Context, subject string) (*found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	name, err := s.lookup.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &found{at: time.Now()}, nil
	}
	if err != nil {
		return nil, err
	}
	stream, err := s.lookup.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return &found{name: name, noAck: stream.CachedInfo().Config.NoAck, at: time.Now()}, nil
}
