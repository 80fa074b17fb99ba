package role

import "errors"

var (
	// errDeposed is returned for an answer that cannot be the present state of a stream.
	errDeposed = errors.New("the stream's leader has an older state than was read")
	// errUnsettled is returned if a round that has fired must stay, and so must the entry over the next one.
	errUnsettled = errors.New("a round before it is on its way")
	// errReplaced is returned if a debounced set was replaced while its run was read.
	errReplaced = errors.New("the set, or the first one of its run, was removed meanwhile")
	// errCursor is returned for a cursor that no broker of ours has written.
	errCursor = errors.New("the last entry on the cursor's subject is no cursor of a broker")
)
