package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/levels"
)

// A Side is one of the compared systems.
type Side string

// The sides. The package documentation describes them.
const (
	Broker    Side = "broker"
	Scheduler Side = "scheduler"
	Pipeline  Side = "pipeline"
)

// ParseSides parses the sides to compare with the broker, as in "scheduler,pipeline". It ignores repetitions.
func ParseSides(s string) ([]Side, error) {
	var sides []Side
	var problems []error
	for word := range strings.SplitSeq(s, ",") {
		side := Side(strings.TrimSpace(word))
		switch {
		case side == "":
		case side != Scheduler && side != Pipeline:
			problems = append(problems, fmt.Errorf("%q: want %s or %s", side, Scheduler, Pipeline))
		case !slices.Contains(sides, side):
			sides = append(sides, side)
		}
	}
	return sides, errors.Join(problems...)
}

// MinSize is the minimum size of a payload, in bytes: the size of a Stamp.
const MinSize = 16

// A Stamp is the beginning of a payload: the turn, the number of the message, and its requested due time.
type Stamp struct {
	Turn, Number uint32
	Due          time.Time
}

// Payload returns a payload that begins with the stamp. It has size bytes, or MinSize if that is more.
func (s Stamp) Payload(size int) []byte {
	data := make([]byte, max(size, MinSize))
	binary.BigEndian.PutUint32(data, s.Turn)
	binary.BigEndian.PutUint32(data[4:], s.Number)
	binary.BigEndian.PutUint64(data[8:], uint64(s.Due.UnixNano()))
	return data
}

// ReadStamp parses the stamp of a payload. Ok is false for a payload that is too short for a stamp.
func ReadStamp(data []byte) (s Stamp, ok bool) {
	if len(data) < MinSize {
		return Stamp{}, false
	}
	return Stamp{
		Turn: binary.BigEndian.Uint32(data), Number: binary.BigEndian.Uint32(data[4:]),
		Due: time.Unix(0, int64(binary.BigEndian.Uint64(data[8:]))),
	}, true
}

// plainDurations holds the durations that have a subject in every broker: see levels.PlainDurations.
var plainDurations = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for _, name := range levels.PlainDurations() {
		set[name] = true
	}
	return set
})

// Message returns a message of the load. Now is a time by the server's clock.
func (l Load) Message(n Names, number int, now time.Time) *nats.Msg {
	if l.Verb != "" { // a load of timers
		return l.change(n, number)
	}
	delay := l.Delays[number%len(l.Delays)].messageDelay(number)
	due := now.Add(delay)
	if !l.Due.IsZero() {
		due = l.Due
	} else if l.Side == Pipeline && !l.ordered() {
		due = now // the pipeline reads in order: a waiting message would delay a message with a shorter delay
	}
	target := number % l.Targets
	m := &nats.Msg{Data: Stamp{Turn: l.Turn, Number: uint32(number), Due: due}.Payload(l.Size)}
	switch l.Side {
	case Scheduler:
		m.Subject = n.schedule(number)
		m.Header = nats.Header{
			"Nats-Schedule":        {"@at " + due.UTC().Format(time.RFC3339Nano)},
			"Nats-Schedule-Target": {n.firing(target)},
		}
	case Pipeline:
		m.Subject = n.source(target)
	default:
		m.Subject = l.requestSubject(n, delay, target)
	}
	return m
}

func (l Load) requestSubject(n Names, delay time.Duration, targetNumber int) string {
	target := n.Target(targetNumber)
	if l.Core {
		target = n.core(targetNumber)
	}
	if !l.Due.IsZero() {
		return n.broker.At(strconv.FormatInt(l.Due.UnixMilli(), 10), target)
	}
	if name := levels.FormatDuration(delay); plainDurations()[name] {
		return n.broker.Level(name, target)
	}
	return n.broker.In(strconv.FormatInt(delay.Milliseconds(), 10)+"ms", target)
}

// ordered reports whether the messages become due in the order of their publishes.
func (l Load) ordered() bool { return len(l.Delays) == 1 && !l.Delays[0].Random }
