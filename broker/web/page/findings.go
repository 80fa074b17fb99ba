package page

import (
	"context"
	"net/http"
	"time"

	"delaybroker/broker/doctor"
	"delaybroker/broker/text"
)

const (
	// checkInterval is the time between two checks while there are viewers. A check sends some hundred requests.
	checkInterval = time.Minute
	// checkTime is the timeout of one check. It is longer than the time in which other instances take over the lanes of
	// a dead one.
	checkTime = 30 * time.Second
)

// Findings holds doctor's findings about the broker, all its instances included.
type Findings struct {
	Time     time.Time        `json:"time"` // zero before the first check
	Findings []doctor.Finding `json:"findings"`
	Trouble  string           `json:"trouble,omitempty"` // why there is no newer check
}

// counts is the summary for viewers without the right to see rows, since findings contain targets.
type counts struct {
	Time     time.Time `json:"time"`
	Critical int       `json:"critical"`
	Warnings int       `json:"warnings"`
	Trouble  bool      `json:"trouble"`
}

// check runs doctor with the permissions of the page's user. It leaves out the findings about permissions, since the
// broker has other permissions.
func (w *watch) check(ctx context.Context, by *session) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	i, err := by.take(ctx)
	f := Findings{Time: time.Now().UTC(), Findings: []doctor.Finding{}}
	if err == nil {
		host := doctor.Host{Version: w.cfg.Version}
		if w.cfg.Host != nil {
			host = w.cfg.Host()
		}
		host.SkipTrial = true
		host.Probe = doctor.Probe{URL: "this instance", Checks: w.cfg.Checks()}
		for _, one := range doctor.Gather(ctx, i, host, nil).Findings("rights") {
			if one.Severity > doctor.Fine {
				one.Detail, one.Advice = text.Printable(one.Detail, 600), text.Printable(one.Advice, 600)
				f.Findings = append(f.Findings, one)
			}
		}
	}
	if err == nil && ctx.Err() != nil { // an incomplete check would mislead
		err = ctx.Err()
	}
	if err != nil {
		w.mu.Lock()
		f = w.found
		w.mu.Unlock()
		f.Trouble = "the check of the fleet failed: " + explain(err)
	}
	w.mu.Lock()
	w.found = f
	w.mu.Unlock()
	w.send("findings", countsOf(f))
}

func countsOf(f Findings) counts {
	c := counts{Time: f.Time, Trouble: f.Trouble != ""}
	for _, one := range f.Findings {
		if one.Severity == doctor.Critical {
			c.Critical++
		} else {
			c.Warnings++
		}
	}
	return c
}

// findings responds with the findings of the last check.
func (p *Page) findings(w http.ResponseWriter, _ *http.Request) {
	f := Findings{Findings: []doctor.Finding{}}
	if watched := p.watched.Load(); watched != nil {
		watched.mu.Lock()
		f = watched.found
		watched.mu.Unlock()
	}
	writeJSON(w, http.StatusOK, f)
}
