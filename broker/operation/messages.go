package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/broker/text"
)

var messageOperations = []Operation{
	{
		Name: "pending ls", Noun: "message", New: listPending,
		Short: "List the waiting messages of all lanes, by due time",
		Long: `List the waiting messages of all lanes, by due time. With --json, the output has a line for each message and a
last line with the cursor of the next page.

due in    time until the delivery, or until the next attempt of a refused message; dead: CODE if the message is about to
          become a dead letter with this code
bytes     size of the body
attempts  refused attempts so far

The command reads at most --most headers. In a level, it reads only the messages that may be due before the last listed
one. The other lanes have no order, so it reads all their messages, again for each page. With --target, the command
reads fewer headers. If there are more messages, the command prints a cursor for the next page. The cursor is a time and
a Delay-Id, and stays valid when messages move from lane to lane. A message that moves while the command runs may be
missing from the list: run the command again.

Times are by the server's clock. Only timers can be cancelled: see delaybroker timers.

exit codes: 0 listed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker pending ls --target 'orders.>' --due-before 10m
  delaybroker pending ls --due-after 2026-12-24T18:00:00Z --limit 1000 --json`,
		Columns: []Column{
			{Name: "due in", Field: "due", Kind: DueIn}, {Name: "target", Field: "target", Kind: Target, Min: 10},
			{Name: "delay-id", Field: "id", Kind: ID, Drop: 2, Min: 12},
			{Name: "key", Field: "key", Kind: Key, Rare: true, Min: 8},
			{Name: "nats-msg-id", Field: "msg_id", Rare: true, Drop: 5, Min: 10},
			{Name: "lane", Field: "stream", Drop: 1, Min: 8},
			{Name: "bytes", Field: "bytes", Kind: Number, Drop: 4},
			{Name: "attempts", Field: "attempts", Kind: Number, Drop: 3},
		},
	},
	{
		Name: "pending show", Noun: "message", New: where(true), Words: []string{"id"}, Least: 1, Usage: "<Delay-Id>",
		Facts: true, Columns: whereFacts,
		Short: "Show one message, with its headers and body",
		Long: `Show one message, with its stored headers and body: text unchanged, other bytes as a hex dump. With --json, the
payload is complete, in base64. The Delay-Id may lack its last part, the time, as in DELAY_INTAKE-29.

exit codes: 0 found, 1 not found, or the search failed, 2 bad arguments or settings`,
	},
	{
		Name: "where", Noun: "message", New: where(false), Words: []string{"id"}, Least: 1, Usage: "<Delay-Id>",
		Facts: true, Columns: whereFacts, Call: "where.*",
		Short: "Find one message by its Delay-Id",
		Long: `Find one message: in the stream that accepted it, in a later lane, or among the dead letters. If brokers keep a
journal (DELAY_JOURNAL), the answer for a delivered message has the time of the delivery.

"delaybroker pub" prints the Delay-Id, and deliveries and dead letters have it as a header. Its three parts are a
stream, a sequence and a time. Without the time, as in DELAY_INTAKE-29, the search takes longer.

exit codes: 0 found, 1 not found, or the search failed, 2 bad arguments or settings`,
	},
	{
		Name: "retrying", Noun: "message", New: retrying,
		Short: "Show the messages in the retry lanes, by target",
		Long: `Show the messages in the retry lanes, by target, the largest group first.

state         refused: the target has refused the message
              deferred: the broker postponed the attempt, since the target is slow or silent, or JetStream has no room
              resent: from a dead letter, by delaybroker dead resend
              unreadable: a newer broker wrote the message, or no broker did
attempts      of the message that is closest to becoming a dead letter: 3 of 20 means 3 refused and 20 allowed attempts
next attempt  the time until the earliest attempt for a message of the group
last reason   the reason of the newest message; for another message, run delaybroker where <Delay-Id>
such as       the Delay-Id of the message with the earliest attempt

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker retrying --target 'shop.>'
  delaybroker retrying --from DELAY_RETRY_30s-1000001`,
		Columns: []Column{
			{Name: "messages", Field: "messages", Kind: Number}, {Name: "target", Field: "target", Kind: Target, Min: 10},
			{Name: "state", Field: "state", Drop: 3, Min: 8}, {Name: "attempts", Field: "attempts", Kind: Tries, Drop: 2},
			{Name: "next attempt in", Field: "next_attempt", Kind: DueIn, Min: 7},
			{Name: "last reason", Field: "last_reason", Min: 12, Wrap: true},
			{Name: "such as", Field: "id", Kind: ID, Drop: 4},
		},
		Actions: []Action{{Operation: "pause", With: map[string]string{"pattern": "target"}}},
	},
	{
		Name: "ahead", Noun: "message", New: forecast, Call: "ahead",
		Short: "Forecast the number of messages due in each minute or hour",
		Long: `Forecast the number of pending messages that are due in each minute or hour, by the server's clock, in UTC.

±  the maximum error of the number, in 95 of 100 cases; a number without it is exact

The command reads the smallest lanes completely, up to --most headers in all, so their numbers are exact. In a larger
level, messages of clients leave in the order in which they were stored, so the server counts them, in at most 300
requests. The command estimates all other messages from a sample of up to 2000 messages of each large lane.

The forecast does not include messages that are published later, refusals, waits for a rate, or Delay-Expires. A message
that moves to another lane during the forecast may be counted twice, or not at all. The counts of a level are exact only
if the clocks of the servers that led its stream agreed.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker ahead
  delaybroker ahead --for 30m --target 'orders.>'
  delaybroker ahead --for 7d --by hour --most 1000000 --json`,
	},
	{
		Name: "levels", Noun: "lane", Call: "lanes", New: lanes,
		Short: "Show the lanes: pending and overdue messages, and owners",
		Long: `Show the lanes and the number of dead letters. Each row is one stream; the lanes of pauses share one. An idle
lane is empty, and has neither traffic nor a problem. Without --all, the command only counts idle lanes.

head due in  time until the first message is due at its target
overdue      time since the first message should have left the lane
owner        the instance that reads the lane
             later: the memory of this instance is full, or has all messages that are due soon
             stopped: this instance cannot read the lane now
             nobody: no instance owns the lane
             unknown: the instances do not answer, or this user may not ask them
state        serving
             retiring: not in DELAY_LEVELS; takes no new messages, and may be deleted when it is empty
             full: a limit of the stream is reached
             waits for a newer broker: its owner cannot read its messages
             missing: the stream does not exist
             foreign: another program's stream has the name
             broken marks: the metadata of the stream is invalid
             no answer: the server did not answer about the stream
in/s, out/s  messages a second that entered and left the lane since the previous update, with --watch`,
		Example: `  delaybroker levels --watch
  delaybroker levels --watch=500ms --all`,
	},
}

