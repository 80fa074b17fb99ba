package message

import (
	"maps"
	"strings"
	"unicode/utf8"
)

// Header is the decoded header block of a message. As in nats.go, the keys have the sender's spelling.
type Header = map[string][]string

// Request headers, which clients write.
const (
	HeaderUntil   = "Delay-Until"   // due time, in a form of ParseTime
	HeaderFor     = "Delay-For"     // duration; on named timers only
	HeaderSpread  = "Delay-Spread"  // duration: the message is due later by a part of it
	HeaderExpires = "Delay-Expires" // the latest time of delivery: a duration after the due time, or a time
	HeaderDeliver = "Delay-Deliver" // auto, stream, core or request
	HeaderTTL     = "Delay-TTL"     // becomes Nats-TTL at the target
	HeaderTarget  = "Delay-Target"  // the target: with the bare subject of a level, on markers, and on schedule entries

	HeaderRateKey     = "Delay-Rate-Key"     // all messages with the same key share a rate
	HeaderMaxAttempts = "Delay-Max-Attempts" // number of refusals until the message is a dead letter

	HeaderCancel = "Delay-Cancel" // cancels a named timer; the value is the client's token
	HeaderWord   = "Delay-Word"   // of a named timer: the client's token, by which the client recognizes its own set

	HeaderMaxWait = "Delay-Max-Wait" // of a named timer: the maximum time for which consecutive sets postpone it

	// On the set of a recurring timer: see package timetable.
	HeaderEvery  = "Delay-Every"         // a duration
	HeaderCron   = "Delay-Cron"          // five or six fields, or a name
	HeaderZone   = "Delay-Time-Zone"     // the time zone of Delay-Cron
	HeaderJitter = "Delay-Jitter"        // a duration
	HeaderRounds = "Delay-Rounds"        // maximum number of rounds
	HeaderLast   = "Delay-Last"          // a time: no round is planned after it
	HeaderMissed = "Delay-Missed-Rounds" // skip, one or all
	HeaderOwner  = "Delay-Owner"         // the person or team responsible for the series

	HeaderPauseAfter = "Delay-Pause-After" // number of dead letters in a row that pause the series
)

// State headers: a broker writes them for consumers and for other brokers.
const (
	HeaderID       = "Delay-Id"
	HeaderDue      = "Delay-Due"      // RFC 3339 with nanoseconds
	HeaderAccepted = "Delay-Accepted" // when the first stream stored the message; RFC 3339 with nanoseconds
	HeaderMsgID    = "Delay-Msg-Id"   // the client's own Nats-Msg-Id
	HeaderSeries   = "Delay-Series"   // for a recurring timer: the generation of its set
	HeaderRound    = "Delay-Round"    // for a recurring timer: the number of the round, from 1

	// Between lanes. Dead letters have the first five, too.
	HeaderFormat       = "Delay-Format"
	HeaderHop          = "Delay-Hop"           // number of publishes by brokers into lanes so far
	HeaderAttempts     = "Delay-Attempts"      // number of refused deliveries; also at the target
	HeaderFirstFailure = "Delay-First-Failure" // RFC 3339 with nanoseconds
	HeaderLastFailure  = "Delay-Last-Failure"
	HeaderRetryAt      = "Delay-Retry-At" // time of the next attempt, after a refusal or deferral, or reserved by a rate
	HeaderPaced        = "Delay-Paced"    // the send time that a broker reserved under a rate, and that broker
	HeaderReleased     = "Delay-Released" // the resumed pause in whose lane the message waited

	// Between lanes only, and only for people: no decision depends on these headers.
	HeaderLastError = "Delay-Last-Error"       // reason of the last refusal
	HeaderDeferred  = "Delay-Deferred"         // reason of a deferral, which is a wait without a refusal
	HeaderAllowed   = "Delay-Attempts-Allowed" // maximum number of refusals
	// HeaderRefusals has the times and reasons of the refusals before the last one. Dead letters have it, too.
	HeaderRefusals = "Delay-Refusals"

	// In the state of a series' pending round: see Origin.
	HeaderFailures    = "Delay-Failures"
	HeaderFailedRound = "Delay-Failed-Round"

	// On named timers and their markers, the placeholders in the levels: see package entry.
	HeaderFired = "Delay-Fired" // "<generation> <instance>"
	HeaderOver  = "Delay-Over"  // "<generation> <outcome>"
	HeaderTimer = "Delay-Timer" // on a marker: "<bytes of the body> <run: see entry.Marker> <key>"

	// On the entry that is the firing of one round and the set of the next round: see package entry.
	HeaderFirst    = "Delay-First"     // the planned time of the first round
	HeaderPlanned  = "Delay-Planned"   // the planned time of the next round
	HeaderNext     = "Delay-Next"      // when the next round is due; missing while the series is paused
	HeaderNextWait = "Delay-Next-Wait" // the earliest time at which a round that is caught up may fire

	// For schedules in nats-server's format: on their entries and markers, and on the messages that they produce.
	HeaderScheduler    = "Delay-Scheduler"     // the schedule's subject; also at the target
	HeaderScheduleNext = "Delay-Schedule-Next" // "purge", or when the schedule fires again; also at the target
	HeaderRollup       = "Delay-Rollup"        // becomes Nats-Rollup at the target: "sub"

	HeaderState   = "Delay-State"   // the state of a message between lanes: see State
	HeaderSeal    = "Delay-Seal"    // proves that a broker wrote the message: see Keys
	HeaderSubject = "Delay-Subject" // the subject of the message's first publish, escaped, at most 256 bytes

	// On dead letters only.
	HeaderErrorCode = "Delay-Error-Code"
	HeaderError     = "Delay-Error"
)

