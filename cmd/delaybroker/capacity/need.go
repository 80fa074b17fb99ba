package capacity

import (
	"cmp"
	"slices"
	"time"
)

// A Need has the resources that a load needs. A field is a total of all servers, unless its comment says otherwise.
type Need struct {
	Load    Load    `json:"load"`
	Copies  int     `json:"stream_copies"` // replicas of all streams
	Passes  int     `json:"passes"`        // number of lanes that a plain message passes
	Pending float64 `json:"pending"`       // number of pending messages, timers and series

	Disk         float64 `json:"disk_bytes"`
	ServerMemory float64 `json:"server_memory_bytes"`
	BrokerMemory float64 `json:"broker_memory_bytes"` // maximum of each broker
	ServerCPU    Cores   `json:"server_cpu"`
	BrokerCPU    Cores   `json:"broker_cpu"` // of all brokers together
	Network      Network `json:"network"`

	// Round is the time, in seconds, in which the brokers deliver one round of every series, if all these rounds are
	// due at the same time.
	Round float64 `json:"round_seconds,omitempty"`

	Limits []Limit `json:"limits"` // in the order in which a growing load reaches them
}

// Cores is a number of busy processor cores.
type Cores struct {
	Work  float64 `json:"work"`  // proportional to the rate
	Wakes float64 `json:"wakes"` // maximum cost of the wake-ups by messages that arrive alone
}

// Sum returns the sum of work and wake-ups.
func (c Cores) Sum() float64 { return c.Work + c.Wakes }

// Network is the traffic in bytes per second.
type Network struct {
	In          float64 `json:"in"`      // from clients and brokers to servers
	Out         float64 `json:"out"`     // from servers to brokers
	Replication float64 `json:"between"` // among the servers
}

// A Limit compares the load of one resource with the resource's bound.
type Limit struct {
	Name  string  `json:"name"`
	Load  float64 `json:"load"`
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit"` // unit of load and bound
	// Share is the load divided by the bound. If Share is 2, the load needs the resource twice.
	Share  float64 `json:"part"`
	Remedy string  `json:"divide"` // how to divide a load that exceeds the bound
}

// NeedOf computes the need of a load. Load.Check must have returned no problem.
func NeedOf(l Load) Need {
	path, timerPath := l.path(), l.markerPath(l.Delay-markerDelay(l.Delay))
	rounds, roundPath := 0.0, []string{} // rounds per second, and the lanes of their markers
	if l.Series > 0 {
		rounds, roundPath = l.Series/l.Every.Seconds(), l.markerPath(l.Every)
	}
	passes, timerPasses, roundPasses := float64(len(path)), float64(len(timerPath)), float64(len(roundPath))
	copies := float64(l.Replicas)
	n := Need{Load: l, Copies: l.Fleets * l.Streams * l.Replicas, Passes: len(path)}

	messages, timers := l.Rate*l.Delay.Seconds(), l.Timers*l.Delay.Seconds() // pending
	record := float64(storedRequest)
	if passes > 1 { // the intake moves the message to a level immediately, with the headers of a hop
		record = storedHop
	}
	n.Pending = messages + timers + l.Series
	n.Disk = copies * (messages*(record+l.Bytes) + (timers+l.Series)*(storedEntry+l.Bytes+storedMarker))
	deliveries, hops := l.Rate+l.Timers+rounds, l.Rate*(passes-1)+l.Timers*timerPasses+rounds*roundPasses
	n.ServerMemory = copies * (pendingMemory(n.Pending, l.Replicas) + (timers+l.Series)*serverSubject +
		serverID*(deliveries*targetWindow.Seconds()+hops*laneWindow.Seconds()))
	n.BrokerMemory = brokerBase + 2*brokerBuffer

	work := func(pass, firing, round time.Duration) float64 {
		return l.Rate*passes*pass.Seconds() + l.Timers*(firing.Seconds()+(1+timerPasses)*pass.Seconds()) +
			rounds*round.Seconds() + rounds*max(0, roundPasses-1)*pass.Seconds()
	}
	wakes := min(deliveries+hops, maxWakeRate*float64(l.Fleets)) // per second
	n.ServerCPU = Cores{work(serverPass, serverFiring, serverRound), wakes * serverWake.Seconds()}
	n.BrokerCPU = Cores{work(brokerPass, brokerFiring, brokerRound), wakes * brokerWake.Seconds()}
	if l.Replicas > 1 {
		n.ServerCPU = Cores{n.ServerCPU.Work * copyFactor * copies, n.ServerCPU.Wakes * copyFactor * copies}
		n.BrokerCPU = Cores{n.BrokerCPU.Work * brokerFactor, n.BrokerCPU.Wakes * brokerFactor}
	}
	n.Network = l.network(passes, timerPasses, roundPasses, rounds)
	n.Round = l.Series / maxRounds.of(l.Replicas)
	n.Limits = l.limits(n, maxLaneRate(l, rounds, path, timerPath, roundPath), rounds)
	return n
}