// lanes returns the uses of a snapshot of all lanes, which is one row.
func lanes(Bounds) *Use {
	return &Use{Look: func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		handover := inspect.MaxHandover
		if d.OnePage {
			handover = 0 // the answer to a request does not wait
		}
		lanes, err := d.Lanes(ctx, handover)
		if err != nil {
			return End{}, err
		}
		return End{}, show(lanes)
	}}
}

var whereFacts = []Column{
	{Name: "message", Field: "id", Kind: ID}, {Name: "state", Field: "answer"},
	{Name: "stored in", Field: "stream"}, {Name: "sequence", Field: "sequence", Kind: Number},
	{Name: "accepted", Field: "accepted", Kind: Time}, {Name: "due", Field: "due", Kind: Time},
	{Name: "target", Field: "target", Kind: Target}, {Name: "refused", Field: "attempts", Kind: Tries},
	{Name: "refusal", Field: "refusals", Kind: Refusals}, {Name: "last reason", Field: "last_error"},
	{Name: "deferred", Field: "deferred"}, {Name: "next attempt", Field: "retry_at", Kind: Time},
	{Name: "by", Field: "instance"}, {Name: "dead since", Field: "dead_since", Kind: Time},
	{Name: "code", Field: "code", Kind: Code}, {Name: "reason", Field: "reason"},
	{Name: "delivered", Field: "delivered_at", Kind: Time}, {Name: "searched", Field: "searched", Kind: Number},
	{Name: "header", Field: "headers", Kind: Header},
}

