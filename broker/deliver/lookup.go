package deliver

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/ratelog"
)

const (
	snapshotFresh = 5 * time.Second   // the time for which a snapshot is valid
	snapshotRenew = snapshotFresh / 2 // a use of a snapshot of at least this age requests a new list
	listTimeout   = 2 * snapshotFresh // of one page, which a cluster collects from all leaders for at most four seconds
	listPause     = time.Second / 4   // minimum time between two lists
)

// lookup finds the streams of the account that listen on a subject. It lists all streams only when a subject is looked
// up and the last list is old. A lookup is safe for concurrent use.
type lookup struct {
	api        jsapi.Asker
	log        *ratelog.Logger
	ours       func(stream string) bool // reports the broker's own streams, which listen on no targets; may be nil
	subjects   *subjects
	listWanted chan struct{}            // capacity 1; has a value if the streams should be listed
	latest     atomic.Pointer[snapshot] // nil before the first list
}

func newLookup(api jsapi.Asker, ours func(stream string) bool, log *slog.Logger) *lookup {
	return &lookup{
		api: api, ours: ours, log: ratelog.New(log), subjects: newSubjects(), listWanted: make(chan struct{}, 1),
	}
}

// listener is the kind of stream that listens on a subject.
type listener uint8

const (
	listenerUnknown listener = iota // no valid list or lookup has shown the kind
	listenerNone                    // no stream of this account listens
	listenerNoAck                   // a stream listens that does not acknowledge
	listenerAcks                    // a stream listens that acknowledges
)

// fresh returns the latest snapshot, or nil if there is none or if it is too old. It requests a new list if there is no
// snapshot, or if the snapshot has reached the age snapshotRenew.
func (l *lookup) fresh(now time.Time) *snapshot {
	s := l.latest.Load()
	if s == nil {
		l.renew()
		return nil
	}
	age := now.Sub(s.at)
	if age >= snapshotRenew {
		l.renew()
	}
	if age >= snapshotFresh {
		return nil
	}
	return s
}

// renew requests a new list of the streams.
func (l *lookup) renew() {
	select {
	case l.listWanted <- struct{}{}:
	default:
	}
}

// listenerOn returns the kind of stream that listens on a subject. If the kind is unknown, listenerOn requests a list
// or a lookup of the subject, so that a later call returns the kind.
func (l *lookup) listenerOn(subject string, now time.Time) listener {
	s := l.fresh(now)
	if s == nil {
		return listenerUnknown
	}
	switch h := s.holder(subject); {
	case h != nil && h.acks:
		return listenerAcks
	case h != nil:
		return listenerNoAck
	case len(s.undescribed) > 0:
		return l.subjects.listenerOn(subject)
	}
	return listenerNone
}

// holder returns the stream that listens on a subject, by the latest snapshot, or nil. It returns nil if the snapshot
// is too old, and requests no list.
func (l *lookup) holder(subject string, now time.Time) *holder {
	if s := l.latest.Load(); s != nil && now.Sub(s.at) < snapshotFresh {
		return s.holder(subject)
	}
	return nil
}

// run lists the streams, and looks up single subjects, whenever a list or a subject is requested, until ctx ends.
func (l *lookup) run(ctx context.Context) {
	var asking sync.WaitGroup
	asking.Go(func() { l.subjects.run(ctx, l) })
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.listWanted:
		}
		if s := l.latest.Load(); s != nil && time.Since(s.at) < snapshotRenew {
			continue // the last list has already answered the request
		}
		s, err := l.list(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The deliveries continue to wait, and count as unanswered after their timeout.
			l.log.Log(slog.LevelWarn, "cannot list the streams, so no silence of core subscribers counts as a delivery; "+
				"grant STREAM.LIST, or deliver in mode core", "err", err)
		default:
			if len(s.undescribed) > 0 {
				l.log.Log(slog.LevelWarn, "some streams have no leader, so the broker looks up each target separately; "+
					"repair these streams, or deliver in mode core", "streams", s.undescribed)
			}
			l.latest.Store(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listPause):
		}
	}
}

// list requests all streams and returns a snapshot of them.
func (l *lookup) list(ctx context.Context, now time.Time) (*snapshot, error) {
	all, leaderless, err := jsapi.List(ctx, l, func(d description) string { return d.Config.Name })
	if err != nil {
		return nil, err
	}
	return newSnapshot(now, all, leaderless, l.latest.Load(), l.ours), nil
}

// Ask sends one request with the timeout listTimeout. So a lookup is a jsapi.Asker.
func (l *lookup) Ask(ctx context.Context, subject string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return l.api.Ask(ctx, subject, request, answer)
}
