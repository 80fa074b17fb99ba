package capacity

import (
	"cmp"
	"slices"
	"time"
)

// A Need has the resources that a load needs, of all servers together unless a field says otherwise.
type Need struct {
	Load    Load    `json:"load"`
	Copies  int     `json:"stream_copies"` // of all streams
	Passes  int     `json:"passes"`        // number of lanes in which a plain message is stored
	Pending float64 `json:"pending"`       // waiting messages, timers and series

	Disk         float64 `json:"disk_bytes"`
	ServerMemory float64 `json:"server_memory_bytes"`
	BrokerMemory float64 `json:"broker_memory_bytes"` // of each broker, maximum
	ServerCPU    Cores   `json:"server_cpu"`
	BrokerCPU    Cores   `json:"broker_cpu"` // all brokers together
	Network      Network `json:"network"`

	// Round is the time for the rounds of all series if all are due at the same time.
	Round float64 `json:"round_seconds,omitempty"`

	Limits []Limit `json:"limits"` // in the order in which they are reached
}

// Cores is a number of busy processor cores.
type Cores struct {
	Work  float64 `json:"work"`  // proportional to the rate
	Wakes float64 `json:"wakes"` // maximum for wake-ups by messages that come alone
}

// Sum returns the sum of both.
func (c Cores) Sum() float64 { return c.Work + c.Wakes }

// Network is in bytes a second.
type Network struct {
	In      float64 `json:"in"`      // from clients and brokers to servers
	Out     float64 `json:"out"`     // from servers to brokers
	Between float64 `json:"between"` // from servers to servers
}

// A Limit is the bound of one resource.
type Limit struct {
	Name  string  `json:"name"`
	Load  float64 `json:"load"`
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit"` // of both
	// Part is the load by the bound: with two, it takes two fleets, servers or streams.
	Part   float64 `json:"part"`
	Divide string  `json:"divide"` // advice if the load exceeds the bound
}

// Of computes the need of a load, which must have no problems.
func Of(l Load) Need {
	way, markers := l.way(), l.markers(l.Delay-rest(l.Delay))
	rounds, again := 0.0, []string{} // rounds a second, and the lanes of their markers
	if l.Series > 0 {
		rounds, again = l.Series/l.Every.Seconds(), l.markers(l.Every)
	}
	passes, marks, marksAgain := float64(len(way)), float64(len(markers)), float64(len(again))
	copies := float64(l.Replicas)
	n := Need{Load: l, Copies: l.Streams * l.Replicas, Passes: len(way)}

	waiting, timers := l.Rate*l.Delay.Seconds(), l.Timers*l.Delay.Seconds()
	record := float64(storedRequest)
	if passes > 1 {
		record = storedHop // the intake moves it on at once
	}
	n.Pending = waiting + timers + l.Series
	n.Disk = copies * (waiting*(record+l.Bytes) + (timers+l.Series)*(storedEntry+l.Bytes+storedMarker))
	deliveries, hops := l.Rate+l.Timers+rounds, l.Rate*(passes-1)+l.Timers*marks+rounds*marksAgain
	n.ServerMemory = copies * (waiting*serverPending + (timers+l.Series)*(serverSubject+serverPending) +
		serverID*(deliveries*targetWindow.Seconds()+hops*laneWindow.Seconds()))
	n.BrokerMemory = brokerOwn + 2*brokerHold

	work := func(pass, firing, round time.Duration) float64 {
		return l.Rate*passes*pass.Seconds() + l.Timers*(firing.Seconds()+(1+marks)*pass.Seconds()) +
			rounds*round.Seconds() + rounds*max(0, marksAgain-1)*pass.Seconds()
	}
	apart := min(deliveries+hops, wakesApart)
	n.ServerCPU = Cores{work(serverPass, serverFiring, serverRound), apart * serverWake.Seconds()}
	n.BrokerCPU = Cores{work(brokerPass, brokerFiring, brokerRound), apart * brokerWake.Seconds()}
	if l.Replicas > 1 {
		n.ServerCPU = Cores{n.ServerCPU.Work * copyFactor * copies, n.ServerCPU.Wakes * copyFactor * copies}
		n.BrokerCPU = Cores{n.BrokerCPU.Work * brokerFactor, n.BrokerCPU.Wakes * brokerFactor}
	}
	n.Network = l.network(passes, marks, marksAgain, rounds)
	n.Round = l.Series / maxRounds.with(l.Replicas)
	n.Limits = l.limits(n, busiest(l, rounds, way, markers, again), rounds)
	return n
}

func (l Load) network(passes, marks, marksAgain, rounds float64) (n Network) {
	const hop, entry, marker = storedHop + wire, storedEntry + wire, storedMarker + wire
	first, later, delivery := storedRequest+wire+l.Bytes, (passes-1)*(hop+l.Bytes), hop+l.Bytes
	n.In = l.Rate*(first+later+delivery) +
		l.Timers*(entry+l.Bytes+marks*marker+2*delivery+entry+2*wire) + // set, markers, claim, delivery, the end, deletes
		rounds*(2*delivery+marksAgain*marker+wire)
	n.Out = l.Rate*(first+later) +
		l.Timers*(3*(entry+l.Bytes)+marks*marker) + // the set, and two copies
		rounds*(delivery+entry+l.Bytes+marksAgain*marker)
	n.Between = n.In * float64(l.Replicas-1)
	return n
}

// busiest returns the messages per second in the busiest lane.
func busiest(l Load, rounds float64, way, markers, again []string) (most float64) {
	lanes := make(map[string]float64)
	rates := []float64{l.Rate, l.Timers, rounds}
	for i, path := range [][]string{way, markers, again} {
		for _, lane := range path {
			lanes[lane] += rates[i]
			most = max(most, lanes[lane])
		}
	}
	return most
}

// limits returns the limits in the order in which they are reached.
func (l Load) limits(n Need, lane, rounds float64) (all []Limit) {
	servers := float64(l.Replicas)
	add := func(name, unit string, load, bound float64, divide string) {
		if load > 0 {
			all = append(all, Limit{Name: name, Load: load, Bound: bound, Unit: unit, Part: load / bound, Divide: divide})
		}
	}
	const prefixes = "another DELAY_PREFIX or account"
	add("one lane", "msg/s", lane, maxLane.with(l.Replicas), "other delays, or "+prefixes)
	add("one target stream", "msg/s", l.Rate+l.Timers+rounds, maxTarget.with(l.Replicas), "targets in several streams")
	timers := l.Timers + rounds
	part := l.Timers/maxTimers.with(l.Replicas) + rounds/maxRounds.with(l.Replicas)
	add("one timer stream", "timers/s", timers, timers/part, prefixes) // without timers, it adds nothing
	add("memory of one server", "bytes", n.ServerMemory/servers, l.Server.Memory, "more servers, and "+prefixes)
	add("disk of one server", "bytes", n.Disk/servers, l.Server.Disk, "more servers, and "+prefixes)
	add("CPU of one server", "cores", n.ServerCPU.Sum()/servers, l.Server.Cores, "more servers, and "+prefixes)
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(b.Part, a.Part) })
	return all
}