func listPending(b Bounds) *Use {
	var q inspect.PendingQuery
	cursor := Parsed(&q.Cursor, "cursor", "continue where an earlier list ended: the cursor that it printed",
		inspect.ParseCursor)
	find := word(&q.Find, "find", "only this Delay-Id, key, Nats-Msg-Id or target")
	find.Field, find.Hint = true, "Id, key or Nats-Msg-Id"
	limit := b.rows(&q.Limit)
	if b.MaxRows == 0 {
		limit = Count(&q.Limit, "limit", "maximum number of messages", 100, 1, 100_000)
	}
	most := b.reads(&q.MaxRead, 200_000, 1)
	u := &Use{Params: []*Param{
		find, pattern(&q.Target), ahead(&q.MinDue, "due-after", "only due at this time or later"),
		ahead(&q.MaxDue, "due-before", "only due before this time"), cursor, limit, most,
	}}
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		l, err := d.Pending(ctx, q)
		if err != nil {
			return End{}, err
		}
		if err := showAll(l.Messages, 0, show); err != nil {
			return End{}, err
		}
		end := End{Value: l.ListEnd, At: l.Time, Empty: "no message matches", Notes: []string{
			english.Plural(len(l.Messages), "message", "") + ", " + english.Plural(int(l.Read), "header", "") + " read",
		}}
		end.Notes = append(end.Notes, Gaps(l.SilentStreams, l.HeaderTargets && q.Target != "")...)
		if !l.More {
			return end, nil
		}
		end.Next = map[string]string{"cursor": l.Cursor}
		if l.Truncated { // the same number would end at the same place
			end.Next["most"] = strconv.FormatUint(2*q.MaxRead, 10)
		}
		if b.MaxRead > 0 && l.Truncated {
			end.Next = nil
			end.Notes = append(end.Notes, "not all messages were read: choose a target or a time, or use the command")
		}
		return end, nil
	}
	return u
}

// Gaps describes the gaps of a list: streams without an answer and, for a target, messages whose target is in a header.
func Gaps(silentStreams []string, hasHeaderTargets bool) (lines []string) {
	if len(silentStreams) > 0 {
		lines = append(lines, "left out: "+strings.Join(silentStreams, ", "))
	}
	if hasHeaderTargets {
		lines = append(lines, "left out: messages with their target in a header (DELAY_HEADER_TARGETS)")
	}
	return lines
}

// place is the place and the state of one message.
type place struct {
	inspect.Whereabouts
	*Content
}

// where returns the uses of a search for one message. With body, the message has its headers and its body.
func where(body bool) func(Bounds) *Use {
	return func(b Bounds) *Use {
		var ref inspect.MessageRef
		var maxRead uint64
		id := Parsed(&ref, "id", "the Delay-Id of the message", inspect.ParseMessageRef)
		id.Field, id.Hint = true, "DELAY_30m-12"
		u := &Use{Params: []*Param{id, b.reads(&maxRead, 5_000_000, 0)}}
		withBody := body
		if !body && b.MaxRead == 0 {
			u.Params = append(u.Params, flag(&withBody, "body", "also show the headers and the body of the message"))
		}
		u.Check = func() error {
			if !id.Given() {
				return invalid("want the Delay-Id of a message")
			}
			return nil
		}
		u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
			w, err := d.Where(ctx, ref, maxRead, d.progress)
			if err != nil {
				return End{}, err
			}
			place := place{Whereabouts: w}
			if withBody && w.Stream != "" {
				in, err := d.Message(ctx, w.Stream, w.Sequence)
				switch {
				case errors.Is(err, jetstream.ErrMsgNotFound):
					return End{}, fmt.Errorf("%s has left %s during the search; try again", w.ID, w.Stream)
				case err != nil:
					return End{}, err
				}
				place.Content = &Content{Size: len(in.Data), Headers: in.Header, Payload: in.Data}
			}
			end := End{}
			if !w.Found {
				end.Exit = errNotFound
			}
			return end, show(place)
		}
		return u
	}
}

