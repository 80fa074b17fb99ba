package operation

import (
	"errors"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
)

// errNotFound is returned by a look-up that found nothing.
var errNotFound = errors.New("it was not found")

var letterOperations = []Operation{
	{
		Name: "dead ls", Noun: "dead letter", Columns: letterColumns, New: listLetters,
		Short: "List dead letters, or count them by code, target or reason",
		Long: `List dead letters, the oldest first, or count them with --by, the largest group first. On a terminal, the
default is --by reason; --by letter lists each letter. Two reasons are equal if they differ only in numbers, such as
times and attempts. With --json, the list has a line for each letter.

exit codes: 0 listed, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker dead ls --code undelivered,expired --target 'orders.>'
  delaybroker dead ls --since 2h --limit 0 --json
  delaybroker dead ls --by code,target,reason`,
		Actions: []Action{
			{Operation: "dead resend", With: map[string]string{"id": "number"}, Many: true},
			{Operation: "dead rm", With: map[string]string{"id": "number"}, Many: true},
		},
	},
	{
		Name: "dead show", Noun: "dead letter", Columns: letterFacts, New: showLetter, Words: []string{"id"}, Least: 1,
		Usage: "<Delay-Id or number>",
		Facts: true,
		Short: "Show one dead letter, with its headers and payload",
		Long: `Show a dead letter, by its Delay-Id or by its number in "delaybroker dead ls". After a crash of a broker,
several letters may have one Delay-Id, and all are shown. With --json, each letter is a line, and the payload is base64.

exit codes: 0 shown, 1 not found or failed, 2 bad arguments or settings`,
		Actions: []Action{
			{Operation: "dead resend", With: map[string]string{"id": "number"}},
			{Operation: "dead rm", With: map[string]string{"id": "number"}},
		},
	},
	{
		Name: "dead resend", Noun: "dead letter", Label: "Resend", Done: "resent", New: resendLetters, Final: true,
		Short: "Deliver dead letters, with changes if necessary",
		Long: `Put the messages of dead letters back into a lane of the broker, and remove each letter after its message is
stored there. The attempts of a message count from zero. A message keeps its Delay-Id, and so its Nats-Msg-Id at the
target. A due message is delivered immediately. A message that is not yet due, for example with the code bad_target, is
delivered when it is due. The broker checks again whether DELAY_TARGETS allows the target.

--header, --drop-header and --body change all selected letters in the same way. Headers of the broker and of the server
cannot be changed, except Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL, Delay-Max-Attempts and Delay-Rate-Key.

A letter that cannot be resent is kept, and the output names the remedy:

  the letter has no target, or one that is not       --to <target>, which applies to all selected letters
  allowed
  the request was invalid, so the due time is        --now delivers it immediately, --header 'Delay-Until: <time>' at
  unknown (never with the codes undelivered,         that time
  expired, too_large and bad_target)
  its Delay-Expires has passed                       --drop-expiry, or --header 'Delay-Expires: 10m'
  no seal proves that a broker wrote it, or it has   --unsealed, only for letters that you have checked: a forger
  the code bad_internal                              chooses both content and target

If you interrupt the command, each letter is either resent and removed, or unchanged. After a crash of the command,
resend the letters again within DELAY_DEDUP_WINDOW, so that no message is delivered twice.

exit codes: 0 all selected letters were resent, 1 failed, or some letters were not resent, 2 bad arguments or settings`,
		Example: `  delaybroker dead resend --code undelivered --target 'orders.>' --since 2h --dry-run
  delaybroker dead resend --id DELAY_30m-1234-1732060800000000000 --to orders.expire
  delaybroker dead resend --code bad_option --now --header 'Delay-Expires: 1h' --drop-header X-Trace
  jq .amount=1 order.json | delaybroker dead resend --id 7 --body -`,
	},
	{
		Name: "dead rm", Noun: "dead letter", Label: "Remove", Done: "removed", Loses: true, New: removeLetters, Final: true,
		Short: "Remove dead letters permanently",
		Long: `Remove dead letters permanently: their messages will never be delivered. The command does not remove letters
that are stored while it runs.

exit codes: 0 all selected letters were removed, 1 failed, or --id found no letter, 2 bad arguments or settings`,
		Example: `  delaybroker dead rm --code bad_time --until 7d --dry-run
  delaybroker dead rm --all`,
	},
}

var letterColumns = []Column{
	{Name: "number", Field: "number", Kind: LetterNumber},
	{Name: "dead since", Field: "dead_since", Kind: Time, Drop: 3},
	{Name: "code", Field: "code", Kind: Code, Min: 8},
	{Name: "target", Field: "target", Kind: Target, Min: 10},
	{Name: "refused", Field: "attempts", Kind: Number, Drop: 5},
	{Name: "bytes", Field: "size", Kind: Number, Drop: 6},
	{Name: "delay-id", Field: "id", Kind: ID, Drop: 4},
	{Name: "reason", Field: "reason", Min: 12},
}

