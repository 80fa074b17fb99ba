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
	snapshotFresh = 5 * time.Second   // how long a snapshot is believed
	snapshotRenew = snapshotFresh / 2 // from this age on, a question has the streams listed again
	listTimeout   = 2 * snapshotFresh // of one page: a cluster collects it from all leaders, for up to four seconds
	listPause     = time.Second / 4   // between two lists, however often they are asked for
)

// lookup knows which streams of the account listen on a subject. The streams are listed all at once, when somebody asks
// about any subject. So an idle deliverer lists nothing. It is safe for concurrent use.
type lookup struct {
	api    jsapi.Asker
	log    *ratelog.Logger
	ours   func(stream string) bool // tells the broker's own streams, which hold no targets; nil knows none
	blanks *blanks
	wanted chan struct{} // one slot: the streams should be listed
	latest atomic.Pointer[snapshot]
}

func newLookup(api jsapi.Asker, ours func(stream string) bool, log *slog.Logger) *lookup {
	return &lookup{api: api, ours: ours, log: ratelog.New(log), blanks: newBlanks(), wanted: make(chan struct{}, 1)}
}

// listener is what is known of the streams on a subject.
type listener uint8

const (
	notKnown listener = iota // not listed yet, or nobody could tell
	nobody                   // no stream of this account listens
	mute                     // a stream listens that does not acknowledge
	answerer                 // a stream listens that acknowledges
)

// fresh returns a snapshot that may be believed, or nil. Unless the snapshot is new, a new one is asked for.
func (l *lookup) fresh() *snapshot {
	s := l.latest.Load()
	if s == nil {
		l.renew()
		return nil
	}
	age := time.Since(s.at)
	if age >= snapshotRenew {
		l.renew()
	}
	if age >= snapshotFresh {
		return nil
	}
	return s
}

// renew has the streams listed again.
func (l *lookup) renew() {
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// on returns what is known of the streams on a subject. What is not known is looked up, for the next time.
func (l *lookup) on(subject string) listener {
	s := l.fresh()
	if s == nil {
		return notKnown
	}
	switch h := s.holder(subject); {
	case h != nil && h.acks:
		return answerer
	case h != nil:
		return mute
	case len(s.blank) > 0:
		return l.blanks.on(subject)
	}
	return nobody
}

// holder returns the stream that a fresh snapshot shows on a subject, or nil. It has nothing looked up.
func (l *lookup) holder(subject string) *holder {
	if s := l.latest.Load(); s != nil && time.Since(s.at) < snapshotFresh {
		return s.holder(subject)
	}
	return nil
}

// run lists the streams, and asks for the subjects of blanks, whenever that is wanted, until ctx ends.
func (l *lookup) run(ctx context.Context) {
	var asking sync.WaitGroup
	asking.Go(func() { l.blanks.run(ctx, l) })
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wanted:
		}
		if s := l.latest.Load(); s != nil && time.Since(s.at) < snapshotRenew {
			continue // it was wanted twice
		}
		s, err := l.list(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The deliveries wait on, and count as not answered when their time is up.
			l.log.Log(slog.LevelWarn, "cannot list the streams, so no silence of core subscribers is believed; "+
				"grant STREAM.LIST, or deliver in mode core", "err", err)
		default:
			if len(s.blank) > 0 {
				l.log.Log(slog.LevelWarn, "streams are there that no leader describes, "+
					"so each target is asked for by itself; mend them, or deliver in mode core", "streams", s.blank)
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

// list makes a snapshot.
func (l *lookup) list(ctx context.Context, now time.Time) (*snapshot, error) {
	all, away, err := jsapi.List(ctx, l, func(d description) string { return d.Config.Name })
	if err != nil {
		return nil, err
	}
	return newSnapshot(now, all, away, l.latest.Load(), l.ours), nil
}

// Ask asks one question, for no longer than listTimeout.
func (l *lookup) Ask(ctx context.Context, subject string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return l.api.Ask(ctx, subject, request, answer)
}
