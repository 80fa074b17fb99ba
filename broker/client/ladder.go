package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"delaybroker/levels"
)

// If no stream listens on the subject of a guessed level, the client publishes messages with that delay to the intake
// until skipTime has passed.
const skipTime = time.Minute

// plainNames maps a duration to the text of its plain duration, if there is one: a minute to 1m, not to 60s.
var plainNames = sync.OnceValue(func() map[time.Duration]string {
	names := make(map[time.Duration]string)
	for _, name := range levels.PlainDurations() {
		d, _ := levels.ParseDuration(name) // cannot fail
		if _, ok := names[d]; !ok || name == levels.FormatDuration(d) {
			names[d] = name
		}
	}
	return names
})

// A levelGuess guesses the name of the level for a delay. A wrong guess costs only a hop or a second publish.
type levelGuess struct {
	mu      sync.Mutex               // guards the fields below
	names   map[time.Duration]string // level names from Config.Levels or ReadLevels
	skipEnd map[string]time.Time     // end of the skipTime of each name on which no stream listened
}

func newLevelGuess(known levels.Ladder) *levelGuess {
	l := &levelGuess{skipEnd: make(map[string]time.Time)}
	l.learn(known)
	return l
}

func (l *levelGuess) learn(known levels.Ladder) {
	names := make(map[time.Duration]string)
	for _, level := range known.Levels() {
		names[level.Delay] = level.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = names
	clear(l.skipEnd)
}

// level returns the level name for a delay. Ok is false if the message must go through the intake.
func (l *levelGuess) level(d time.Duration, now time.Time) (name string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok = l.names[d]; !ok {
		name, ok = plainNames()[d]
	}
	return name, ok && !now.Before(l.skipEnd[name])
}

// recordMiss records that no stream listened on a level's subject. An empty name, of a level that the client did not
// guess, has no effect.
func (l *levelGuess) recordMiss(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipEnd[name] = now.Add(skipTime)
}

// ReadLevels reads the broker's levels from JetStream. They replace Config.Levels. The client needs permission to
// publish to $JS.API.STREAM.NAMES. If the name of a level is no plain duration, such as 2500s, ReadLevels saves a hop
// for every message with that delay.
func (c *Client) ReadLevels(ctx context.Context) error {
	names := c.policy.Names
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	streams, err := c.store.Streams(ctx, names.LevelFilter("*"))
	if err != nil {
		return fmt.Errorf("read the levels: %w", err)
	}
	var levelNames []string // without retired levels, which have no subject for clients
	for _, s := range streams {
		if level, ok := strings.CutPrefix(s, names.LevelStream("")); ok && s != names.IntakeStream() {
			levelNames = append(levelNames, level)
		}
	}
	ladder, err := levels.Parse(strings.Join(levelNames, " "))
	if err != nil {
		return fmt.Errorf("read the levels: %w: found the streams %q: %w", ErrNoBroker, streams, err)
	}
	c.levels.learn(ladder)
	return nil
}
