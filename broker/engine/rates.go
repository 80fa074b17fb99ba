package engine

import (
	"hash/fnv"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// This file makes a rate hold for all instances together. Each bucket of a rate (see deliver.Limits) has a home: a
// level with a delay of at most maxHome, chosen by a hash. The instance that owns the home reserves the send times of
// the bucket's messages, and sends the messages. The other instances move due messages into the home, which is read
// immediately. So one instance counts the messages of all lanes, and no instance requests a send time from another
// instance or from JetStream.
//
// The cost of a message:
//
//	below the rate           one more publish and read if another instance owns the home; a delay of up to DELAY_SLACK
//	above the rate           one more publish and read if the message waits for its send time in a level of another
//	                         instance
//	with a single instance   none
//
// Tried and rejected: a rate that is divided by the number of instances. With two instances, a target whose messages
// are all in one lane gets half of its rate. Also rejected: shares by demand. The sum of the shares exceeds the rate,
// or falls short of it, whenever the demand moves between lanes. The demand moves each time that the messages of
// another level become due.

// maxHome is the maximum delay of a home. A level with at most this delay is read without pauses (see readAhead), so
// each message is read immediately, unless memory is short.
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

// fireAtHome returns the step that sends a due message to its target. If this instance does not work the message's
// home, the step moves the message into the home instead, unless movedHome. If the home refuses the message, this
// instance sends it to the target, at a send time that this instance reserves.
func fireAtHome(p plan, m moment, f *flight) step {
	home, ok := p.home(f.request)
	if !ok || f.refusedBy == home.Name || p.movedHome(f) || m.works(home) {
		return step{kind: fire}
	}
	return step{kind: hop, level: home}
}

// movedHome reports whether an instance has probably moved a message into this lane because this lane is the message's
// home: the message was due when it was stored. This instance sends the message from this lane even if it computes
// another home, because the two instances may have different settings. If each instance moved the message to the home
// that it computes, the message would circle.
func (p plan) movedHome(f *flight) bool {
	return f.request.Hop > 0 && p.delay > 0 && p.delay <= maxHome && !f.storedAt().Before(f.nextAttempt())
}
