package page

import (
	"context"
	"net/http"
	"time"

	"delaybroker/broker/doctor"
	"delaybroker/broker/text"
)

const (
	// checkInterval is the time between the end of a check and the next check. A check sends about a hundred requests.
	checkInterval = time.Minute
	// checkTimeout is the timeout of one check.
	checkTimeout = 30 * time.Second
)

// findings has the findings of package doctor about the fleet.
type findings struct {
	Time     time.Time        `json:"time,omitzero"` // of the last successful check; zero before the first
	Findings []doctor.Finding `json:"findings"`
	Trouble  string           `json:"trouble,omitempty"` // why the latest check failed
}

// counts is a summary of findings. It is for all viewers, because it contains no targets.
type counts struct {
	Time     time.Time `json:"time,omitzero"`
	Critical int       `json:"critical"`
	Warnings int       `json:"warnings"`
	Trouble  bool      `json:"trouble"`
}

// check runs the checks of package doctor, with the permissions of the page's user. It omits doctor's check "rights",
// which would report those permissions instead of the broker's.
func (w *watch) check(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	i, err := s.connect(ctx)
	f := findings{Time: time.Now().UTC(), Findings: []doctor.Finding{}}
	if err == nil {
		host := w.cfg.Host()
		host.SkipTrial = true
		host.Probe = doctor.Probe{URL: "this instance", Checks: w.cfg.Checks()}
		for _, found := range doctor.Gather(ctx, i, host, nil).Findings("rights") {
			if found.Severity > doctor.Fine {
				found.Detail, found.Advice = text.Sentence(found.Detail), text.Sentence(found.Advice)
				f.Findings = append(f.Findings, found)
			}
		}
	}
	if err == nil {
		err = ctx.Err() // after a timeout, the findings are incomplete
	}
	w.mu.Lock()
	if err != nil {
		f = w.lastFindings
		f.Trouble = "the check of the fleet failed, so the findings may be old: " + explain(err)
	}
	w.lastFindings = f
	w.mu.Unlock()
	w.send("findings", countsOf(f))
}

func countsOf(f findings) counts {
	c := counts{Time: f.Time, Trouble: f.Trouble != ""}
	for _, found := range f.Findings {
		if found.Severity == doctor.Critical {
			c.Critical++
		} else {
			c.Warnings++
		}
	}
	return c
}

// findings responds with the findings of the last successful check.
func (p *Page) findings(w http.ResponseWriter, _ *http.Request) {
	f := findings{Findings: []doctor.Finding{}}
	if watch := p.watch.Load(); watch != nil {
		watch.mu.Lock()
		f = watch.lastFindings
		watch.mu.Unlock()
	}
	writeJSON(w, http.StatusOK, f)
}
