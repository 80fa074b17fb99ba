package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// ErrNoRetryLane is returned if the query begins in a retry lane that does not exist or did not answer.
var ErrNoRetryLane = errors.New("the retry lane does not exist, or its leader does not answer")

// RetryState is the reason why a message is in a retry lane.
type RetryState string

// The states.
const (
	Refused    RetryState = "refused"    // its target refused it
	Deferred   RetryState = "deferred"   // its target is slow or does not answer, or JetStream has no room
	Resent     RetryState = "resent"     // a resent dead letter, not yet delivered
	Unreadable RetryState = "unreadable" // this program cannot parse it: its writer is a newer broker, or not a broker
)

// RetryGroup describes the messages with one target and one state.
type RetryGroup struct {
	Target   string     `json:"target"` // empty for messages of further groups, beyond maxGroups
	State    RetryState `json:"state"`
	Messages uint64     `json:"messages"`
	Attempts int        `json:"attempts"`                   // refusals of the message with the fewest remaining attempts
	Allowed  int        `json:"attempts_allowed,omitempty"` // maximum number of attempts of that message
	Next     time.Time  `json:"next_attempt,omitzero"`      // the earliest next attempt in the group
	ID       string     `json:"id,omitempty"`               // Delay-Id of the message with the earliest next attempt
	Reason   string     `json:"last_reason,omitempty"`      // reason of the newest message
	Since    time.Time  `json:"since,omitzero"`             // the earliest failure of a message in the group
	Until    time.Time  `json:"until,omitzero"`             // the latest failure of a message in the group

	newest time.Time // time of storage of the newest message
}

// RetryReport is a snapshot of the retry lanes. The largest group is first.
type RetryReport struct {
	Time         time.Time             `json:"time"`     // by the server's clock
	Waiting      uint64                `json:"waiting"`  // messages in all retry lanes that answered
	Messages     uint64                `json:"messages"` // messages that were read
	States       map[RetryState]uint64 `json:"states"`   // messages that were read, by state
	Groups       []*RetryGroup         `json:"-"`
	Paused       []Pause               `json:"paused"`              // the retries of paused targets wait in another stream
	TooLarge     []string              `json:"too_large,omitempty"` // see Lanes.TooLarge
	NextPosition string                `json:"go_on,omitempty"`     // for RetryQuery.From; empty at the end
}

// RetryQuery is the query of Retrying.
type RetryQuery struct {
	Target   string                     // a pattern; empty for all
	From     MessageRef                 // the stream and sequence to begin with; the zero value means the first message
	MaxRead  uint64                     // maximum number of messages to read
	Progress func(read, waiting uint64) // nil for no progress
}

// Retrying counts the messages in the retry lanes by target and state. It reads only headers, and no message stored
// after the call began.
func (i *Inspector) Retrying(ctx context.Context, query RetryQuery) (RetryReport, error) {
	v, err := i.Lanes(ctx, 0)
	if err != nil {
		return RetryReport{}, err
	}
	return i.RetryingIn(ctx, v, query)
}

// RetryingIn is like Retrying, for lanes that the caller has just read.
func (i *Inspector) RetryingIn(ctx context.Context, v Lanes, query RetryQuery) (RetryReport, error) {
	c := retryCount{
		Inspector: i, query: query, groups: make(map[retryKey]*RetryGroup),
		report: RetryReport{
			Time: v.Time, States: make(map[RetryState]uint64), Paused: v.Paused, TooLarge: v.TooLarge(),
		},
	}
	notRead := func(l Lane) bool { return l.Kind != streams.Retry || l.Info == nil }
	lanes := slices.DeleteFunc(slices.Clone(v.Lanes), notRead)
	for _, l := range lanes {
		c.report.Waiting += l.Pending
	}
	if first := query.From.ID.Stream; first != "" {
		n := slices.IndexFunc(lanes, func(l Lane) bool { return l.Stream == first })
		if n < 0 {
			return RetryReport{}, fmt.Errorf("%w: %s; the lanes that answered are %s", ErrNoRetryLane, first, streamsOf(lanes))
		}
		lanes = lanes[n:]
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	for _, l := range lanes {
		if err := c.count(ctx, l); err != nil {
			return RetryReport{}, Cause(ctx, scanError(l.Stream, err))
		}
		if c.report.NextPosition != "" {
			break
		}
	}
	slices.SortFunc(c.report.Groups, func(a, b *RetryGroup) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), strings.Compare(a.Target, b.Target),
			strings.Compare(string(a.State), string(b.State)))
	})
	return c.report, nil
}

