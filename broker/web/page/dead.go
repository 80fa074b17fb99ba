package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

// countTimeout is the timeout for counting dead letters. After the timeout, the page shows the letters counted so far.
const countTimeout = questionTimeout * 7 / 10

// dead counts dead letters by code, target and reason.
func (p *Page) dead(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	t, err := parseTarget(v)
	if err != nil {
		return nil, err
	}
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	by := strings.Split(cmp.Or(v.Get("by"), "code,target,reason"), ",")
	for _, field := range by {
		if !slices.Contains([]string{inspect.ByCode, inspect.ByTarget, inspect.ByReason}, field) {
			return nil, fmt.Errorf("%w: by %q: want code, target or reason", errRequest, field)
		}
	}
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	count, err := letters.Count(counting, deadletter.Filter{Target: t}, by, nil)
	partial := err != nil && errors.Is(counting.Err(), context.DeadlineExceeded)
	if err != nil && !partial {
		return nil, err
	}
	kinds := len(count.Groups)
	if kinds > maxRows {
		count.Groups = count.Groups[:maxRows]
	}
	line := shell{"dead", "ls", "--by", strings.Join(by, ",")}.flag("--target", t)
	return answer{line.String(), struct {
		inspect.LetterCount
		Kinds   int  `json:"kinds"`   // number of all groups, also if there are more than maxRows
		Partial bool `json:"partial"` // some letters were not counted
	}{count, kinds, partial}}, nil
}

// Letter is the row of a dead letter.
type Letter struct {
	Number   uint64    `json:"number"` // its sequence in the stream of dead letters
	Since    time.Time `json:"dead_since"`
	Code     string    `json:"code"`
	Target   string    `json:"target,omitempty"`
	ID       string    `json:"id,omitempty"`
	MsgID    string    `json:"msg_id,omitempty"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Size     int       `json:"size"` // bytes
}

func letterOf(l deadletter.Letter) Letter {
	return Letter{
		Number: l.Sequence, Since: l.At.UTC(), Code: string(l.Code), Target: l.Target, ID: l.ID, MsgID: l.MsgID,
		Reason: text.Printable(inspect.Reason(l), 600), Attempts: l.Attempts, Size: l.Size,
	}
}

// letterFilter parses the filter of dead letters. A duration in since counts back from now, a time of the server.
func letterFilter(v url.Values, now time.Time) (f deadletter.Filter, line shell, err error) {
	if f.Target, err = parseTarget(v); err != nil {
		return f, line, err
	}
	if code := v.Get("code"); code != "" {
		if !slices.Contains(message.Codes(), message.Code(code)) {
			return f, line, fmt.Errorf("%w: unknown code %q", errRequest, code)
		}
		f.Codes = []message.Code{message.Code(code)}
	}
	if f.Since, err = parseTime(v, "since", now, true); err != nil {
		return f, line, err
	}
	for _, text := range v["number"] {
		n, err := parseNumber(text)
		if err != nil {
			return f, line, err
		}
		f.Sequences = append(f.Sequences, n)
	}
	line = line.flag("--code", v.Get("code")).flag("--target", f.Target).flag("--since", v.Get("since")).
		flag("--id", strings.Join(v["number"], ","))
	return f, line, nil
}

func parseNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: number %q: want the number of a dead letter", errRequest, text)
	}
	return n, nil
}

// letters lists dead letters, the oldest first.
func (p *Page) letters(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	limit, err := parseLimit(v)
	if err != nil {
		return nil, err
	}
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	f, line, err := letterFilter(v, letters.Opened)
	if err != nil {
		return nil, err
	}
	rows, more, err := listLetters(ctx, letters, f, v.Get("find"), limit)
	if err != nil {
		return nil, err
	}
	line = append(shell{"dead", "ls"}, line...)
	if v.Get("find") != "" {
		line = nil // no command has this filter
	}
	return answer{line.String(), map[string]any{"letters": rows, "more": more}}, nil
}

// listLetters lists the letters that pass a filter and match a search text. More is true if the filter and the text
// match more than limit letters.
func listLetters(
	ctx context.Context, letters *inspect.Letters, f deadletter.Filter, searched string, limit int,
) (rows []Letter, more bool, err error) {
	rows = []Letter{}
	for l, err := range letters.List(ctx, deadletter.Query{Filter: f, HeadersOnly: true}) {
		if err != nil {
			return rows, false, err
		}
		row := letterOf(l)
		if !row.matches(searched) {
			continue
		}
		if len(rows) == limit {
			return rows, true, nil
		}
		rows = append(rows, row)
	}
	return rows, false, nil
}

// matches reports whether a letter matches a search text: a Delay-Id or its beginning up to a hyphen, a Nats-Msg-Id, a
// pattern of targets, or a part of the reason. The empty text matches all letters.
func (l Letter) matches(searched string) bool {
	return searched == "" || searched == l.ID || searched == l.MsgID || strings.HasPrefix(l.ID, searched+"-") ||
		message.Match(searched, l.Target) || strings.Contains(l.Reason, searched)
}

// LetterDetails has the metadata of one dead letter, without the values of user headers, which need Access.Bodies.
type LetterDetails struct {
	Letter
	Subject       string         `json:"subject,omitempty"` // the subject of the original publish
	Accepted      time.Time      `json:"accepted,omitzero"`
	Due           time.Time      `json:"due,omitzero"`
	Expires       time.Time      `json:"expires,omitzero"`
	HeaderProblem string         `json:"unreadable,omitempty"` // why the headers cannot be parsed
	SealProblem   string         `json:"unproven,omitempty"`   // why the seal is not valid
	Headers       map[string]int `json:"headers"`              // size of each user header's values, in bytes
}

// letter returns the details of one dead letter, or nil if the letter no longer exists.
func (p *Page) letter(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	f, _, err := letterFilter(url.Values{"number": v["number"]}, letters.Opened)
	if err != nil || len(f.Sequences) == 0 {
		return nil, fmt.Errorf("%w: want the number of a dead letter", errRequest)
	}
	line := shell{"dead", "show"}.words(v.Get("number")).String()
	for l, err := range letters.List(ctx, deadletter.Query{Filter: f}) {
		if err != nil {
			return nil, err
		}
		return answer{line, detailsOf(l)}, nil
	}
	return answer{line, nil}, nil
}

func detailsOf(l deadletter.Letter) LetterDetails {
	d := LetterDetails{
		Letter: letterOf(l), Subject: l.Letter.Subject, Accepted: l.Accepted, Expires: l.Expires,
		Headers: make(map[string]int),
	}
	if l.DueKnown() {
		d.Due = l.Due
	}
	if l.Problem != nil {
		d.HeaderProblem = l.Problem.Sentence
	}
	if l.Unproven != nil {
		d.SealProblem = l.Unproven.Sentence
	}
	for name, values := range l.User {
		if len(d.Headers) < maxHeaders {
			d.Headers[text.Printable(name, 200)] = len(strings.Join(values, ""))
		}
	}
	return d
}