func (l Load) network(passes, timerPasses, roundPasses, rounds float64) (n Network) {
	const hop, entry, marker = storedHop + wireOverhead, storedEntry + wireOverhead, storedMarker + wireOverhead
	request, hops, delivery := storedRequest+wireOverhead+l.Bytes, (passes-1)*(hop+l.Bytes), hop+l.Bytes
	n.In = l.Rate*(request+hops+delivery) +
		// The publishes of a timer, in the order of the terms: the set, its markers, the firing and the delivery, the
		// outcome, two deletes.
		l.Timers*(entry+l.Bytes+timerPasses*marker+2*delivery+entry+2*wireOverhead) +
		rounds*(2*delivery+roundPasses*marker+wireOverhead)
	n.Out = l.Rate*(request+hops) +
		l.Timers*(3*(entry+l.Bytes)+timerPasses*marker) + // the set, and two copies of it
		rounds*(delivery+entry+l.Bytes+roundPasses*marker)
	n.Replication = n.In * float64(l.Replicas-1)
	return n
}

// maxLaneRate returns the messages per second in the busiest lane.
func maxLaneRate(l Load, rounds float64, path, timerPath, roundPath []string) (highest float64) {
	lanes := make(map[string]float64)
	rates := []float64{l.Rate / float64(l.Fleets), l.Timers, rounds}
	for i, names := range [][]string{path, timerPath, roundPath} {
		for _, name := range names {
			lanes[name] += rates[i]
			highest = max(highest, lanes[name])
		}
	}
	return highest
}

// limits returns the limits in the order in which a growing load reaches them.
func (l Load) limits(n Need, laneRate, rounds float64) (limits []Limit) {
	servers := float64(l.Replicas)
	add := func(name, unit string, load, bound float64, remedy string) {
		if load > 0 {
			limits = append(limits, Limit{
				Name: name, Load: load, Bound: bound, Unit: unit, Share: load / bound, Remedy: remedy,
			})
		}
	}
	const prefixes = "another fleet"
	add("one lane", "msg/s", laneRate, maxLane.of(l.Replicas), "other delays, or "+prefixes)
	add("one target stream", "msg/s", l.Rate+l.Timers+rounds, maxTarget.of(l.Replicas),
		"targets in several streams")
	timers := l.Timers + rounds
	share := l.Timers/maxTimers.of(l.Replicas) + rounds/maxRounds.of(l.Replicas)
	// Without timers and rounds, the bound is NaN, and add skips the load of zero.
	add("one timer stream", "timers/s", timers, timers/share, prefixes)
	add("memory of one server", "bytes", n.ServerMemory/servers, l.Server.Memory, "more servers, and "+prefixes)
	add("disk of one server", "bytes", n.Disk/servers, l.Server.Disk, "more servers, and "+prefixes)
	add("CPU of one server", "cores", n.ServerCPU.Sum()/servers, l.Server.Cores, "more servers, and "+prefixes)
	slices.SortStableFunc(limits, func(a, b Limit) int { return cmp.Compare(b.Share, a.Share) })
	return limits
}