func streamsOf(lanes []Lane) string {
	var names []string
	for _, l := range lanes {
		names = append(names, l.Stream)
	}
	return strings.Join(names, ", ")
}

// retryKey identifies a group.
type retryKey struct {
	target string
	state  RetryState
}

// A retryCount is the state of one call of Retrying.
type retryCount struct {
	*Inspector
	query  RetryQuery
	report RetryReport
	groups map[retryKey]*RetryGroup
}

// count counts the messages of one lane. It reads only the broker's own subjects.
func (c *retryCount) count(ctx context.Context, l Lane) error {
	if l.Pending == 0 {
		return nil
	}
	scan := c.ScanHeaders(l.Stream, "retrying")
	scan.To = l.Info.State.LastSeq
	// a list of filters: a consumer with a single filter would need another permission
	scan.Filters = []string{c.names.Retry(l.Level, cmp.Or(c.query.Target, ">"))}
	if c.query.From.ID.Stream == l.Stream {
		scan.From = c.query.From.ID.Sequence
	}
	for m, err := range scan.All(ctx) {
		if err != nil {
			return err
		}
		if c.report.Messages >= c.query.MaxRead {
			c.report.NextPosition = fmt.Sprintf("%s-%d", l.Stream, m.Sequence)
			return nil
		}
		c.add(incoming(l.Stream, m))
		if c.report.Messages%searchBatch == 0 && c.query.Progress != nil {
			c.query.Progress(c.report.Messages, c.report.Waiting)
		}
	}
	return nil
}

func (c *retryCount) add(in message.Incoming) {
	r, state, reason := c.parse(in)
	c.report.Messages++
	c.report.States[state]++
	key := retryKey{c.names.Parse(in.Subject).Target, state} // r has no target if the policy refuses the target
	g := c.groups[key]
	if g == nil && len(c.groups) >= maxGroups {
		key = retryKey{state: state} // at most one more group for each state
		g = c.groups[key]
	}
	if g == nil {
		g = &RetryGroup{Target: key.target, State: state, Attempts: r.Attempts, Allowed: r.AllowedRefusals}
		c.groups[key] = g
		c.report.Groups = append(c.report.Groups, g)
	}
	g.Messages++
	if state != Unreadable && (g.ID == "" || r.NextAttempt().Before(g.Next)) {
		g.Next, g.ID = r.NextAttempt().UTC(), r.ID
	}
	if first := r.FirstFailure; !first.IsZero() && (g.Since.IsZero() || first.Before(g.Since)) {
		g.Since = first.UTC()
	}
	if r.LastFailure.After(g.Until) {
		g.Until = r.LastFailure.UTC()
	}
	if lessRemains(r, g) {
		g.Attempts, g.Allowed = r.Attempts, r.AllowedRefusals
	}
	if !in.At.Before(g.newest) {
		g.Reason, g.newest = reason, in.At
	}
}

// lessRemains reports whether a message has fewer remaining attempts than the message whose attempts are in the group.
// A dead letter that was resent has no maximum until an instance has tried it. Then lessRemains compares the attempts
// so far.
func lessRemains(r message.Request, g *RetryGroup) bool {
	if r.AllowedRefusals > 0 && g.Allowed > 0 {
		return r.AllowedRefusals-r.Attempts < g.Allowed-g.Attempts
	}
	return r.Attempts > g.Attempts
}

// parse parses a message, and returns the state and the reason of its wait. A message that was refused and later
// deferred counts as deferred.
func (c *retryCount) parse(in message.Incoming) (message.Request, RetryState, string) {
	r, problem := c.Policy().Parse(in)
	switch {
	case problem != nil:
		return r, Unreadable, problem.Sentence
	case r.DeferralReason != "":
		return r, Deferred, r.DeferralReason
	case r.Attempts > 0:
		return r, Refused, r.LastError
	case !r.RetryAt.IsZero(): // deferred by its rate, which is no reason
		return r, Deferred, ""
	}
	return r, Resent, ""
}
