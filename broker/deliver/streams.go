package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

const (
	pictureFresh  = 5 * time.Second  // how long what was listed is believed
	pictureRenew  = pictureFresh / 2 // when it is listed anew, if anybody asks
	listTimeout   = 2 * pictureFresh // of one page: a cluster collects it from all leaders, for up to four seconds
	listPause     = time.Second / 4  // between two lists, however much is asked
	complainEvery = 10 * time.Second
)

var errChanged = errors.New("streams came or went while they were listed")

// API is the part of the JetStream API that lists streams: see jsapi.Client.
type API interface {
	Ask(ctx context.Context, subject string, request, answer any) error
}

// streams knows which subjects the streams of the account listen on. They are listed when somebody needs to know, however
// many subjects he asks about, so an idle deliverer lists nothing.
type streams struct {
	api    API
	log    *slog.Logger
	ours   func(stream string) bool // the broker's own, which hold no targets; nil knows none
	blanks *blanks
	wanted chan struct{} // one slot
	now    atomic.Pointer[picture]

	complained time.Time // belongs to run
}

// picture is what the streams of the account were at some time.
type picture struct {
	at      time.Time // when they were asked for
	filters filters
	known   map[string]listed // by name, those of earlier pictures that are away now included
	blank   []string          // streams that exist, and whose filters nobody could tell
}

// listed is what a list says of one stream.
type listed struct {
	Config struct {
		Name     string     `json:"name"`
		Subjects []string   `json:"subjects"`
		NoAck    bool       `json:"no_ack"`
		Mirror   *struct{}  `json:"mirror"`
		Sources  []struct{} `json:"sources"`
	} `json:"config"`
}

func newStreams(api API, ours func(stream string) bool, log *slog.Logger) *streams {
	return &streams{api: api, ours: ours, log: log, blanks: newBlanks(), wanted: make(chan struct{}, 1)}
}

// listener is what is known of the stream on a subject.
type listener int

const (
	unknown  listener = iota // as yet, or for want of an answer
	nobody                   // no stream of this account
	mute                     // one that does not acknowledge
	answerer                 // one that acknowledges
)

// fresh is a picture that may be believed, or nil. When it is not the newest any more, a new one is asked for.
func (s *streams) fresh() *picture {
	p := s.now.Load()
	if p == nil {
		s.renew()
		return nil
	}
	age := time.Since(p.at)
	if age >= pictureRenew {
		s.renew()
	}
	if age >= pictureFresh {
		return nil
	}
	return p
}

func (s *streams) renew() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// on says what is known of the streams on a subject, and asks to know more.
func (s *streams) on(subject string) listener {
	p := s.fresh()
	if p == nil {
		return unknown
	}
	switch h := p.filters.match(subject); {
	case h != nil && h.acks:
		return answerer
	case h != nil:
		return mute
	case len(p.blank) > 0:
		return s.blanks.on(subject)
	}
	return nobody
}

// holder is the stream that a fresh picture shows on a subject, or nil. It asks for nothing.
func (s *streams) holder(subject string) *holder {
	if p := s.now.Load(); p != nil && time.Since(p.at) < pictureFresh {
		return p.filters.match(subject)
	}
	return nil
}

// listens reports whether a stream listens on a subject.
func (p *picture) listens(stream, subject string) bool {
	h := p.filters.match(subject)
	return h != nil && h.name == stream
}

// run lists the streams when that is wanted, until ctx ends.
func (s *streams) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wanted:
		}
		if p := s.now.Load(); p != nil && time.Since(p.at) < pictureRenew {
			continue // asked for twice
		}
		p, err := s.list(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The deliveries go on waiting, and count as not answered when their time is up.
			s.complain("cannot list the streams, so no silence of core subscribers is believed; grant STREAM.LIST, or deliver in mode core", "err", err)
		default:
			if len(p.blank) > 0 {
				s.complain("streams are there that no leader describes, so each target is asked for by itself; mend them, or deliver in mode core", "streams", p.blank)
			}
			s.now.Store(p)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listPause):
		}
	}
}

// complain says now and then why core subscribers get copies, until their messages are dead letters.
func (s *streams) complain(what string, args ...any) {
	if time.Since(s.complained) >= complainEvery {
		s.complained = time.Now()
		s.log.Warn(what, args...)
	}
}

// list reads all streams, page by page. One that is named and not described, for want of a leader, is what it was.
func (s *streams) list(ctx context.Context, now time.Time) (*picture, error) {
	p := &picture{at: now, known: make(map[string]listed)}
	var away []string
	for offset, total := 0, -1; ; {
		var page struct {
			Total   int      `json:"total"`
			Streams []listed `json:"streams"`
			Missing []string `json:"missing"`
		}
		if err := s.ask(ctx, offset, &page); err != nil {
			return nil, err
		}
		if total >= 0 && page.Total != total {
			return nil, errChanged // one more or less shifts the pages
		}
		total = page.Total
		for _, l := range page.Streams {
			p.known[l.Config.Name] = l
		}
		away = append(away, page.Missing...)
		n := len(page.Streams)
		for _, name := range page.Missing {
			if !slices.ContainsFunc(page.Streams, func(l listed) bool { return l.Config.Name == name }) {
				n++ // else it is described all the same
			}
		}
		if offset += n; n == 0 || offset >= page.Total {
			break
		}
	}
	before := s.now.Load()
	for _, name := range away {
		if _, described := p.known[name]; described {
			continue
		}
		if before != nil {
			if l, was := before.known[name]; was {
				p.known[name] = l
				continue
			}
		}
		if s.ours == nil || !s.ours(name) {
			p.blank = append(p.blank, name)
		}
	}
	for name, l := range p.known {
		h := &holder{name: name, acks: !l.Config.NoAck}
		if len(l.Config.Subjects) == 0 && l.Config.Mirror == nil && len(l.Config.Sources) == 0 {
			p.filters.add(name, h) // what it listens on when it is told nothing
		}
		for _, filter := range l.Config.Subjects {
			p.filters.add(filter, h)
		}
	}
	return p, nil
}

func (s *streams) ask(ctx context.Context, offset int, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return s.api.Ask(ctx, "STREAM.LIST", map[string]int{"offset": offset}, answer)
}
