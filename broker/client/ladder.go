package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"delaybroker/levels"
)

// skipTime is how long the client skips a level after no stream took its subject. Messages with its delay then go
// through the intake.
const skipTime = time.Minute

// plainNames returns the most likely level name of each common duration: the name in the default ladder, or else the
// name with the largest unit. In every broker, some stream listens on each of these names: the level's or the intake's.
var plainNames = sync.OnceValue(func() map[time.Duration]string {
	all := make(map[time.Duration]string)
	for _, name := range levels.PlainDurations() {
		d, err := levels.ParseDuration(name)
		if err != nil {
			panic("bug: whole duration: " + err.Error())
		}
		if _, named := all[d]; !named || name == levels.FormatDuration(d) {
			all[d] = name
		}
	}
	for _, l := range levels.Default().Levels() {
		all[l.Delay] = l.Name
	}
	return all
})

// A ladder guesses the level name of a delay. A wrong guess costs only a hop or a second publish.
type ladder struct {
	mu        sync.Mutex               // guards the fields below
	known     map[time.Duration]string // level names from Config.Levels or ReadLevels
	skipUntil map[string]time.Time     // names that no stream took, with the end of skipTime
}

func newLadder(known levels.Ladder) *ladder {
	l := &ladder{skipUntil: make(map[string]time.Time)}
	l.learn(known)
	return l
}

func (l *ladder) learn(known levels.Ladder) {
	all := make(map[time.Duration]string)
	for _, level := range known.Levels() {
		all[level.Delay] = level.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = all
	clear(l.skipUntil)
}

// token returns the level name for a delay. ok is false if the message must go through the intake.
func (l *ladder) token(d time.Duration, now time.Time) (name string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok = l.known[d]; !ok {
		name, ok = plainNames()[d]
	}
	return name, ok && !now.Before(l.skipUntil[name])
}

// recordMiss records that no stream took a level's subject. Name is empty if the level was not guessed.
func (l *ladder) recordMiss(name string, now time.Time) {
	if name == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipUntil[name] = now.Add(skipTime)
}

// ReadLevels reads the broker's levels from JetStream, and uses them in place of Config.Levels. It needs permission to
// publish to $JS.API.STREAM.NAMES. It is useful only for levels with unusual names, such as 2500s: every message with
// that delay saves a hop. If the levels change later, the due times stay right, and a further call saves the hop again.
func (c *Client) ReadLevels(ctx context.Context) error {
	names := c.policy.Names
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	streams, err := c.store.Streams(ctx, names.LevelFilter("*"))
	if err != nil {
		return fmt.Errorf("read the levels: %w", err)
	}
	var found []string // levels that take new messages; a retired level does not listen on the filter
	for _, s := range streams {
		if level, ok := strings.CutPrefix(s, names.LevelStream("")); ok && s != names.IntakeStream() {
			found = append(found, level)
		}
	}
	known, err := levels.Parse(strings.Join(found, " "))
	if err != nil {
		return fmt.Errorf("read the levels: %w: the streams %s", ErrNoBroker, strings.Join(streams, " "))
	}
	c.levels.learn(known)
	return nil
}
