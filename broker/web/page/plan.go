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
	// planTime is the time for which a plan is valid.
	planTime = 2 * time.Minute
	// maxRequest is the maximum size of a request, in bytes.
	maxRequest = 256 << 10
)

// An action is a change that a viewer requests.
type action struct {
	Verb   string `json:"verb"`             // cancel, move, fire; resend, remove; pause, resume
	Target string `json:"target,omitempty"` // a pattern, for many timers, for letters and for pauses
	timerChoice
	letterChoice
	fixed
}

// timerChoice selects one timer by its key, several timers in a list, or all timers that match. It also has the new
// time of a move: absolute, relative to now, or relative to the old time.
type timerChoice struct {
	All        bool       `json:"all,omitempty"`
	Timers     []timerRef `json:"timers,omitempty"` // the selected timers, instead of one
	Key        string     `json:"key,omitempty"`
	Generation uint64     `json:"generation,omitempty"`
	DueAfter   string     `json:"due_after,omitempty"`
	DueBefore  string     `json:"due_before,omitempty"`
	In         string     `json:"in,omitempty"`
	At         string     `json:"at,omitempty"`
	By         string     `json:"by,omitempty"`
}

// A timerRef names one selected timer, with the generation that the viewer saw.
type timerRef struct {
	Key        string `json:"key"`
	Target     string `json:"target"`
	Generation uint64 `json:"generation"`
}

// letterChoice selects dead letters, and has the options of a resend.
type letterChoice struct {
	Number     uint64          `json:"number,omitempty"`
	Numbers    []uint64        `json:"numbers,omitempty"` // the selected letters, instead of one
	Code       string          `json:"code,omitempty"`
	Since      string          `json:"since,omitempty"`
	To         string          `json:"to,omitempty"` // another target
	Now        bool            `json:"now,omitempty"`
	Unsealed   bool            `json:"unsealed,omitempty"`
	DropExpiry bool            `json:"drop_expiry,omitempty"`
	Edit       deadletter.Edit `json:"edit,omitzero"` // only with a single letter
}

// fixed has the fields that the page sets when it makes a plan. The client cannot set them.
type fixed struct {
	UpTo   uint64    `json:"up_to,omitempty"` // the last sequence of the listed timers
	Before time.Time `json:"before,omitzero"` // only letters that became dead letters earlier
	Count  uint64    `json:"count,omitempty"` // the number of objects
	Until  time.Time `json:"until,omitzero"`  // when the plan expires
	Word   string    `json:"word,omitempty"`  // idempotency key: a repeated action has no further effect
	Shell  string    `json:"shell,omitempty"` // the equivalent shell command
}

// A plan describes the effect of an action before its execution.
type plan struct {
	Count    uint64   `json:"count"`
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"` // the objects that would be left out, and the reasons
	Shell    string   `json:"shell"`
	Ticket   string   `json:"ticket,omitempty"` // empty if there is nothing to do
}

// plan responds with the plan of an action.
func (p *Page) plan(w http.ResponseWriter, r *http.Request, who Token) {
	var a action
	if !read(w, r, &a) {
		return
	}
	a.fixed = fixed{}
	p.withSession(w, r, questionTime, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		op, err := operationFor(a)
		if err != nil {
			return nil, err
		}
		made, err := op.plan(ctx, i, &a)
		if err != nil {
			return nil, err
		}
		made.Shell, made.Count = a.Shell, a.Count
		if a.Count > 0 {
			a.Until, a.Word = time.Now().Add(planTime), rand.Text()
			made.Ticket, err = seal(a, who)
		}
		return made, err
	})
}

// act executes a plan.
func (p *Page) act(w http.ResponseWriter, r *http.Request, who Token) {
	var request struct {
		Ticket string `json:"ticket"`
	}
	if !read(w, r, &request) {
		return
	}
	a, err := unseal(request.Ticket, who, time.Now())
	if err != nil {
		writeError(w, http.StatusConflict, err.Error())
		return
	}
	op, err := operationFor(a)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	log := p.cfg.Log.With("who", who.Name, "from", from(r), "verb", a.Verb, "does", a.logged(), "planned", a.Count)
	log.Info("the page executes an action")
	// If the client disconnects, the action continues. If the action stopped, it would be half done.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	p.withSession(w, r, actTime, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		done, err := op.act(ctx, i, a)
		log.Info("the page executed an action", "did", done.Sentence, "err", err)
		p.changed()
		return done, err
	})
}

// logged returns the command of the action for the log, without the values of edited headers. Only viewers with the
// right to see bodies may read these values.
func (a action) logged() string {
	line := a.Shell
	for name, values := range a.Edit.Set {
		for _, value := range values {
			line = strings.ReplaceAll(line, quoted(name+": "+value), quoted(name+": …"))
		}
	}
	return line
}

// read parses a request: one JSON object, without unknown fields.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
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

// seal returns the ticket of a planned action. The ticket is valid only for the same token.
func seal(a action, who Token) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	code := base64.RawURLEncoding
	return code.EncodeToString(text) + "." + code.EncodeToString(sum256(text, who)), nil
}

func sum256(text []byte, who Token) []byte {
	h := hmac.New(sha256.New, []byte("plan "+who.Secret))
	h.Write(text)
	return h.Sum(nil)
}

func unseal(ticket string, who Token, now time.Time) (a action, err error) {
	code := base64.RawURLEncoding
	body, sum, _ := strings.Cut(ticket, ".")
	text, textErr := code.DecodeString(body)
	mac, macErr := code.DecodeString(sum)
	if textErr != nil || macErr != nil || !hmac.Equal(mac, sum256(text, who)) || json.Unmarshal(text, &a) != nil ||
		now.After(a.Until) {
		return action{}, errTicket
	}
	return a, nil
}
