package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"delaybroker/levels"
)

// skipTime is the time for which the client does not use a level's subject after no stream listened on it. Messages
// with the level's delay then go through the intake.
const skipTime = time.Minute

// plainNames returns the most likely level name of each common duration: the name in the default ladder or, without
// such a level, the name with the largest unit. In every broker, a stream listens on each of these names: the stream of
// a level or the intake.
var plainNames = sync.OnceValue(func() map[time.Duration]string {
	all := make(map[time.Duration]string)
	for _, name := range levels.PlainDurations() {
		d, err := levels.ParseDuration(name)
		if err != nil {
			panic("bug: plain duration: " + err.Error())
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
	skipUntil map[string]time.Time     // end of the skipTime of each name on which no stream listened
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

// token returns the level name for a delay. Ok is false if the message must go through the intake.
func (l *ladder) token(d time.Duration, now time.Time) (name string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok = l.known[d]; !ok {
		name, ok = plainNames()[d]
	}
	return name, ok && !now.Before(l.skipUntil[name])
}

// recordMiss records that no stream listened on a level's subject. It does nothing if name is empty: then the level was
// not guessed.
func (l *ladder) recordMiss(name string, now time.Time) {
	if name == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipUntil[name] = now.Add(skipTime)
}

// ReadLevels reads the broker's levels from JetStream, and uses them in place of Config.Levels. The client needs
// permission to publish to $JS.API.STREAM.NAMES. ReadLevels is useful only for levels with unusual names, such as
// 2500s: it saves a hop for every message with that delay. If the levels change later, the due times remain correct,
// and another call of ReadLevels saves the hops of the new levels.
func (c *Client) ReadLevels(ctx context.Context) error {
	names := c.policy.Names
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	streams, err := c.store.Streams(ctx, names.LevelFilter("*"))
	if err != nil {
		return fmt.Errorf("read the levels: %w", err)
	}
	var found []string // levels that accept new messages; a retired level does not listen on the filter
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
