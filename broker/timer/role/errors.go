package role

import "errors"

var (
	// errDeposed is returned for an answer that cannot be the present truth of a stream.
	errDeposed = errors.New("the stream's leader has an older state than was read")
	// errUnsettled is returned while a round stays that has fired, and what was put over the next one has to stay, too.
	errUnsettled = errors.New("a round before it is on its way")
	// errReplaced is returned for a debounced set that was replaced while its run was read.
	errReplaced = errors.New("the set, or the first of its run, has gone meanwhile")
	// errCursor is returned for a cursor that none of us has written.
	errCursor = errors.New("the last entry on the cursor's subject is no cursor of a broker")
)