var letterFacts = []Column{
	{Name: "message", Field: "id", Kind: ID}, {Name: "number", Field: "number", Kind: LetterNumber},
	{Name: "dead since", Field: "dead_since", Kind: Time}, {Name: "code", Field: "code", Kind: Code},
	{Name: "reason", Field: "reason"}, {Name: "unreadable", Field: "unreadable"}, {Name: "unproven", Field: "unproven"},
	{Name: "published on", Field: "subject"}, {Name: "target", Field: "target", Kind: Target},
	{Name: "accepted", Field: "accepted", Kind: Time}, {Name: "due", Field: "due", Kind: Time},
	{Name: "expires", Field: "expires", Kind: Time}, {Name: "refused", Field: "attempts", Kind: Number},
	{Name: "refusal", Field: "refusals", Kind: Refusals},
	{Name: "deliver", Field: "deliver"}, {Name: "TTL", Field: "ttl"}, {Name: "Nats-Msg-Id", Field: "msg_id"},
	{Name: "header", Field: "headers", Kind: Header}, {Name: "bytes", Field: "size", Kind: Number},
}

var groupColumns = []Column{
	{Name: "letters", Field: "letters", Kind: Number}, {Name: inspect.ByCode, Field: "code", Kind: Code, Min: 8},
	{Name: inspect.ByTarget, Field: "target", Kind: Target, Min: 10},
	{Name: "targets", Field: "targets", Kind: Targets, Drop: 4},
	{Name: inspect.ByReason, Field: "reason", Min: 12, Wrap: true}, {Name: "oldest", Field: "oldest", Kind: Time, Drop: 2},
	{Name: "newest", Field: "newest", Kind: Time, Drop: 1},
	{Name: "example", Field: "number", Kind: LetterNumber, Drop: 3},
}

// Letter is the row of a dead letter.
type Letter struct {
	Number       uint64    `json:"number"` // sequence of the letter in its stream
	Since        time.Time `json:"dead_since"`
	Code         string    `json:"code"`
	Reason       string    `json:"reason"`
	ID           string    `json:"id,omitempty"`
	MsgID        string    `json:"msg_id,omitempty"`
	Target       string    `json:"target,omitempty"`
	Subject      string    `json:"subject,omitempty"` // subject of the original publish, escaped, at most 256 bytes
	Accepted     time.Time `json:"accepted,omitzero"`
	Due          time.Time `json:"due,omitzero"`
	Expires      time.Time `json:"expires,omitzero"`
	Attempts     int       `json:"attempts"` // number of refusals
	FirstFailure time.Time `json:"first_failure,omitzero"`
	LastFailure  time.Time `json:"last_failure,omitzero"`
	// Refusals are the refused deliveries, the oldest first: the latest Attempts, or fewer. Only dead show has them.
	Refusals   []message.Refusal `json:"refusals,omitempty"`
	Deliver    string            `json:"deliver,omitempty"`
	TTL        string            `json:"ttl,omitempty"`
	Unreadable string            `json:"unreadable,omitempty"` // why the headers cannot be parsed
	// Unproven is the reason to doubt that a broker wrote the letter. Only dead show reads and checks the payload.
	Unproven string `json:"unproven,omitempty"`
	Content
}

// Content is the content of a message.
type Content struct {
	Size    int                 `json:"size"` // bytes of the payload
	Headers map[string][]string `json:"headers,omitempty"`
	Payload []byte              `json:"payload,omitempty"` // base64; only of a look-up
}

func letterOf(l deadletter.Letter, d *Desk) Letter {
	v := Letter{
		Number: l.Sequence, Since: l.At.UTC(), Code: string(l.Code), Reason: inspect.Reason(l), ID: l.ID, MsgID: l.MsgID,
		Target: l.Target, Subject: l.Letter.Subject, Accepted: l.Accepted, Expires: l.Expires, Attempts: l.Attempts,
		FirstFailure: l.FirstFailure, LastFailure: l.LastFailure, Deliver: string(l.Mode), TTL: l.TTL,
		Content: Content{Size: l.Size},
	}
	if !d.HideContent {
		v.Headers, v.Payload = l.User, l.Data
	}
	if l.DueKnown() { // otherwise Due may be the time of acceptance
		v.Due = l.Due
	}
	if l.Problem != nil {
		v.Unreadable = l.Problem.Sentence
	}
	if l.Unproven != nil {
		v.Unproven = l.Unproven.Sentence
	}
	return v
}
