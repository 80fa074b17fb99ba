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

// A Side is a system that delays messages.
type Side string

// The sides of a run. The package documentation describes them.
const (
	Broker    Side = "broker"
	Scheduler Side = "scheduler"
	Pipeline  Side = "pipeline"
)

// ParseSides parses the sides to measure with the broker, as in "scheduler,pipeline".
func ParseSides(s string) ([]Side, error) {
	var all []Side
	var problems []error
	for word := range strings.SplitSeq(s, ",") {
		side := Side(strings.TrimSpace(word))
		switch {
		case side == "":
		case side != Scheduler && side != Pipeline:
			problems = append(problems, fmt.Errorf("%q: want %s or %s", side, Scheduler, Pipeline))
		case !slices.Contains(all, side):
			all = append(all, side)
		}
	}
	return all, errors.Join(problems...)
}

// MinSize is the number of bytes that a run needs in a payload.
const MinSize = 16

// A Stamp is the beginning of a payload: the turn and the number of the message, and its due time.
type Stamp struct {
	Turn, Number uint32
	Due          time.Time
}

// Payload returns a payload of the given size that begins with the stamp.
func (s Stamp) Payload(size int) []byte {
	data := make([]byte, max(size, MinSize))
	binary.BigEndian.PutUint32(data, s.Turn)
	binary.BigEndian.PutUint32(data[4:], s.Number)
	binary.BigEndian.PutUint64(data[8:], uint64(s.Due.UnixNano()))
	return data
}

// ReadStamp parses the stamp of a payload. Ok is false if the payload has none.
func ReadStamp(data []byte) (s Stamp, ok bool) {
	if len(data) < MinSize {
		return Stamp{}, false
	}
	return Stamp{
		Turn: binary.BigEndian.Uint32(data), Number: binary.BigEndian.Uint32(data[4:]),
		Due: time.Unix(0, int64(binary.BigEndian.Uint64(data[8:]))),
	}, true
}

// plainDurations returns the durations for which a broker accepts a level's subject.
var plainDurations = sync.OnceValue(func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range levels.PlainDurations() {
		all[name] = true
	}
	return all
})

// Message returns a message of the load. The delay begins at now, by the server's clock.
func (l Load) Message(n Names, number int, now time.Time) *nats.Msg {
	if l.Verb != "" {
		return l.change(n, number)
	}
	delay := l.Delays[number%len(l.Delays)].forMessage(number)
	due := now.Add(delay)
	if !l.Due.IsZero() {
		due = l.Due
	} else if l.Side == Pipeline && !l.ordered() {
		due = now // the pipeline reads in order, so a waiting message would block earlier ones
	}
	target := number % l.Targets
	m := &nats.Msg{Data: Stamp{Turn: l.Turn, Number: uint32(number), Due: due}.Payload(l.Size)}
	switch l.Side {
	case Scheduler:
		m.Subject = n.schedule(number)
		m.Header = nats.Header{
			"Nats-Schedule":        {"@at " + due.UTC().Format(time.RFC3339Nano)},
			"Nats-Schedule-Target": {n.fired(target)},
		}
	case Pipeline:
		m.Subject = n.source(target)
	default:
		m.Subject = l.request(n, delay, target)
	}
	return m
}

// request returns the broker's subject for the message.
func (l Load) request(n Names, delay time.Duration, i int) string {
	target := n.Target(i)
	if l.Core {
		target = n.core(i)
	}
	if !l.Due.IsZero() {
		return n.broker.At(strconv.FormatInt(l.Due.UnixMilli(), 10), target)
	}
	if name := levels.FormatDuration(delay); plainDurations()[name] {
		return n.broker.Level(name, target)
	}
	return n.broker.In(strconv.FormatInt(delay.Milliseconds(), 10)+"ms", target)
}

// ordered reports whether messages are due in the order of their publishing.
func (l Load) ordered() bool { return len(l.Delays) == 1 && !l.Delays[0].Random }
