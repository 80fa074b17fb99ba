package page

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats/history"
)

const (
	// stateInterval is the time between two frames of the state.
	stateInterval = time.Second
	// linger is how long the page keeps its connections after the last viewer has left. A browser reloads the page in
	// less time.
	linger = 5 * time.Second
	// A look reads the streams. The pause after a look is lookPause times its duration, and at least minLookPause.
	lookPause    = 100
	minLookPause = time.Minute
	// aheadRead is the maximum number of headers that a forecast reads. If there are more messages, the forecast is an
	// estimate from a sample of aheadSample messages of each large lane. Each message of the sample costs a request.
	aheadRead, aheadSample = 2000, 200
	// lookTime is the timeout of a look.
	lookTime = 20 * time.Second
)

// A watch collects the data for the viewers.
type watch struct {
	*Page
	rates   lastTotals
	relook  chan struct{} // capacity 1: requests a look at the streams, after an action
	recheck chan struct{} // capacity 1: requests a check, after an action
	lateP50 *float64
	lateP99 *float64

	mu        sync.Mutex // guards the fields below
	latest    Overview
	ahead     *inspect.Forecast
	dead      *uint64 // dead letters in the stream, at the last look
	lookError string  // why the last look failed
	wrote     uint64  // dead letters that the running instances had written at the last look
	others    []inspect.Member
	found     Findings
}

// produce makes frames until ctx ends, or until there has been no viewer for linger.
func (p *Page) produce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{Page: p, rates: make(lastTotals), relook: make(chan struct{}, 1), recheck: make(chan struct{}, 1)}
	w.found.Findings = []doctor.Finding{}
	p.watched.Store(w)
	var looking sync.WaitGroup
	looking.Go(func() {
		w.repeat(ctx, w.relook, func(ctx context.Context, by *session) time.Duration {
			began := time.Now()
			w.look(ctx, by)
			return max(minLookPause, lookPause*time.Since(began))
		})
	})
	looking.Go(func() {
		w.repeat(ctx, w.recheck, func(ctx context.Context, by *session) time.Duration {
			w.check(ctx, by)
			return checkInterval
		})
	})
	defer func() {
		p.watched.Store(nil)
		cancel()
		looking.Wait()
		p.viewers.forget()
	}()
	asker := session{open: p.cfg.Open}
	defer asker.close()
	tick := time.NewTicker(stateInterval)
	defer tick.Stop()
	var interval, lastViewer time.Time
	self := p.cfg.Engine.Instance()
	w.send("state", w.overview(time.Now(), nil, ""))
	for {
		now := time.Now()
		if w.viewers.number() > 0 {
			lastViewer = now
		} else if now.Sub(lastViewer) > linger {
			return
		}
		query := broker.QueryOptions{Except: self}
		if at := now.Truncate(history.FineStep); !at.Equal(interval) {
			interval, query.History = at, historyHour
		}
		members, trouble := asker.fleet(ctx, query)
		now = time.Now()
		if query.History != "" {
			w.send("history", w.lastHour(now, members))
		}
		w.send("state", w.overview(now, members, trouble))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// send encodes a frame and sends it.
func (w *watch) send(kind string, shown any) {
	if data, err := json.Marshal(shown); err == nil { // does not fail: the frames have only numbers and strings
		w.viewers.send(kind, data)
	}
}

// overview returns a new overview. Its data about the streams is from the last look.
func (w *watch) overview(now time.Time, others []inspect.Member, trouble string) Overview {
	status := w.cfg.Engine.Status()
	own := w.cfg.Engine.AnswerOf(status)
	o := combine(status, own, others, w.rates, now)
	w.describe(&o, trouble)
	o.Numbers.P50, o.Numbers.P99 = w.lateP50, w.lateP99
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = others
	troubles := slices.DeleteFunc([]string{o.Trouble, w.lookError}, func(s string) bool { return s == "" })
	o.Trouble = strings.Join(troubles, "; ")
	if w.dead != nil {
		o.Numbers.Dead = new(*w.dead + growth(deadLetters(own, others), w.wrote))
	}
	if w.ahead != nil {
		o.Numbers.Minute = new(dueWithin(*w.ahead, now, time.Minute))
		o.Numbers.Overdue = new(uint64(0))
		if o.Numbers.Oldest >= 1 { // a message that is overdue by less than a second is in delivery
			o.Numbers.Overdue = new(w.ahead.Overdue.Messages)
		}
	}
	w.latest = o
	return o
}

func growth(now, then uint64) uint64 { return now - min(now, then) }

// describe adds the data about this instance.
func (p *Page) describe(o *Overview, trouble string) {
	o.Version, o.Prefix, o.Trouble = p.cfg.Version, p.cfg.Prefix, trouble
	o.Ready = true
	for _, c := range p.cfg.Checks() {
		if !c.OK {
			o.Ready = false
			o.Failing = append(o.Failing, c)
		}
	}
	o.Durability = "not known yet"
	if durability := p.cfg.Durability.Load(); durability != nil {
		o.Durability = *durability
	}
}

// repeat calls f until ctx ends. Between two calls it waits for the pause that f returned, or for a value in changed.
func (w *watch) repeat(
	ctx context.Context, changed <-chan struct{}, f func(ctx context.Context, by *session) (pause time.Duration),
) {
	by := session{open: w.cfg.Open}
	defer by.close()
	for {
		select {
		case <-time.After(f(ctx, &by)):
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// look counts the dead letters, and forecasts the next hour.
func (w *watch) look(ctx context.Context, by *session) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	i, err := by.take(ctx)
	if err != nil {
		return // the frames show the reason
	}
	own := w.cfg.Engine.AnswerOf(w.cfg.Engine.Status())
	w.mu.Lock()
	wrote := deadLetters(own, w.others)
	w.mu.Unlock()
	v, err := i.Lanes(ctx, 0)
	if err != nil {
		w.failed(by, err)
		return
	}
	w.mu.Lock()
	w.dead, w.wrote = new(v.Totals.Dead), wrote
	w.mu.Unlock()
	f, err := i.Forecast(ctx, inspect.ForecastQuery{
		Length: time.Hour, Step: time.Minute, MaxRead: aheadRead, Sample: aheadSample,
	})
	if err != nil {
		w.failed(by, err)
		return
	}
	w.mu.Lock()
	w.ahead, w.lookError = &f, ""
	w.mu.Unlock()
	w.send("ahead", f)
}

// failed records the error of a look. It keeps the data of the previous look.
func (w *watch) failed(by *session, err error) {
	by.close()
	w.mu.Lock()
	w.lookError = "cannot read the streams: " + explain(err)
	w.mu.Unlock()
}

// changed makes the watch read the streams and check the fleet immediately. The page calls it after an action.
func (p *Page) changed() {
	w := p.watched.Load()
	if w == nil {
		return
	}
	signal(w.relook)
	signal(w.recheck)
}
