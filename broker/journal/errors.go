package journal

import "errors"

// ErrNone is returned by Search when there is no journal.
var ErrNone = errors.New("there is no journal here: brokers keep one with DELAY_JOURNAL, as in DELAY_JOURNAL=7d")

// errNewer is returned for a batch of a newer broker.
var errNewer = errors.New("written by a newer broker")
