package journal

import "errors"

// ErrNoJournal is returned if the journal's stream does not exist.
var ErrNoJournal = errors.New("there is no journal: set DELAY_JOURNAL for the brokers, such as DELAY_JOURNAL=7d")