func retrying(b Bounds) *Use {
	var q inspect.RetryQuery
	limit := 0
	from := Parsed(&q.From, "from", "continue where an earlier run stopped: the stream and sequence that it printed",
		func(text string) (inspect.MessageRef, error) {
			from, err := inspect.ParseMessageRef(text)
			if err != nil || !from.Partial { // a Delay-Id also contains a time
				err = errors.New("want a stream and a sequence, as in DELAY_RETRY_5s-1000")
			}
			return from, err
		})
	u := &Use{Params: []*Param{
		pattern(&q.Target), from, b.reads(&q.MaxRead, 1_000_000, 1), b.rows(&limit),
	}}
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		q.Progress = d.progress
		r, err := d.Retrying(ctx, q)
		if errors.Is(err, inspect.ErrNoRetryLane) {
			return End{}, invalidParam("from", "%v", err)
		}
		if err != nil {
			return End{}, err
		}
		for _, g := range r.Groups {
			g.Target = cmp.Or(g.Target, "all others")
		}
		if err := showAll(r.Groups, limit, show); err != nil {
			return End{}, err
		}
		end := End{Value: r, At: r.Time}
		end.Empty, end.Notes = "no message is in the retry lanes", append(PauseLines(r.Paused), tooLargeLines(r.TooLarge)...)
		if r.Messages > 0 || r.Waiting > 0 {
			end.Notes = append(end.Notes, retryTotals(r, limit))
		}
		if r.NextPosition != "" {
			end.Next = map[string]string{"from": r.NextPosition}
		}
		return end, nil
	}
	return u
}

func retryTotals(r inspect.RetryReport, limit int) string {
	totals := english.Plural(int(r.Messages), "message", "") + " in " + english.Plural(len(r.Groups), "line", "")
	if limit > 0 && len(r.Groups) > limit {
		totals += fmt.Sprintf(" (%d shown; --limit 0 shows all)", limit)
	}
	var states []string
	for _, state := range []inspect.RetryState{inspect.Refused, inspect.Deferred, inspect.Resent, inspect.Unreadable} {
		if n := r.States[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(states) > 0 {
		totals += ": " + strings.Join(states, ", ")
	}
	if r.Waiting != r.Messages {
		totals += fmt.Sprintf("; the retry lanes have %d", r.Waiting)
	}
	return totals
}

// tooLargeLines says in which lanes messages wait that are in no retry lane and in no dead letter.
func tooLargeLines(lanes []string) []string {
	if lanes == nil {
		return nil
	}
	return []string{"messages that are too large for the server, also as dead letters, wait in " + text.ShortList(lanes) +
		": raise max_payload; delaybroker doctor shows the error"}
}

// PauseLines returns a line for each pause.
func PauseLines(pauses []inspect.Pause) (lines []string) {
	for _, p := range pauses {
		state := "paused since " + text.ShortMoment(p.Since)
		switch p.State {
		case pause.Paused:
		case pause.Open:
			continue // outside of its quiet hours
		default:
			state = "being resumed"
		}
		lines = append(lines, text.Sentence(p.Pattern+": "+state))
	}
	return lines
}
