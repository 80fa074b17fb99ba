package page

import (
	"slices"
	"strings"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// overview is a snapshot of the state of the fleet, without data of tenants. A nil number is unknown.
type overview struct {
	Time       time.Time     `json:"time"`
	Ready      bool          `json:"ready"`
	Failing    []stats.Check `json:"failing"` // the failed readiness checks of this instance
	Version    string        `json:"version"`
	Prefix     string        `json:"prefix"`
	Durability string        `json:"durability"`
	Trouble    string        `json:"trouble,omitempty"` // why instances or numbers are missing or old
	Numbers    numbers       `json:"numbers"`
	Instances  []instance    `json:"instances"`
	Lanes      []lane        `json:"lanes"` // in the order in which messages pass them
}

// numbers are those of the active instance, the same on the page of each instance.
type numbers struct {
	Known         bool     `json:"known"` // an instance is active, so the numbers without a nil are known, too
	Pending       uint64   `json:"pending"`
	Retrying      uint64   `json:"retrying"`
	Paused        uint64   `json:"paused"` // messages that wait for paused targets
	DeadLetters   *uint64  `json:"dead"`
	DueNextMinute *uint64  `json:"minute"` // due in the next minute, as of the last forecast
	Overdue       *uint64  `json:"overdue"`
	MaxOverdue    float64  `json:"oldest_seconds"` // of the most overdue message outside of the retry lanes
	Delivered     *float64 `json:"delivered_per_second"`
	Refused       *float64 `json:"refused_per_second"`
	P50           *float64 `json:"late_p50_ms"` // over the newest known interval of the history
	P99           *float64 `json:"late_p99_ms"`
}

// instance is one instance of the fleet.
type instance struct {
	Name     string    `json:"name"`
	Self     bool      `json:"self"`   // the instance that serves this page
	Active   bool      `json:"active"` // it works the lanes; the others stand by
	Ready    bool      `json:"ready"`
	Draining bool      `json:"draining"`
	Unproven bool      `json:"unproven"` // its report is not authenticated
	Version  string    `json:"version,omitempty"`
	Format   int       `json:"format,omitempty"` // the newest format of messages that it reads
	Started  time.Time `json:"started,omitzero"`
}

// lane is the state of a lane, as its owner reports it.
type lane struct {
	Stream     string    `json:"stream"`
	Kind       string    `json:"kind"`
	Level      string    `json:"level,omitempty"`
	Delay      float64   `json:"delay_seconds"`
	Owner      string    `json:"owner"` // empty if no instance claims the lane
	Pending    *uint64   `json:"pending"`
	InMemory   int       `json:"held"` // messages in memory
	MaxOverdue float64   `json:"oldest_seconds"`
	ResumesAt  time.Time `json:"resumes_at,omitzero"`
	State      string    `json:"state"` // one of the lane states below
}

// maxGap is the maximum time for which the last figures stand while no instance is active, as during a take-over.
const maxGap = 10 * time.Second

// activity has the latest report of the active instance, and its rates.
type activity struct {
	at                 time.Time
	report             broker.InstanceStatus
	delivered, refused *float64 // per second, since the report before; nil if unknown
}

// note records a report of the active instance.
func (a *activity) note(now time.Time, report broker.InstanceStatus) {
	last, elapsed := a.report.Totals, now.Sub(a.at).Seconds()
	a.delivered, a.refused = nil, nil
	if t := report.Totals; t != nil && last != nil && a.report.Instance == report.Instance && elapsed > 0 &&
		last.Started.Equal(t.Started) {
		a.delivered = new(float64(t.Delivered-min(t.Delivered, last.Delivered)) / elapsed)
		a.refused = new(float64(t.Refused-min(t.Refused, last.Refused)) / elapsed)
	}
	a.at, a.report = now, report
}

// combine builds the overview from the reports of all instances. All figures are those of the active instance.
func combine(
	status broker.Status, own broker.InstanceStatus, members []inspect.Member, active *activity, now time.Time,
) overview {
	o := overview{Time: now.UTC(), Failing: []stats.Check{}}
	fleet := append([]inspect.Member{{InstanceStatus: own, Proven: true}}, slices.DeleteFunc(slices.Clone(members),
		func(m inspect.Member) bool { return m.Instance == own.Instance })...)
	for _, m := range fleet {
		isActive := m.Proven && len(m.Lanes) > 0
		if isActive {
			active.note(now, m.InstanceStatus)
		}
		i := instance{
			Name: m.Instance, Self: m.Instance == own.Instance, Active: isActive, Ready: m.Ready, Draining: m.Draining,
			Unproven: !m.Proven, Version: text.Printable(m.Version, 100), Format: m.Format,
		}
		if m.Totals != nil && m.Proven {
			i.Started = m.Totals.Started
		}
		o.Instances = append(o.Instances, i)
	}
	slices.SortFunc(o.Instances, func(a, b instance) int { return strings.Compare(a.Name, b.Name) })
	report := active.report
	if now.Sub(active.at) > maxGap {
		report = broker.InstanceStatus{}
		o.Trouble = "no instance is active: messages wait"
	} else {
		o.Numbers.Known, o.Numbers.Delivered, o.Numbers.Refused = true, active.delivered, active.refused
	}
	for _, l := range status.Lanes {
		lane := lane{Stream: l.Stream, Kind: l.Kind, Level: l.Level, Delay: l.Delay.Seconds(), State: laneNoOwner}
		if n := slices.IndexFunc(report.Lanes, func(a stats.LaneAnswer) bool { return a.Stream == l.Stream }); n >= 0 {
			lane.describe(report.Instance, report.Lanes[n])
			o.Numbers.addLane(l, report.Lanes[n])
		}
		o.Lanes = append(o.Lanes, lane)
	}
	return o
}

// addLane adds a lane's messages. A message in a retry lane does not count as overdue, because its target has refused
// it. Each pending timer has a marker in a level, which counts instead of its entry.
func (n *numbers) addLane(l stats.LaneStatus, report stats.LaneAnswer) {
	switch streams.Kind(l.Kind) {
	case streams.Timers:
		n.MaxOverdue = max(n.MaxOverdue, report.Overdue)
		return
	case streams.Retry:
		n.Pending, n.Retrying = n.Pending+report.Pending, n.Retrying+report.Pending
		return
	case streams.Paused:
		n.Paused += report.Pending
	}
	n.Pending, n.MaxOverdue = n.Pending+report.Pending, max(n.MaxOverdue, report.Overdue)
}

// The states of a lane, the worst first.
const (
	laneNoOwner    = "no owner" // no authenticated report has the lane
	laneNotReading = "not reading"
	laneUncertain  = "ownership uncertain"
	laneNewer      = "waits for a newer broker"
	laneFull       = "full"
	laneIdle       = "idle" // the owner reads no message before ResumesAt, because none is due soon
	laneReading    = "reading"
)

// describe sets the state of a lane, as the active instance reports it.
func (lane *lane) describe(owner string, r stats.LaneAnswer) {
	lane.Owner = owner
	lane.Pending, lane.InMemory, lane.ResumesAt = new(r.Pending), r.Held, r.ResumesAt
	if streams.Kind(lane.Kind) != streams.Retry { // a refused message is not overdue
		lane.MaxOverdue = r.Overdue
	}
	switch {
	case !r.Live:
		lane.State = laneNotReading
	case r.InDoubt:
		lane.State = laneUncertain
	case r.NewerMessages > 0:
		lane.State = laneNewer
	case r.Full:
		lane.State = laneFull
	case !r.ResumesAt.IsZero():
		lane.State = laneIdle
	default:
		lane.State = laneReading
	}
}

// dueWithin estimates the number of messages that become due within d. If only a part of a bucket lies within d, the
// messages of the bucket count in proportion to this part.
func dueWithin(f inspect.Forecast, now time.Time, d time.Duration) uint64 {
	n := 0.0
	for _, b := range f.Buckets {
		if from, to := max(0, b.From.Sub(now)), min(d, b.To.Sub(now)); from < to {
			n += float64(b.Messages) * float64(to-from) / float64(b.To.Sub(b.From))
		}
	}
	return uint64(n + 0.5)
}
