package levels

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
)

// Bounds of a ladder.
const (
	// MaxLevels is the maximum number of levels, and so of the streams that one setting can create.
	MaxLevels = 64

	// MinLevel is the minimum delay of a level. A message leaves its level up to 50 ms early, to reach the wheel in time.
	// So a level must be much longer than 50 ms: otherwise the message would pass the level repeatedly.
	MinLevel = time.Second

	// MaxLevel is the maximum delay of a level. A message with a longer delay passes the level several times.
	MaxLevel = 366 * day

	// MinHorizon is the minimum of [Ladder.Horizon]: for a shorter time, a hop is not worth its write. See "The horizon"
	// in the package documentation.
	MinHorizon = 3 * time.Second
)

// The presets of Parse. RocketMQ's eighteen levels are the default of its setting messageDelayLevel. See "The ladder"
// in the package documentation for the other levels of the default ladder.
const (
	presetRocketMQ = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
	presetDefault  = presetRocketMQ + " 3s 7s 20s 45s 15m 90m 4h 6h 12h 1d 2d 3d 7d 14d"
	presetShort    = "1s 5s 30s 2m 10m 1h 6h 1d"
)

// A Level is a fixed delay. Its name is a token of subjects and stream names, and keeps its spelling: "60s" does not
// become "1m".
type Level struct {
	Name  string
	Delay time.Duration
}

// A Ladder is a set of levels with different delays. It does not change and is safe for concurrent use. [Default] and
// [Parse] return ladders. The zero Ladder has no levels, and its Horizon panics.
type Ladder struct {
	levels []Level // ascending
}

// Default returns the default ladder: RocketMQ's eighteen levels and fourteen that shorten chains.
func Default() Ladder {
	l, err := Parse("default")
	if err != nil {
		panic("bug: default ladder: " + err.Error())
	}
	return l
}

// Parse returns the ladder of a spec. The spec has the names of levels, separated by spaces or commas and in any order,
// or one of the words "default", "rocketmq" (RocketMQ's eighteen levels) and "short" (eight levels, for accounts with
// few streams).
//
// The error wraps [ErrLadder] and reports all problems at once: a name that is not a single number and unit, a level
// shorter than [MinLevel] or longer than [MaxLevel], two levels with the same delay, more than [MaxLevels] levels, or
// no level.
func Parse(spec string) (Ladder, error) {
	switch strings.TrimSpace(spec) {
	case "default":
		spec = presetDefault
	case "rocketmq":
		spec = presetRocketMQ
	case "short":
		spec = presetShort
	}

	var levels []Level
	var problems []error
	names := strings.FieldsFunc(spec, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, name := range names {
		level, err := parseLevel(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		levels = append(levels, level)
	}
	slices.SortStableFunc(levels, func(a, b Level) int { return cmp.Compare(a.Delay, b.Delay) })
	for i := 1; i < len(levels); i++ {
		if a, b := levels[i-1], levels[i]; a.Delay == b.Delay {
			problems = append(problems, fmt.Errorf("levels %q and %q are equally long: keep one", a.Name, b.Name))
		}
	}
	switch {
	case len(names) == 0:
		problems = append(problems, errors.New(`no level: write names such as "1s 30s 5m 1h", or default`))
	case len(names) > MaxLevels:
		problems = append(problems, fmt.Errorf("%d levels: keep at most %d", len(names), MaxLevels))
	}
	if len(problems) > 0 {
		return Ladder{}, fmt.Errorf("%w: %w", ErrLadder, errors.Join(problems...))
	}
	return Ladder{levels}, nil
}

func parseLevel(name string) (Level, error) {
	delay, err := ParseDuration(name)
	switch {
	case err != nil:
		return Level{}, fmt.Errorf("level %q: %w", name, err)
	case !isPlain(name):
		return Level{}, fmt.Errorf("level %q: write one number and unit, such as 90m for 1h30m", name)
	case delay < MinLevel:
		return Level{}, fmt.Errorf("level %q: at least %s; shorter delays need no level", name, FormatDuration(MinLevel))
	case delay > MaxLevel:
		return Level{}, fmt.Errorf("level %q: at most %s; longer delays pass it several times", name,
			FormatDuration(MaxLevel))
	}
	return Level{Name: name, Delay: delay}, nil
}

// Levels returns the levels from the shortest to the longest, in a new slice.
func (l Ladder) Levels() []Level {
	return slices.Clone(l.levels)
}

// Lookup returns the level with the given name. The spelling must be the same.
func (l Ladder) Lookup(name string) (Level, bool) {
	for _, level := range l.levels {
		if level.Name == name {
			return level, true
		}
	}
	return Level{}, false
}

// Horizon returns the delay of the shortest level, but at least [MinHorizon]. A message whose remaining time is below
// the horizon waits on the wheel. Levels below the horizon are for clients that publish directly to these levels, and
// for messages for which the wheel has no room.
func (l Ladder) Horizon() time.Duration {
	return max(l.levels[0].Delay, MinHorizon)
}

// ShorterLevel returns the longest level that is shorter than the given level, which need not belong to this ladder. If
// the stream of the given level is full, a message hops into the shorter level, which may be below the horizon. If no
// level is shorter, ok is false.
func (l Ladder) ShorterLevel(level Level) (shorter Level, ok bool) {
	shorter, ok = l.LongestFit(level.Delay - 1)
	if !ok {
		return Level{}, false
	}
	return shorter, true
}

// LongestFit returns the longest level that is not longer than d. If all levels are longer, it returns the shortest
// level and false. It does not allocate.
func (l Ladder) LongestFit(d time.Duration) (Level, bool) {
	n := sort.Search(len(l.levels), func(i int) bool { return l.levels[i].Delay > d })
	switch {
	case len(l.levels) == 0:
		return Level{}, false
	case n == 0:
		return l.levels[0], false
	}
	return l.levels[n-1], true
}

// LeaveTime returns the time at which a message leaves the stream of a level whose delay ends at end. If the time from
// end to due is at most the horizon, the message stays in the stream until due, also while it waits on the wheel.
// Otherwise the message hops at end.
func (l Ladder) LeaveTime(end, due time.Time) time.Time {
	if due.Sub(end) <= l.Horizon() {
		return due
	}
	return end
}

// String returns the names from the shortest level to the longest, in a form that [Parse] accepts.
func (l Ladder) String() string {
	names := make([]string, len(l.levels))
	for i, level := range l.levels {
		names[i] = level.Name
	}
	return strings.Join(names, " ")
}
