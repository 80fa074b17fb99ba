package bench

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// ownPrefix is what a run calls itself. Nothing else is ever removed: see site.sweep.
var ownPrefix = regexp.MustCompile(`^bench-[a-z2-7]{8}$`)

// Names are the subjects and streams of a run, all of them from one prefix, which is the broker's too.
type Names struct {
	prefix string // what all begin with; those of streams in upper case
	broker message.Names
}

// NewNames returns the names below a broker's prefix.
func NewNames(prefix string) (Names, error) {
	broker, err := message.NewNames(prefix)
	if err != nil {
		return Names{}, fmt.Errorf("names of the run: %w", err)
	}
	return Names{prefix: prefix, broker: broker}, nil
}

// NewPrefix returns a prefix that no other run has.
func NewPrefix() string { return "bench-" + strings.ToLower(rand.Text()[:8]) }

// Target is a subject of TargetStream, at which the messages of a broker and of the pipeline arrive.
func (n Names) Target(i int) string  { return n.prefix + "-to." + strconv.Itoa(i) }
func (n Names) targets() string      { return n.prefix + "-to.>" }
func (n Names) TargetStream() string { return n.stem() + "-TO" }

// core is a subject of plain subscribers.
func (n Names) core(i int) string { return n.prefix + "-core." + strconv.Itoa(i) }
func (n Names) cores() string     { return n.prefix + "-core.>" }

// ScheduleStream has the schedules of the server's own scheduler, one subject for each, and what it makes of them: its
// targets have to be in the same stream.
func (n Names) ScheduleStream() string { return n.stem() + "-SCHEDULES" }
func (n Names) schedule(i int) string  { return n.prefix + "-schedule." + strconv.Itoa(i) }
func (n Names) schedules() string      { return n.prefix + "-schedule.*" }
func (n Names) fired(i int) string     { return n.prefix + "-fired." + strconv.Itoa(i) }
func (n Names) allFired() string       { return n.prefix + "-fired.>" }

// timer is the subject of a named timer, or of a schedule of the server, of one turn.
func (n Names) timer(side Side, key string, target int) string {
	if side == Scheduler {
		return n.prefix + "-schedule." + key
	}
	return n.broker.Timer(key, n.Target(target))
}

// SourceStream is what the pipeline reads. A message names the number of its target.
func (n Names) SourceStream() string { return n.stem() + "-SOURCE" }
func (n Names) source(i int) string  { return n.prefix + "-source." + strconv.Itoa(i) }
func (n Names) sources() string      { return n.prefix + "-source.*" }

// runStream says that a run is on: see site.mark.
func (n Names) runStream() string { return n.stem() + "-RUN" }
func (n Names) run() string       { return n.prefix + "-run" }

// Arrivals is the stream in which a side's messages arrive, and the subject that they have there.
func (n Names) Arrivals(side Side) (cfg jetstream.StreamConfig, subject string) {
	if side == Scheduler {
		return jetstream.StreamConfig{
			Name: n.ScheduleStream(), Subjects: []string{n.schedules(), n.allFired()}, AllowMsgSchedules: true,
		}, n.allFired()
	}
	return jetstream.StreamConfig{Name: n.TargetStream(), Subjects: []string{n.targets()}}, n.targets()
}

// stem has no underscore behind it, which those of the broker's own streams have.
func (n Names) stem() string { return strings.ToUpper(n.prefix) }
