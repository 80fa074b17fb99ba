package engine

import (
	"hash/fnv"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// This file makes a rate hold for all instances together. Each bucket of a rate (see deliver.Limits) has a home: one of
// the shortest levels, chosen by a hash. Only the instance that owns the home sends the messages of the bucket, at the
// turns that it gives them. Another instance moves due messages into the home, where they are read immediately. So one
// instance counts all of them, whatever lanes they come from, and no instance asks another one, or JetStream, for a
// turn.
//
//	messages below the rate    one publish and one read more if another instance has the home; late by collect
//	messages above it          the same again if another instance has the level in which they wait for the turn
//	one instance               nothing more
//
// Tried and rejected: to divide the rate by the number of instances, since with two it halves the rate of a target
// whose messages are all in one lane. Also shares by demand, which exceed the rate, or fall short of it, whenever the
// demand moves between lanes, as it does each time that another level becomes due.

// maxHome is the longest level that can be a home: it is always read as soon as something is stored there.
const maxHome = readAhead

// homesOf returns the levels of a ladder that can be homes.
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

// fireAtHome sends a message that is due to its target, or to its home if another instance gives the turns. Messages
// that the home does not take are sent from here, at turns of this instance.
func fireAtHome(p plan, m moment, f *flight) step {
	home, ok := p.home(f.request)
	if !ok || f.refused == home.Name || p.movedHome(f) || m.works(home) {
		return step{kind: fire}
	}
	return step{kind: hop, level: home}
}

// movedHome reports whether an instance has moved a message into this lane to be sent from here: it was due when it was
// stored. While new settings are rolled out, that instance may use another home than this one. The message is still
// sent from here: otherwise the two instances would move it to and fro.
func (p plan) movedHome(f *flight) bool {
	return f.request.Hop > 0 && p.delay > 0 && p.delay <= maxHome && !f.storedAt().Before(f.when())
}
