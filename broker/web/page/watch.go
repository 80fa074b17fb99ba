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
	// stateEvery is the time between two frames of how it is.
	stateEvery = time.Second
	// linger is how long the last viewer may be away, as for a reload, before everything is put away.
	linger = 5 * time.Second
	// lookShare and lookLeast bound what looking at the streams costs: the pause behind a look is so many times as long as
	// the look took, and at least so long.
	lookShare = 100
	lookLeast = time.Minute
	// aheadRead is how many headers a forecast reads. Beyond it estimates, by a sample of each large lane, of which each
	// message is a question.
	aheadRead, aheadSample = 2000, 200
	// lookTime is how long a look may take.
	lookTime = 20 * time.Second
)

// A watch is what is known while somebody looks.
type watch struct {
	*Page
	rates   lastTotals
	relook  chan struct{} // one slot: look at the streams now, something was changed
	recheck chan struct{} // one slot: likewise for the findings
	lateP50 *float64
	lateP99 *float64

	mu        sync.Mutex // guards what follows
	latest    Overview
	ahead     *Ahead
	dead      *uint64 // in the stream, when it was looked at
	lookError string  // why the streams could not be looked at the last time
	wrote     uint64  // how many the fleet had written by then
	others    []inspect.Member
	found     Findings
}

// produce makes frames until ctx ends, or nobody has looked for a while.
func (p *Page) produce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{Page: p, rates: make(lastTotals), relook: make(chan struct{}, 1), recheck: make(chan struct{}, 1)}
	w.found.Findings = []doctor.Finding{}
	p.watched.Store(w)
	var looking sync.WaitGroup
	looking.Go(func() { w.lookOn(ctx) })
	looking.Go(func() { w.checkOn(ctx) })
	defer func() {
		p.watched.Store(nil)
		cancel()
		looking.Wait()
		p.viewers.forget()
	}()
	asker := session{open: p.cfg.Open}
	defer asker.close()
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	var step, left time.Time
	self := p.cfg.Engine.Instance()
	w.frame(time.Now(), nil, "")
	for {
		now := time.Now()
		if w.viewers.number() > 0 {
			left = now
		} else if now.Sub(left) > linger {
			return
		}
		more := broker.Asked{Except: self}
		if at := now.Truncate(history.Fine); !at.Equal(step) {
			step, more.History = at, historyHour
		}
		members, trouble := asker.fleet(ctx, more)
		now = time.Now()
		if more.History != "" {
			w.sendHistory(now, members)
		}
		w.frame(now, members, trouble)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// frame sends how it is.
func (w *watch) frame(now time.Time, others []inspect.Member, trouble string) {
	o := w.overview(now, others, trouble)
	w.send("state", o)
}

// send makes a frame of what is shown.
func (w *watch) send(kind string, shown any) {
	if data, err := json.Marshal(shown); err == nil { // numbers and words always can be
		w.viewers.send(kind, data)
	}
}

// overview is how it is, with what is known of the streams.
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
	if o.Ahead = w.ahead; o.Ahead != nil {
		o.Numbers.Minute = new(o.Ahead.dueWithin(now, time.Minute))
		o.Numbers.Overdue = new(uint64(0))
		if o.Numbers.Oldest >= 1 { // below, it is being delivered
			o.Numbers.Overdue = new(o.Ahead.Overdue.Messages)
		}
	}
	w.latest = o
	return o
}

func growth(now, then uint64) uint64 { return now - min(now, then) }

// describe adds what this instance knows of itself.
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
	if words := p.cfg.Durability.Load(); words != nil {
		o.Durability = *words
	}
}

// lookOn looks at the streams until ctx ends.
func (w *watch) lookOn(ctx context.Context) {
	looker := session{open: w.cfg.Open}
	defer looker.close()
	for {
		began := time.Now()
		w.look(ctx, &looker)
		pause := time.NewTimer(max(lookLeast, lookShare*time.Since(began)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-w.relook:
			pause.Stop()
		case <-pause.C:
		}
	}
}

// look counts dead letters, and forecasts an hour.
func (w *watch) look(ctx context.Context, by *session) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	i, err := by.take(ctx)
	if err != nil {
		return // the frames say so
	}
	own := w.cfg.Engine.AnswerOf(w.cfg.Engine.Status())
	w.mu.Lock()
	wrote := deadLetters(own, w.others)
	w.mu.Unlock()
	v, err := i.Look(ctx, 0)
	if err != nil {
		w.failed(by, err)
		return
	}
	w.mu.Lock()
	w.dead, w.wrote = new(v.Totals.Dead), wrote
	w.mu.Unlock()
	f, err := i.Ahead(ctx, inspect.AheadLook{For: time.Hour, By: time.Minute, Most: aheadRead, Sample: aheadSample})
	if err != nil {
		w.failed(by, err)
		return
	}
	ahead := newAhead(f, time.Minute)
	w.mu.Lock()
	w.ahead, w.lookError = ahead, ""
	w.mu.Unlock()
	w.send("ahead", ahead)
}

// failed notes why a look has failed. What was known before stays.
func (w *watch) failed(by *session, err error) {
	by.close()
	w.mu.Lock()
	w.lookError = "the streams cannot be looked at: " + explain(err)
	w.mu.Unlock()
}

// changed has the streams looked at, and the fleet checked, soon: an action has changed something.
func (p *Page) changed() {
	w := p.watched.Load()
	if w == nil {
		return
	}
	for _, again := range []chan struct{}{w.relook, w.recheck} {
		select {
		case again <- struct{}{}:
		default:
		}
	}
}
