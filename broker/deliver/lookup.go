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
	snapshotValidity = 5 * time.Second
	snapshotRenewAge = snapshotValidity / 2 // from this age of the snapshot on, validSnapshot requests a new list
	listTimeout      = 2 * snapshotValidity // for one page of a list; a cluster collects a page for at most 4 s
	listPause        = time.Second / 4      // minimum time from the end of one list to the start of the next
)

// lookup finds the stream of the account that listens on a subject. It lists all streams only after a call of renew. A
// lookup is safe for concurrent use.
type lookup struct {
	api        jsapi.Asker
	log        *ratelog.Logger
	ours       func(stream string) bool // see Config.Ours
	subjects   *subjectLookup
	listSignal chan struct{}            // capacity 1; has a value if renew requested a list
	snapshot   atomic.Pointer[snapshot] // the latest; nil before the first list
}

func newLookup(api jsapi.Asker, ours func(stream string) bool, log *slog.Logger) *lookup {
	return &lookup{
		api: api, ours: ours, log: ratelog.New(log), subjects: newSubjectLookup(), listSignal: make(chan struct{}, 1),
	}
}

// listenerKind is the kind of stream that listens on a subject.
type listenerKind uint8

const (
	kindUnknown listenerKind = iota // no valid list or lookup has shown the kind
	kindNone                        // no listed stream listens
	kindNoAck                       // a stream listens that does not acknowledge
	kindAcks                        // a stream listens that acknowledges, or is assumed to
)

// validSnapshot returns the latest snapshot, or nil if there is none or if its age has reached snapshotValidity. It
// requests a new list if there is no snapshot, or if the age has reached snapshotRenewAge.
func (l *lookup) validSnapshot(now time.Time) *snapshot {
	s := l.snapshot.Load()
	if s == nil {
		l.renew()
		return nil
	}
	age := now.Sub(s.at)
	if age >= snapshotRenewAge {
		l.renew()
	}
	if age >= snapshotValidity {
		return nil
	}
	return s
}

// renew requests a new list of the streams. Run ignores the request if the latest snapshot is younger than
// snapshotRenewAge.
func (l *lookup) renew() { signal(l.listSignal) }

// listenerKind returns the kind of stream that listens on a subject. If the kind is unknown, listenerKind requests a
// list or a lookup of the subject, so that a later call may know the kind.
func (l *lookup) listenerKind(subject string, now time.Time) listenerKind {
	s := l.validSnapshot(now)
	if s == nil {
		return kindUnknown
	}
	switch ln := s.listener(subject); {
	case ln != nil && ln.acks:
		return kindAcks
	case ln != nil:
		return kindNoAck
	case len(s.undescribedStreams) > 0:
		return l.subjects.listenerKind(subject)
	}
	return kindNone
}

// listener returns the stream that listens on a subject according to the latest snapshot, or nil if there is none.
// Without a snapshot younger than snapshotValidity, it returns nil. It requests no list.
func (l *lookup) listener(subject string, now time.Time) *listener {
	if s := l.snapshot.Load(); s != nil && now.Sub(s.at) < snapshotValidity {
		return s.listener(subject)
	}
	return nil
}

func (l *lookup) run(ctx context.Context) {
	var asking sync.WaitGroup
	asking.Go(func() { l.subjects.run(ctx, l) })
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.listSignal:
		}
		if s := l.snapshot.Load(); s != nil && time.Since(s.at) < snapshotRenewAge {
			continue // the last list has already answered the request
		}
		s, err := l.list(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Log(slog.LevelWarn, "cannot list the streams, so silence does not count as a delivery in mode auto; "+
				"grant STREAM.LIST if it is forbidden, or deliver to core subscribers in mode core", "err", err)
		default:
			if len(s.undescribedStreams) > 0 {
				l.log.Log(slog.LevelWarn, "the subjects of some streams without a leader are unknown, "+
					"so the broker looks up each silent target; "+
					"repair these streams, or deliver to core subscribers in mode core", "streams", s.undescribedStreams)
			}
			l.snapshot.Store(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listPause):
		}
	}
}

func (l *lookup) list(ctx context.Context, now time.Time) (*snapshot, error) {
	listed, leaderless, err := jsapi.List(ctx, l, func(d description) string { return d.Config.Name })
	if err != nil {
		return nil, err
	}
	return newSnapshot(now, listed, leaderless, l.snapshot.Load(), l.ours), nil
}

// Ask sends one request with the timeout listTimeout. The method makes a lookup a jsapi.Asker.
func (l *lookup) Ask(ctx context.Context, subject string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return l.api.Ask(ctx, subject, request, answer)
}
