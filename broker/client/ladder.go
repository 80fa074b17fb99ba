package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"delaybroker/levels"
)

// missedFor is how long a level is not tried again that no stream took messages for. Until then its delay goes through
// the intake.
const missedFor = time.Minute

// plain are the names by which a length is most probably a level: the name that the default ladder has for it, or else
// the largest unit's. Some stream of a broker listens on each, whatever its levels are: that of the level, or the
// intake's.
var plain = sync.OnceValue(func() map[time.Duration]string {
	all := make(map[time.Duration]string)
	for _, name := range levels.Whole() {
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

// A ladder guesses by which name a delay is a level. A wrong guess costs a hop or a second publish, and nothing else.
type ladder struct {
	mu    sync.Mutex               // guards what follows
	known map[time.Duration]string // levels that somebody has named
	away  map[string]time.Time     // guesses that no stream took, and until when they are not made again
}

func newLadder(known levels.Ladder) *ladder {
	l := &ladder{away: make(map[string]time.Time)}
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
	clear(l.away)
}

// token is the name for a delay; ok is false if it is to go through the intake.
func (l *ladder) token(d time.Duration, now time.Time) (name string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok = l.known[d]; !ok {
		name, ok = plain()[d]
	}
	return name, ok && !now.Before(l.away[name])
}

// missed notes that no stream took a guess.
func (l *ladder) missed(name string, now time.Time) {
	if name == "" {
		return // not a guess
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[name] = now.Add(missedFor)
}

// ReadLevels asks JetStream which levels the broker has, in place of Config.Levels. It needs the right to publish to
// $JS.API.STREAM.NAMES, and is worth it only for levels with unusual names, such as 2500s: every message with that
// delay saves a hop. When levels have changed since, nothing is wrong; call it again, or never.
func (c *Client) ReadLevels(ctx context.Context) error {
	names := c.policy.Names
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	streams, err := c.store.Streams(ctx, names.LevelFilter("*"))
	if err != nil {
		return fmt.Errorf("read the levels: %w", err)
	}
	var found []string // those of levels that take new messages; a retired one does not listen there
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
