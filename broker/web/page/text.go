package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/text"
)

const textTimeout = 5 * time.Second

func (p *Page) text(w http.ResponseWriter, r *http.Request) {
	extendDeadline(w, textTimeout)
	o := p.latestOverview(r.Context())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := w.Write([]byte(textOf(o))); err != nil {
		p.cfg.Log.Debug("cannot write the plain-text page", "err", err)
	}
}

// latestOverview returns the latest overview that was made for viewers. If there is none of the last three seconds,
// latestOverview makes a new one. The new one has only this instance if no slot becomes free within textTimeout.
func (p *Page) latestOverview(ctx context.Context) Overview {
	if w := p.watch.Load(); w != nil {
		w.mu.Lock()
		o := w.lastOverview
		w.mu.Unlock()
		if time.Since(o.Time) < 3*stateInterval {
			return o
		}
	}
	ctx, cancel := context.WithTimeout(ctx, textTimeout)
	defer cancel()
	w := &watch{Page: p, previous: make(lastTotals)}
	select {
	case p.questions <- struct{}{}:
		defer func() { <-p.questions }()
	case <-ctx.Done():
		return w.overview(time.Now(), nil, "only this instance is shown: the page has too many concurrent requests")
	}
	s := session{open: p.cfg.Open}
	defer s.close()
	members, trouble := s.fleet(ctx, broker.QueryOptions{History: historyHour, Except: p.cfg.Engine.Instance()})
	w.members = members
	w.scan(ctx, &s)
	h := w.lastHour(time.Now(), members)
	o := w.overview(time.Now(), members, trouble)
	o.Numbers.Delivered, o.Numbers.Refused = newestValue(h.Delivered), newestValue(h.Refused)
	return o
}

func textOf(o Overview) string {
	var b strings.Builder
	state := "ready"
	if !o.Ready {
		state = "NOT READY"
	}
	fmt.Fprintf(&b, "delaybroker %s: %s\n", o.Version, state)
	for _, c := range o.Failing {
		fmt.Fprintf(&b, "  %s: %s\n", c.Name, text.Printable(c.Detail, 300))
	}
	if o.Trouble != "" {
		fmt.Fprintf(&b, "  %s\n", o.Trouble)
	}
	fmt.Fprintf(&b, "%s\n\n", o.Durability)
	n := o.Numbers
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "pending\t%d\n", n.Pending)
	fmt.Fprintf(t, "due next minute\t%s\n", orDash(n.DueNextMinute))
	fmt.Fprintf(t, "overdue\t%s\toldest by %s\n", orDash(n.Overdue), text.Seconds(n.MaxOverdue))
	fmt.Fprintf(t, "retrying\t%d\n", n.Retrying)
	fmt.Fprintf(t, "paused\t%d\n", n.Paused)
	fmt.Fprintf(t, "dead letters\t%s\n", orDash(n.DeadLetters))
	fmt.Fprintf(t, "delivered\t%s/s\trefused %s/s\n", orDash(n.Delivered), orDash(n.Refused))
	fmt.Fprintf(t, "late\tp50 %s ms\tp99 %s ms\n", orDash(n.P50), orDash(n.P99))
	fmt.Fprint(t, "\nINSTANCE\tVERSION\tSTATE\tLANES\tPENDING\n")
	for _, i := range o.Instances {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\n",
			text.Printable(i.Name, 100), i.version(), i.state(), i.Lanes, i.Pending)
	}
	fmt.Fprint(t, "\nLANE\tPENDING\tOLDEST\tSTATE\n")
	idle := 0
	for _, l := range o.Lanes {
		if l.idle() {
			idle++
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.Stream, orDash(l.Pending), text.Seconds(l.MaxOverdue), l.State)
	}
	_ = t.Flush() // cannot fail: it writes to memory
	if idle > 0 {
		fmt.Fprintf(&b, "%s\n", formatCount(uint64(idle), "idle lane"))
	}
	return b.String()
}

// version returns the version of the instance's program, and its message format.
func (i Instance) version() string {
	if i.Format == 0 {
		return "older"
	}
	return fmt.Sprintf("%s (format %d)", cmp.Or(i.Version, "-"), i.Format)
}

func (i Instance) state() string {
	switch {
	case i.Unproven:
		return "unproven"
	case i.Draining:
		return "draining"
	case !i.Ready:
		return "starting"
	case i.Self:
		return "ready, this one"
	}
	return "ready"
}

// idle reports whether the lane has no message and no problem.
func (l Lane) idle() bool {
	return l.Pending != nil && *l.Pending == 0 && (l.State == laneReading || l.State == laneIdle)
}

// orDash formats a number. An unknown number becomes a dash.
func orDash[T uint64 | float64](n *T) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
