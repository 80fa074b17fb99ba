package deliver

import "delaybroker/broker/message"

// MaxInProgress is the maximum of a limit of deliveries in progress. A higher limit would have no effect, because a
// group's share of the window is smaller.
const MaxInProgress = 10_000

// Maxima are maximum numbers of deliveries in progress, by patterns of targets. The first rule that matches a target
// applies. A delivery is in progress from its publish until it has a result.
type Maxima message.Rules[int]

// ParseMaxima parses rules such as "svc.pdf=5,reports.*=1".
func ParseMaxima(s string) (Maxima, error) {
	rules, err := parseNumbers(s, "limit", "deliveries in progress, as in svc.pdf=5")
	if err != nil {
		return nil, err
	}
	return Maxima(rules), Maxima(rules).Validate()
}

// Validate returns an error that names each limit that is less than 1 or more than MaxInProgress, or nil.
func (m Maxima) Validate() error {
	return validateNumbers(message.Rules[int](m), "limit", "deliveries in progress", MaxInProgress)
}

// InProgress bounds the deliveries in progress, of a target or of a Delay-Rate-Key, by the same buckets as Limits.
// Mode core has no limit, because core subscribers do not answer.
type InProgress struct {
	ByTarget Maxima
	ByKey    Maxima
}

// limitGroup returns the group that bounds the deliveries in progress of a delivery's bucket, or nil if the bucket has
// no limit. Deliveries that wait for the limit are judged and given back as in any other group, so a flood for a slow
// service fills no lane.
func (d *Deliverer) limitGroup(dl *delivery) *group {
	l := d.cfg.InProgress
	if len(l.ByTarget)+len(l.ByKey) == 0 || d.cfg.Modes.mode(dl.Mode, dl.Target) == message.ModeCore {
		return nil
	}
	bucket, limit := bucketOf(message.Rules[int](l.ByTarget), message.Rules[int](l.ByKey), dl.Target, dl.RateKey)
	if limit == 0 {
		return nil
	}
	g := d.groups.ensure(groupName{bucket: bucket}, d.groups.window, windowDivisor)
	g.limit = limit
	return g
}