// Headers of nats-server that the broker writes.
const (
	HeaderNatsMsgID = "Nats-Msg-Id"
	HeaderNatsTTL   = "Nats-TTL"
	headerRollup    = "Nats-Rollup"

	// HeaderExpected is the sequence that the last message of the subject must have.
	HeaderExpected = "Nats-Expected-Last-Subject-Sequence"
)

// Format is the format of the messages that this broker writes, and the newest that it reads. A broker leaves a message
// of a newer format in its lane, for an instance that can read it.
const Format = 1

// Bounds of the headers that the broker passes on, including the client's Nats-Msg-Id. The broker adds less than 2 KiB
// of headers, and at most two bytes to each line. So a message grows by less than the 4 KiB of max_payload that the
// streams keep free.
const (
	maxHeaderLines = 64
	maxHeaderBytes = 8 << 10
)

// IsBrokerHeader reports whether the broker parses a header, and does not pass it on. The name is in canonical
// spelling.
func IsBrokerHeader(name string) bool { return canonicalNames[name] != "" || name == HeaderNatsMsgID }

// CanonicalName returns the canonical spelling of a known Delay-* name, or "".
func CanonicalName(k string) string {
	if name := canonicalNames[k]; name != "" {
		return name
	}
	return canonicalNames[plainName(k)]
}

// plainName returns a name in the form in which names are compared: trimmed and in lower case. If the first letter
// shows that the name is neither reserved nor a Delay-* name, plainName keeps the case, which saves an allocation.
func plainName(k string) string {
	k = strings.TrimSpace(k)
	if k == "" || k[0] < utf8.RuneSelf && strings.IndexByte("DdNnSsKk", k[0]) < 0 {
		return k
	}
	return strings.ToLower(k)
}

// isReserved reports whether a plain name belongs to the server.
func isReserved(name string) bool {
	return strings.HasPrefix(name, "nats-") || strings.HasPrefix(name, "nmqtt-") ||
		name == "status" || name == "description" || name == "kv-operation"
}

// leastName returns the lesser of two names, or b if a is empty. A problem names the least name, because the order of a
// map is random.
func leastName(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// validKey reports whether nats.go encodes a header with this key. ADR-4 allows more keys.
func validKey(k string) bool {
	for i := range len(k) {
		if c := k[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"()/,:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return k != ""
}

// userHeader returns a new header with the client's own headers. It has room for the given number of other headers.
func (r *Request) userHeader(room int) Header {
	h := make(Header, len(r.User)+room)
	maps.Copy(h, r.User)
	return h
}
