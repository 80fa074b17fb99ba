package page

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats/history"
)

const (
	// stateInterval is the time between two frames of the state.
	stateInterval = time.Second
	// idleTimeout is the time after which a page without viewers closes its connections. It is longer than the time in
	// which a browser reloads the page.
	idleTimeout = 5 * time.Second
	// A scan reads the streams. The time until the next scan is at least minScanIdle, and at least scanIdleFactor times
	// the duration of the last scan, unless an action requests a scan.
	scanIdleFactor = 100
	minScanIdle    = time.Minute
	// aheadRead is the maximum number of messages that a forecast reads in addition to its samples. In a scan, the
	// sample of a stream has at most aheadSample messages, each read by its own request.
	aheadRead, aheadSample = 2000, 200
	// scanTimeout is the timeout of a scan.
	scanTimeout = 20 * time.Second
)

// A watch collects the data for the viewers, and makes the frames.
type watch struct {
	*Page
	rescan  chan struct{} // capacity 1: requests a scan after an action
	recheck chan struct{} // capacity 1: requests a check after an action

	// Only the goroutine that makes the overviews uses these fields.
	active      activity
	letterCount *uint64  // number of dead letters in the stream; nil if it is unknown
	lateP50     *float64 // lateness in the overview, in milliseconds
	lateP99     *float64

	mu           sync.Mutex        // guards the fields below
	forecast     *inspect.Forecast // of the last scan; nil before the first
	scanError    string            // why the last scan failed; empty if it succeeded
	lastFindings findings
}

// produce makes frames until ctx ends, or until there has been no viewer for idleTimeout.
func (p *Page) produce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{Page: p, rescan: make(chan struct{}, 1), recheck: make(chan struct{}, 1)}
	w.lastFindings.Findings = []doctor.Finding{}
	p.watch.Store(w)
	var running sync.WaitGroup
	running.Go(func() {
		w.repeat(ctx, w.rescan, func(ctx context.Context, s *session) time.Duration {
			began := time.Now()
			w.scan(ctx, s)
			return max(minScanIdle, scanIdleFactor*time.Since(began))
		})
	})
	running.Go(func() {
		w.repeat(ctx, w.recheck, func(ctx context.Context, s *session) time.Duration {
			w.check(ctx, s)
			return checkInterval
		})
	})
	defer func() {
		p.watch.Store(nil)
		cancel()
		running.Wait()
		p.viewers.dropFrames()
	}()
	s := session{open: p.cfg.Open}
	defer s.close()
	tick := time.NewTicker(stateInterval)
	defer tick.Stop()
	var intervalStart, lastViewer time.Time
	self := p.cfg.Engine.Instance()
	for {
		now := time.Now()
		if w.viewers.number() > 0 {
			lastViewer = now
		} else if now.Sub(lastViewer) > idleTimeout {
			return
		}
		members, trouble := s.fleet(ctx, self)
		now = time.Now()
		// An instance has its new step some milliseconds after the step's end.
		if at := now.Add(-time.Second).Truncate(history.FineStep); !at.Equal(intervalStart) {
			intervalStart = at
			w.send("history", w.lastHour(now))
		}
		w.send("state", w.overview(now, members, trouble))
		w.countLetters(ctx, &s) // for the next frame: a slow answer delays none
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watch) send(kind string, shown any) {
	if data, err := json.Marshal(shown); err == nil { // cannot fail: JSON can represent all values of a frame
		w.viewers.send(kind, data)
	}
}

// countLetters reads the number of dead letters from their stream. After an error, the number is unknown, or the older.
func (w *watch) countLetters(ctx context.Context, s *session) {
	if s.inspector == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stateInterval)
	defer cancel()
	if n, err := s.inspector.LetterCount(ctx); err == nil {
		w.letterCount = &n
	}
}

// overview returns a new overview. The numbers of due messages are estimates from the last scan.
func (w *watch) overview(now time.Time, members []inspect.Member, trouble string) overview {
	status := w.cfg.Engine.Status()
	own := w.cfg.Engine.AnswerOf(status)
	o := combine(status, own, members, &w.active, now)
	w.describeSelf(&o, trouble)
	o.Numbers.P50, o.Numbers.P99, o.Numbers.DeadLetters = w.lateP50, w.lateP99, w.letterCount
	w.mu.Lock()
	defer w.mu.Unlock()
	troubles := slices.DeleteFunc([]string{o.Trouble, w.scanError}, func(s string) bool { return s == "" })
	o.Trouble = strings.Join(troubles, "; ")
	if w.forecast != nil {
		o.Numbers.DueNextMinute = new(dueWithin(*w.forecast, now, time.Minute))
		o.Numbers.Overdue = new(uint64(0))
		if o.Numbers.MaxOverdue >= 1 { // a message that is overdue by less than a second is in delivery
			o.Numbers.Overdue = new(w.forecast.Overdue.Messages)
		}
	}
	return o
}

// describeSelf sets the fields about this instance.
func (p *Page) describeSelf(o *overview, trouble string) {
	o.Version, o.Prefix = p.cfg.Version, p.cfg.Prefix
	o.Trouble = cmp.Or(trouble, o.Trouble)
	o.Ready = true
	for _, c := range p.cfg.Checks() {
		if !c.OK {
			o.Ready = false
			o.Failing = append(o.Failing, c)
		}
	}
	o.Durability = "the durability of an acknowledged message is not known yet"
	if durability := p.cfg.Durability.Load(); durability != nil {
		o.Durability = *durability
	}
}

// repeat calls f until ctx ends. After each call, it waits for the time that f returned, or for a value in changed.
func (w *watch) repeat(
	ctx context.Context, changed <-chan struct{}, f func(ctx context.Context, s *session) (interval time.Duration),
) {
	s := session{open: w.cfg.Open}
	defer s.close()
	for {
		select {
		case <-time.After(f(ctx, &s)):
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// scan makes the forecast for the next hour.
func (w *watch) scan(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	i, err := s.connect(ctx)
	if err != nil {
		return // the state frames have the reason
	}
	f, err := i.Forecast(ctx, inspect.ForecastQuery{
		Length: time.Hour, Step: time.Minute, MaxRead: aheadRead, Sample: aheadSample,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil { // the results of the previous scan remain
		s.close()
		w.scanError = "cannot read the streams, so the numbers of due messages may be old: " + explain(err)
		return
	}
	w.forecast, w.scanError = &f, ""
	w.send("ahead", f)
}

// refresh requests a scan and a check immediately, because an action may have changed the streams.
func (p *Page) refresh() {
	w := p.watch.Load()
	if w == nil {
		return
	}
	signal(w.rescan)
	signal(w.recheck)
}
