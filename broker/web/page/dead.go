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

// countTime is the time after which counting dead letters ends. The page then shows the letters counted so far.
const countTime = questionTime * 7 / 10

// dead counts dead letters by code, target and reason.
func (p *Page) dead(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	t, err := target(v)
	if err != nil {
		return nil, err
	}
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	by := strings.Split(cmp.Or(v.Get("by"), "code,target,reason"), ",")
	for _, one := range by {
		if !slices.Contains([]string{inspect.ByCode, inspect.ByTarget, inspect.ByReason}, one) {
			return nil, fmt.Errorf("%w: by %q: want some of code, target, reason", errAsked, one)
		}
	}
	counting, cancel := context.WithTimeout(ctx, countTime)
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
		Kinds   int  `json:"kinds"`
		Partial bool `json:"partial"` // not all letters were counted
	}{count, kinds, partial}}, nil
}

// Letter is a dead letter in a list.
type Letter struct {
	Number   uint64    `json:"number"`
	Since    time.Time `json:"dead_since"`
	Code     string    `json:"code"`
	Target   string    `json:"target,omitempty"`
	ID       string    `json:"id,omitempty"`
	MsgID    string    `json:"msg_id,omitempty"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Size     int       `json:"size"`
}

func letterOf(l deadletter.Letter) Letter {
	return Letter{
		Number: l.Sequence, Since: l.At.UTC(), Code: string(l.Code), Target: l.Target, ID: l.ID,
		MsgID:  l.MsgID,
		Reason: text.Printable(inspect.Reason(l), 600), Attempts: l.Attempts, Size: l.Size,
	}
}

// letterFilter parses the filter of letters. Durations count back from now, by the server's clock.
func letterFilter(v url.Values, now time.Time) (f deadletter.Filter, line shell, err error) {
	if f.Target, err = target(v); err != nil {
		return f, line, err
	}
	if code := v.Get("code"); code != "" {
		if !slices.Contains(message.Codes(), message.Code(code)) {
			return f, line, fmt.Errorf("%w: unknown code %q", errAsked, code)
		}
		f.Codes = []message.Code{message.Code(code)}
	}
	if f.Since, err = moment(v, "since", now, true); err != nil {
		return f, line, err
	}
	for _, text := range v["number"] {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n == 0 {
			return f, line, fmt.Errorf("%w: number %q: want the number of a dead letter", errAsked, text)
		}
		f.Sequences = append(f.Sequences, n)
	}
	line = line.flag("--code", v.Get("code")).flag("--target", f.Target).flag("--since", v.Get("since")).
		flag("--id", strings.Join(v["number"], ","))
	return f, line, nil
}

// letters lists dead letters, the oldest first.
func (p *Page) letters(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	limit, err := number(v, "limit", defaultRows, maxRows)
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

// listLetters lists the letters of a filter that match a search text: an id, a Nats-Msg-Id, a target or a part of the
// reason.
func listLetters(
	ctx context.Context, letters *inspect.Letters, f deadletter.Filter, word string, limit int,
) (rows []Letter, more bool, err error) {
	rows = []Letter{}
	for l, err := range letters.List(ctx, deadletter.Query{Filter: f, HeadersOnly: true}) {
		if err != nil {
			return rows, false, err
		}
		row := letterOf(l)
		if !row.matches(word) {
			continue
		}
		if len(rows) == limit {
			return rows, true, nil
		}
		rows = append(rows, row)
	}
	return rows, false, nil
}

// matches reports whether a letter matches a search text. The empty text matches all letters.
func (l Letter) matches(word string) bool {
	return word == "" || word == l.ID || word == l.MsgID || strings.HasPrefix(l.ID, word+"-") ||
		message.Match(word, l.Target) || strings.Contains(l.Reason, word)
}

// LetterDetails are the metadata of one dead letter, with the sizes of its headers.
type LetterDetails struct {
	Letter
	Subject    string         `json:"subject,omitempty"` // the subject of the original publish
	Accepted   time.Time      `json:"accepted,omitzero"`
	Due        time.Time      `json:"due,omitzero"`
	Expires    time.Time      `json:"expires,omitzero"`
	Unreadable string         `json:"unreadable,omitempty"`
	Unproven   string         `json:"unproven,omitempty"`
	Headers    map[string]int `json:"headers"` // bytes of the values of each header
}

// letter shows one dead letter.
func (p *Page) letter(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	f, _, err := letterFilter(url.Values{"number": v["number"]}, letters.Opened)
	if err != nil || len(f.Sequences) == 0 {
		return nil, fmt.Errorf("%w: number missing", errAsked)
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
	if l.Understood() {
		d.Due = l.Due
	}
	if l.Problem != nil {
		d.Unreadable = l.Problem.Sentence
	}
	if l.Unproven != nil {
		d.Unproven = l.Unproven.Sentence
	}
	for name, values := range l.User {
		if len(d.Headers) < maxHeaders {
			d.Headers[text.Printable(name, 200)] = len(strings.Join(values, ""))
		}
	}
	return d
}
