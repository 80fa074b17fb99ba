package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

const (
	// planLifetime is the time after which a plan expires.
	planLifetime = 2 * time.Minute
	// maxRequest is the maximum size of the body of a request, in bytes.
	maxRequest = 256 << 10
)

// An action is a change that a viewer requests.
type action struct {
	Verb   string `json:"verb"`             // cancel, move, fire; resend, remove; pause, resume
	Target string `json:"target,omitempty"` // the target of a timer, or a pattern of targets
	timerChoice
	letterChoice
	planData
}

// timerChoice selects one timer by its key, several timers in a list, or all timers that match. It also has the new
// time of a move.
type timerChoice struct {
	All        bool       `json:"all,omitempty"`        // all timers that match Target, Key, Once, DueAfter and DueBefore
	Timers     []timerRef `json:"timers,omitempty"`     // the selected timers, if there are several
	Key        string     `json:"key,omitempty"`        // of one timer; with All, a pattern
	Generation uint64     `json:"generation,omitempty"` // of one timer; zero for any
	Once       bool       `json:"once,omitempty"`       // with All: only timers that fire once
	DueAfter   string     `json:"due_after,omitempty"`
	DueBefore  string     `json:"due_before,omitempty"`
	In         string     `json:"in,omitempty"` // new time: a duration from now
	At         string     `json:"at,omitempty"` // new time: RFC 3339
	By         string     `json:"by,omitempty"` // new time: a duration from the old time, such as -5m
}

// A timerRef identifies a selected timer, with the generation that the viewer saw.
type timerRef struct {
	Key        string `json:"key"`
	Target     string `json:"target"`
	Generation uint64 `json:"generation"`
}

// letterChoice selects dead letters, and has the options of a resend.
type letterChoice struct {
	Number     uint64          `json:"number,omitempty"`
	Numbers    []uint64        `json:"numbers,omitempty"` // the selected letters, if there are several
	Code       string          `json:"code,omitempty"`
	Since      string          `json:"since,omitempty"`
	To         string          `json:"to,omitempty"` // the target of the resend; empty for the original target
	Now        bool            `json:"now,omitempty"`
	Unsealed   bool            `json:"unsealed,omitempty"`
	DropExpiry bool            `json:"drop_expiry,omitempty"`
	Edit       deadletter.Edit `json:"edit,omitzero"` // only with a single letter
}

// planData has the fields that the page sets when it makes a plan. The client cannot set them.
type planData struct {
	UpTo           uint64    `json:"up_to,omitempty"` // the last sequence of the listed timers
	Cutoff         time.Time `json:"before,omitzero"` // the letters must have become dead letters before this time
	Count          uint64    `json:"count,omitempty"` // number of objects that the action would change
	Expiry         time.Time `json:"until,omitzero"`  // when the plan expires
	IdempotencyKey string    `json:"word,omitempty"`  // not with All: a second change of a timer with this key has no effect
	Shell          string    `json:"shell,omitempty"` // the equivalent shell command
}

// A plan describes the effect of an action before the execution.
type plan struct {
	Count    uint64   `json:"count"`
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"` // about the objects that the action would not change
	Shell    string   `json:"shell"`
	Ticket   string   `json:"ticket,omitempty"` // the sealed plan; empty if the action would change nothing
}

func (p *Page) plan(w http.ResponseWriter, r *http.Request, token Token) {
	var a action
	if !decode(w, r, &a) {
		return
	}
	a.planData = planData{}
	p.withSession(w, r, questionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		op, err := operationFor(a)
		if err != nil {
			return nil, err
		}
		preview, err := op.plan(ctx, i, &a)
		if err != nil {
			return nil, err
		}
		preview.Shell, preview.Count = a.Shell, a.Count
		if a.Count > 0 {
			a.Expiry, a.IdempotencyKey = time.Now().Add(planLifetime), rand.Text()
			preview.Ticket, err = seal(a, token)
		}
		return preview, err
	})
}

// act executes the plan of the ticket in the request.
func (p *Page) act(w http.ResponseWriter, r *http.Request, token Token) {
	var request struct {
		Ticket string `json:"ticket"`
	}
	if !decode(w, r, &request) {
		return
	}
	a, err := unseal(request.Ticket, token, time.Now())
	if err != nil {
		writeError(w, http.StatusConflict, err.Error())
		return
	}
	op, err := operationFor(a)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	log := p.cfg.Log.With("who", token.Name, "from", clientAddress(r), "verb", a.Verb, "does", a.logText(),
		"planned", a.Count)
	log.Info("the page executes an action")
	// If the client disconnects, the action continues, so that the plan is not executed in part.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	p.withSession(w, r, actionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		done, err := op.act(ctx, i, a)
		log.Info("the page executed an action", "did", done.Sentence, "err", err)
		p.refresh()
		return done, err
	})
}

// logText returns the command of the action for the log. The values of edited headers are replaced, because readers of
// the log may not have the right to see them.
func (a action) logText() string {
	line := a.Shell
	for name, values := range a.Edit.Set {
		for _, value := range values {
			line = strings.ReplaceAll(line, text.ShellQuote(name+": "+value), text.ShellQuote(name+": …"))
		}
	}
	return line
}

// decode parses the body of a request: one JSON object, without unknown fields. If the body is invalid, decode responds
// with an error and returns false.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, more := body.Token(); more != io.EOF {
			err = errors.New("want one JSON object and nothing after it")
		}
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid request: "+text.Printable(err.Error(), 300))
	}
	return err == nil
}

// seal returns the ticket of a planned action: the action and its authentication code. The code is valid for one token.
func seal(a action, token Token) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	code := base64.RawURLEncoding
	return code.EncodeToString(text) + "." + code.EncodeToString(sum256(text, token)), nil
}

// sum256 returns the authentication code of a text, with the token as the key.
func sum256(text []byte, token Token) []byte {
	h := hmac.New(sha256.New, []byte("plan "+token.Secret))
	h.Write(text)
	return h.Sum(nil)
}

// unseal returns the action of a ticket, or errTicket.
func unseal(ticket string, token Token, now time.Time) (a action, err error) {
	code := base64.RawURLEncoding
	body, sum, _ := strings.Cut(ticket, ".")
	text, textErr := code.DecodeString(body)
	mac, macErr := code.DecodeString(sum)
	if textErr != nil || macErr != nil || !hmac.Equal(mac, sum256(text, token)) || json.Unmarshal(text, &a) != nil ||
		now.After(a.Expiry) {
		return action{}, errTicket
	}
	return a, nil
}
