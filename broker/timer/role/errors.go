package role

import "errors"

var (
	// errDeposed is returned if the leader is deposed, or if the entry was just removed.
	errDeposed = errors.New("the stream's leader lacks an entry that was read before")
	// errUnsettled is returned by RemoveEntries if Removal.Entry must stay, because an earlier round is not settled.
	errUnsettled = errors.New("an earlier round is not settled")
	// errReplaced is returned if a set of a run was removed while the run was read.
	errReplaced = errors.New("the set, or the first set of its run, was removed during the read")
	// errCursor is returned if the last entry on the cursor's subject is invalid, or has no broker's seal.
	errCursor = errors.New("the last entry on the cursor's subject is not a broker's cursor")
)
