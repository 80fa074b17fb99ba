package engine

import (
	"hash/fnv"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// This file makes a rate hold for all instances together. Each bucket of a rate (see deliver.Limits) has a home: one of
// the shortest levels, chosen by a hash. The instance that owns the home reserves the send times of the bucket's
// messages, and sends them. The other instances move due messages into the home, where they are read immediately. So
// one instance counts the messages of all lanes, and no instance asks another one, or JetStream, for a send time.
//
// The cost of a message:
//
//	below the rate           one more publish and read if another instance owns the home; a delay of up to collect
//	above the rate           one more publish and read if another instance owns the level in which the message waits
//	with a single instance   none
//
// Tried and rejected: a rate that is divided by the number of instances. With two instances, a target whose messages
// are all in one lane gets half of its rate. Also rejected: shares by demand. They exceed the rate, or fall short of
// it, whenever the demand moves between lanes; this happens each time that another level becomes due.

// maxHome is the longest level that can be a home: it is always read as soon as something is stored there.
const maxHome = readAhead

// homesOf returns the levels of a ladder that can be a home.
func homesOf(ladder levels.Ladder) (homes []levels.Level) {
	for _, l := range ladder.Levels() {
		if l.Delay <= maxHome {
			homes = append(homes, l)
		}
	}
	return homes
}

// home returns the home of a message; ok is false if the message has no rate, or no level can be a home.
func (p plan) home(r message.Request) (home levels.Level, ok bool) {
	bucket, interval := p.limits.Bucket(r.Target, r.RateKey)
	if interval == 0 || len(p.homes) == 0 {
		return levels.Level{}, false
	}
	h := fnv.New32a()
	h.Write([]byte(bucket))
	return p.homes[h.Sum32()%uint32(len(p.homes))], true
}

// isHome reports whether a level is the home of a message.
func (p plan) isHome(l levels.Level, r message.Request) bool {
	home, ok := p.home(r)
	return ok && home == l
}

// fireAtHome returns the step that sends a due message to its target, or to its home if another instance works the
// home. If the home refuses the message, this instance sends it, at a send time that it reserves itself.
func fireAtHome(p plan, m moment, f *flight) step {
	home, ok := p.home(f.request)
	if !ok || f.refused == home.Name || p.movedHome(f) || m.works(home) {
		return step{kind: fire}
	}
	return step{kind: hop, level: home}
}

// movedHome reports whether an instance has moved a message into this lane as its home: it was due when it was stored.
// While new settings are rolled out, two instances may compute different homes. This instance then still sends the
// message from this lane: if it moved the message to the home that it computes, the other instance would move it back.
func (p plan) movedHome(f *flight) bool {
	return f.request.Hop > 0 && p.delay > 0 && p.delay <= maxHome && !f.storedAt().Before(f.when())
}
