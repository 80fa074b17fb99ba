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

// runPrefix matches the prefixes that NewPrefix returns: see deadRun.
var runPrefix = regexp.MustCompile(`^bench-[a-z2-7]{8}$`)

// Names are the names of the subjects and streams of a run. All names begin with the prefix, which the run shares with
// its broker.
type Names struct {
	prefix string // of subjects, in lower case; the names of streams begin with the prefix in upper case
	broker message.Names
}

// NewNames returns the names with a prefix. It returns an error if the prefix is not valid for a broker.
func NewNames(prefix string) (Names, error) {
	broker, err := message.NewNames(prefix)
	if err != nil {
		return Names{}, fmt.Errorf("derive the names of the run: %w", err)
	}
	return Names{prefix: prefix, broker: broker}, nil
}

// NewPrefix returns a random prefix for a run.
func NewPrefix() string { return "bench-" + strings.ToLower(rand.Text()[:8]) }

// Target returns the subject of a target by its number. The broker and the pipeline deliver to this subject, and
// targetStream stores its messages.
func (n Names) Target(i int) string  { return n.prefix + "-to." + strconv.Itoa(i) }
func (n Names) targets() string      { return n.prefix + "-to.>" }
func (n Names) targetStream() string { return n.stem() + "-TO" }

// core returns the subject of a target with a plain subscriber, by the number of the target.
func (n Names) core(i int) string   { return n.prefix + "-core." + strconv.Itoa(i) }
func (n Names) coreTargets() string { return n.prefix + "-core.>" }

// scheduleStream returns the stream of the side Scheduler. The stream has one subject for each schedule. The server
// requires a schedule and its target in the same stream, so the stream also stores the delivered messages.
func (n Names) scheduleStream() string { return n.stem() + "-SCHEDULES" }
func (n Names) schedule(i int) string  { return n.prefix + "-schedule." + strconv.Itoa(i) }
func (n Names) schedules() string      { return n.prefix + "-schedule.*" }
func (n Names) firing(i int) string    { return n.prefix + "-fired." + strconv.Itoa(i) }
func (n Names) firings() string        { return n.prefix + "-fired.>" }

// timer returns the subject on which the load sets a timer or, for the side Scheduler, a schedule.
func (n Names) timer(side Side, key string, target int) string {
	if side == Scheduler {
		return n.prefix + "-schedule." + key
	}
	return n.broker.Timer(key, n.Target(target))
}

// sourceStream returns the stream that the pipeline reads. Each target has a subject in the stream: see Names.source.
func (n Names) sourceStream() string { return n.stem() + "-SOURCE" }
func (n Names) source(i int) string  { return n.prefix + "-source." + strconv.Itoa(i) }
func (n Names) sources() string      { return n.prefix + "-source.*" }

// runStream returns the stream of the run marker: see site.createMarker.
func (n Names) runStream() string     { return n.stem() + "-RUN" }
func (n Names) markerSubject() string { return n.prefix + "-run" }

// Arrivals returns the stream in which a side's messages arrive, and their subject.
func (n Names) Arrivals(side Side) (cfg jetstream.StreamConfig, subject string) {
	if side == Scheduler {
		return jetstream.StreamConfig{
			Name: n.scheduleStream(), Subjects: []string{n.schedules(), n.firings()}, AllowMsgSchedules: true,
		}, n.firings()
	}
	return jetstream.StreamConfig{Name: n.targetStream(), Subjects: []string{n.targets()}}, n.targets()
}

// stem returns the prefix in upper case. A hyphen follows in the names of the run's streams, and an underscore in the
// names of the broker's streams, so no two names are equal.
func (n Names) stem() string { return strings.ToUpper(n.prefix) }
