package client

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// The defaults of a client. DefaultMaxDelay and DefaultAttempts are also the broker's defaults.
const (
	DefaultMaxDelay = 366 * 24 * time.Hour
	DefaultAttempts = 20
	DefaultTimeout  = 5 * time.Second
)

// Config has the broker's settings that the client needs. The zero Config is for a broker with the default settings.
type Config struct {
	// Prefix is the broker's DELAY_PREFIX. Defaults to message.DefaultPrefix.
	Prefix string
	// Levels are the broker's levels, as in DELAY_LEVELS: "default", or names such as "30s 5m 2500s". A delay that is not
	// in the list costs one more hop if its level has a name that is no plain duration, such as 2500s. A level that the
	// broker does not have does not affect the due time. See [Client.ReadLevels].
	Levels string
	// MaxDelay is the broker's DELAY_MAX_DELAY. A longer delay fails with ErrTooFar. Defaults to DefaultMaxDelay.
	MaxDelay time.Duration
	// Attempts is the broker's DELAY_ATTEMPTS, and the upper bound of MaxAttempts. Defaults to DefaultAttempts.
	Attempts int
	// Targets are the broker's DELAY_TARGETS: subjects, with wildcards. If empty, all targets are allowed.
	Targets []string
	// Timeout is the timeout of Timer, Lookup, ReadLevels, each request to a broker, and each publish of a Publisher. It
	// is also the timeout of a publish, cancel or move whose context has no deadline. Defaults to DefaultTimeout.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, message.DefaultPrefix)
	c.MaxDelay = cmp.Or(c.MaxDelay, DefaultMaxDelay)
	c.Attempts = cmp.Or(c.Attempts, DefaultAttempts)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return c
}

// check returns the names and the levels, or an error with all problems.
func (c Config) check() (message.Names, levels.Ladder, error) {
	var problems []error
	refuse := func(field string, err error) { problems = append(problems, fmt.Errorf("field %s: %w", field, err)) }
	names, err := message.NewNames(c.Prefix)
	if err != nil {
		refuse("Prefix", err)
	}
	var ladder levels.Ladder
	if c.Levels != "" {
		if ladder, err = levels.Parse(c.Levels); err != nil {
			refuse("Levels", err)
		}
	}
	for _, t := range c.Targets {
		if !message.ValidPattern(t) {
			refuse("Targets", fmt.Errorf("%q is not a subject", t))
		}
	}
	if c.Attempts < 0 {
		refuse("Attempts", fmt.Errorf("%d: want 1 or more", c.Attempts))
	}
	if c.MaxDelay < 0 {
		refuse("MaxDelay", fmt.Errorf("%s: want more than 0s", c.MaxDelay))
	}
	if c.Timeout < 0 {
		refuse("Timeout", fmt.Errorf("%s: want more than 0s", c.Timeout))
	}
	if len(problems) > 0 {
		return names, ladder, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	return names, ladder, nil
}
