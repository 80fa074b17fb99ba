package role

import "errors"

var (
	// errDeposed is returned if the leader is deposed, or if the entry was just removed.
	errDeposed = errors.New("the stream's leader lacks an entry that was read before")
	// errUnsettled is returned by removeEntries if removal.entry must stay, because an earlier round is not settled.
	errUnsettled = errors.New("an earlier round is not settled")
	// errReplaced is returned by readRun if the given set is not stored any more.
	errReplaced = errors.New("the set was removed")
	// errRunEnded is returned by readRun if the first set that it has read was removed in the meantime.
	errRunEnded = errors.New("an earlier run of the timer was removed during the read")
	// errCursor is returned if the last entry on the cursor's subject is invalid, or has no broker's seal.
	errCursor = errors.New("the last entry on the cursor's subject is not a broker's cursor")
)
