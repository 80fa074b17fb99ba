package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"delaybroker/levels"
)

// randomPrefix is the prefix of a random delay in text.
const randomPrefix = "random:"

// A Delay is a constant delay, or the maximum of random delays. Each message has its own random delay: at least 1 ms,
// in whole milliseconds.
type Delay struct {
	time.Duration
	Random bool // the Duration is the maximum
}

// ParseDelays parses a list of delays, as in "1s,5s,random:1m".
func ParseDelays(s string) ([]Delay, error) {
	var delays []Delay
	var problems []error
	for word := range strings.SplitSeq(s, ",") {
		text, isRandom := strings.CutPrefix(strings.TrimSpace(word), randomPrefix)
		d, err := levels.ParseDuration(text)
		if err == nil && d < time.Millisecond {
			err = errors.New("want at least 1ms")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("delay %q: %w", word, err))
			continue
		}
		delays = append(delays, Delay{d, isRandom})
	}
	return delays, errors.Join(problems...)
}

func (d Delay) String() string {
	if d.Random {
		return randomPrefix + levels.FormatDuration(d.Duration)
	}
	return levels.FormatDuration(d.Duration)
}

// MarshalText returns the text that ParseDelays parses.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the result of [Delay.MarshalText].
func (d *Delay) UnmarshalText(text []byte) error {
	delays, err := ParseDelays(string(text))
	if err == nil && len(delays) != 1 {
		err = fmt.Errorf("delay %q: want exactly one", text)
	}
	if err == nil {
		*d = delays[0]
	}
	return err
}

// messageDelay returns the delay of a message. The delay depends only on the message's number, so all sides have the
// same delays.
func (d Delay) messageDelay(number int) time.Duration {
	if !d.Random {
		return d.Duration
	}
	return time.Duration(1+splitmix64(uint64(number))%uint64(d.Milliseconds())) * time.Millisecond
}

// splitmix64 is the hash function of the random number generator of this name.
func splitmix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
