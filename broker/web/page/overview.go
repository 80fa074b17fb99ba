package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// Overview is a snapshot of the state of the fleet, without data of tenants. A nil number is unknown.
type Overview struct {
	Time       time.Time     `json:"time"`
	Ready      bool          `json:"ready"`
	Failing    []stats.Check `json:"failing"` // the failed readiness checks of this instance
	Version    string        `json:"version"`
	Prefix     string        `json:"prefix"`
	Durability string        `json:"durability"`
	Trouble    string        `json:"trouble,omitempty"` // why instances or numbers are missing or old
	Numbers    Numbers       `json:"numbers"`
	Instances  []Instance    `json:"instances"`
	Lanes      []Lane        `json:"lanes"` // in the order in which messages pass them
}

// Numbers are those of the fleet, without instances whose reports are not authenticated.
type Numbers struct {
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

// Instance is one instance of the fleet.
type Instance struct {
	Name       string    `json:"name"`
	Self       bool      `json:"self"` // the instance that serves this page
	Ready      bool      `json:"ready"`
	Draining   bool      `json:"draining"`
	Unproven   bool      `json:"unproven"` // its report is not authenticated, so the totals leave it out
	Older      bool      `json:"older"`    // it runs an older version that reports no totals
	Version    string    `json:"version,omitempty"`
	Format     int       `json:"format,omitempty"` // the newest format of messages that it reads
	Started    time.Time `json:"started,omitzero"`
	Lanes      int       `json:"lanes"`
	Pending    uint64    `json:"pending"`
	MaxOverdue float64   `json:"oldest_seconds"`
	Delivered  *float64  `json:"delivered_per_second"`
	Refused    *float64  `json:"refused_per_second"`
}

// Lane is the state of a lane, as its owner reports it.
type Lane struct {
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

// snapshot has the totals of an instance at a time.
type snapshot struct {
	at time.Time
	stats.Totals
}

// lastTotals has the totals of each instance at the previous poll, by the name of the instance.
type lastTotals map[string]snapshot

// laneReport is the state of a lane, with the name of the instance that reported the state.
type laneReport struct {
	instance string // empty if no instance reported the lane
	stats.LaneAnswer
}

// combine builds the overview from the reports of all instances. Previous has the totals of the previous call. Combine
// replaces them with the new totals.
func combine(
	status broker.Status, own broker.Answer, members []inspect.Member, previous lastTotals, now time.Time,
) Overview {
	o := Overview{Time: now.UTC(), Failing: []stats.Check{}}
	reports := make(map[string]laneReport) // by lane
	running, retries := make(map[string]bool), make(map[string]bool)
	for _, l := range status.Lanes {
		retries[l.Stream] = streams.Kind(l.Kind) == streams.Retry
	}
	for _, m := range fleetOf(own, members) {
		running[m.Instance] = true
		o.Instances = append(o.Instances, o.Numbers.addInstance(m, retries, previous, now))
		o.Instances[len(o.Instances)-1].Self = m.Instance == own.Instance
		if !m.Proven {
			continue
		}
		for _, l := range m.Lanes {
			if current, reported := reports[l.Stream]; !reported || l.Live && !current.Live {
				reports[l.Stream] = laneReport{m.Instance, l}
			}
		}
	}
	maps.DeleteFunc(previous, func(name string, _ snapshot) bool { return !running[name] })
	slices.SortFunc(o.Instances, func(a, b Instance) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range status.Lanes {
		report := reports[l.Stream]
		o.Lanes = append(o.Lanes, laneOf(l, report))
		o.Numbers.addLane(l, report.LaneAnswer)
	}
	return o
}

// fleetOf returns the reports of all instances, this one first.
func fleetOf(own broker.Answer, members []inspect.Member) []inspect.Member {
	return append([]inspect.Member{{Answer: own, Proven: true}}, slices.DeleteFunc(slices.Clone(members),
		func(m inspect.Member) bool { return m.Instance == own.Instance })...)
}

// addInstance adds the rates of an instance to n, and returns the row of the instance. A message in a retry lane does
// not count as overdue, because its target has refused it.
func (n *Numbers) addInstance(m inspect.Member, retries map[string]bool, previous lastTotals, now time.Time) Instance {
	i := Instance{
		Name: m.Instance, Ready: m.Ready, Draining: m.Draining, Unproven: !m.Proven, Older: m.Totals == nil,
		Lanes: len(m.Lanes), Version: text.Printable(m.Version, 100), Format: m.Format,
	}
	for _, l := range m.Lanes {
		i.Pending += l.Pending
		if !retries[l.Stream] {
			i.MaxOverdue = max(i.MaxOverdue, l.Overdue)
		}
	}
	if m.Totals == nil || !m.Proven {
		return i
	}
	i.Started = m.Totals.Started
	last, seen := previous[m.Instance]
	previous[m.Instance] = snapshot{now, *m.Totals}
	elapsed := now.Sub(last.at).Seconds()
	if !seen || elapsed <= 0 || !last.Started.Equal(m.Totals.Started) {
		return i
	}
	i.Delivered = new(perSecond(m.Totals.Delivered, last.Delivered, elapsed))
	i.Refused = new(perSecond(m.Totals.Refused, last.Refused, elapsed))
	n.Delivered, n.Refused = sum(n.Delivered, i.Delivered), sum(n.Refused, i.Refused)
	return i
}

// perSecond returns the rate at which a counter increased in the elapsed seconds.
func perSecond(now, previous uint64, elapsed float64) float64 {
	return float64(increase(now, previous)) / elapsed
}

// sum returns the sum of two numbers. A nil number counts as zero, but b must not be nil.
func sum(a, b *float64) *float64 {
	if a == nil {
		return b
	}
	return new(*a + *b)
}

func (n *Numbers) addLane(l stats.LaneStatus, report stats.LaneAnswer) {
	n.Pending += report.Pending
	switch streams.Kind(l.Kind) {
	case streams.Retry:
		n.Retrying += report.Pending
		return
	case streams.Paused:
		n.Paused += report.Pending
	}
	n.MaxOverdue = max(n.MaxOverdue, report.Overdue)
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

func laneOf(l stats.LaneStatus, r laneReport) Lane {
	lane := Lane{
		Stream: l.Stream, Kind: l.Kind, Level: l.Level, Delay: l.Delay.Seconds(), Owner: cmp.Or(r.instance, l.Owner),
		State: laneNoOwner,
	}
	if r.instance == "" {
		return lane
	}
	lane.Pending, lane.InMemory, lane.MaxOverdue, lane.ResumesAt = new(r.Pending), r.Held, r.Overdue, r.ResumesAt
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
	return lane
}

// deadLetters returns the number of dead letters that the instances with an authenticated report have written since
// their start.
func deadLetters(own broker.Answer, members []inspect.Member) (n uint64) {
	for _, m := range fleetOf(own, members) {
		if m.Proven && m.Totals != nil {
			n += m.Totals.DeadLetters
		}
	}
	return n
}

// dueWithin estimates the number of messages that become due within d. If only a part of a bucket lies within d, the
// messages of the bucket count in proportion to this part.
func dueWithin(f inspect.Forecast, now time.Time, d time.Duration) uint64 {
	end, n := now.Add(d), 0.0
	for _, b := range f.Buckets {
		from, to := b.From, b.To
		if !to.After(now) || !from.Before(end) {
			continue
		}
		if from.Before(now) {
			from = now
		}
		if to.After(end) {
			to = end
		}
		if length := b.To.Sub(b.From); length > 0 {
			n += float64(b.Messages) * float64(to.Sub(from)) / float64(length)
		}
	}
	return uint64(n + 0.5)
}
