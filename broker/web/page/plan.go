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
	// planTime is how long a plan holds.
	planTime = 2 * time.Minute
	// maxRequest is the largest request, in bytes.
	maxRequest = 256 << 10
)

// A action is something that is done from the page.
type action struct {
	Verb   string `json:"verb"`             // cancel, move, fire; resend, remove; pause, resume
	Target string `json:"target,omitempty"` // a pattern, for many timers, for letters and for pauses
	timerChoice
	letterChoice
	fixed
}

// timerChoice is which timers, one by its key or all that match, and when they are moved to: due after so long, or at a
// time, or so much later.
type timerChoice struct {
	All        bool       `json:"all,omitempty"`
	Timers     []timerRef `json:"timers,omitempty"` // those selected, instead of one
	Key        string     `json:"key,omitempty"`
	Generation uint64     `json:"generation,omitempty"`
	DueAfter   string     `json:"due_after,omitempty"`
	DueBefore  string     `json:"due_before,omitempty"`
	In         string     `json:"in,omitempty"`
	At         string     `json:"at,omitempty"`
	By         string     `json:"by,omitempty"`
}

// A timerRef names one timer that was selected, as it was seen.
type timerRef struct {
	Key        string `json:"key"`
	Target     string `json:"target"`
	Generation uint64 `json:"generation"`
}

// letterChoice is which dead letters, and how they are resent.
type letterChoice struct {
	Number     uint64          `json:"number,omitempty"`
	Numbers    []uint64        `json:"numbers,omitempty"` // those selected, instead of one
	Code       string          `json:"code,omitempty"`
	Since      string          `json:"since,omitempty"`
	To         string          `json:"to,omitempty"` // another target
	Now        bool            `json:"now,omitempty"`
	Unsealed   bool            `json:"unsealed,omitempty"`
	DropExpiry bool            `json:"drop_expiry,omitempty"`
	Edit       deadletter.Edit `json:"edit,omitzero"` // of one letter
}

// fixed is what the plan says, and not who asks for one.
type fixed struct {
	UpTo   uint64    `json:"up_to,omitempty"` // the last sequence of timers
	Before time.Time `json:"before,omitzero"` // when the letters died
	Count  uint64    `json:"count,omitempty"` // how many it is about
	Until  time.Time `json:"until,omitzero"`  // until when the plan holds
	Word   string    `json:"word,omitempty"`  // of this plan alone: acted on again, it does no more
	Shell  string    `json:"shell,omitempty"` // the line that does the same
}

// A plan says what an action would do.
type plan struct {
	Count    uint64   `json:"count"`
	Sentence string   `json:"sentence"`
	Notes    []string `json:"notes,omitempty"` // what would be left, and why
	Shell    string   `json:"shell"`
	Ticket   string   `json:"ticket,omitempty"` // empty where nothing would be done
}

// plan answers what an action would do.
func (p *Page) plan(w http.ResponseWriter, r *http.Request, who Token) {
	var a action
	if !read(w, r, &a) {
		return
	}
	a.fixed = fixed{}
	p.withSession(w, r, questionTime, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		does, err := operationFor(a)
		if err != nil {
			return nil, err
		}
		made, err := does.plan(ctx, i, &a)
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

// act does what was planned.
func (p *Page) act(w http.ResponseWriter, r *http.Request, who Token) {
	var asked struct {
		Ticket string `json:"ticket"`
	}
	if !read(w, r, &asked) {
		return
	}
	a, err := unseal(asked.Ticket, who, time.Now())
	if err != nil {
		writeError(w, http.StatusConflict, err.Error())
		return
	}
	does, err := operationFor(a)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	log := p.cfg.Log.With("who", who.Name, "from", from(r), "verb", a.Verb, "does", a.logged(), "planned", a.Count)
	log.Info("the page acts")
	// Whoever goes away does not stop what was begun: it is bounded, and would be half done.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	p.withSession(w, r, actTime, func(ctx context.Context, i *inspect.Inspector) (any, error) {
		done, err := does.act(ctx, i, a)
		log.Info("the page has acted", "did", done.Sentence, "err", err)
		p.changed()
		return done, err
	})
}

// logged is the line of a shell that does the same, without the values of headers: a log keeps what only those may see
// who see bodies.
func (a action) logged() string {
	line := a.Shell
	for name, values := range a.Edit.Set {
		for _, value := range values {
			line = strings.ReplaceAll(line, quoted(name+": "+value), quoted(name+": …"))
		}
	}
	return line
}

// read reads a request of ours: one JSON object, and no field that does not exist.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, more := body.Token(); more != io.EOF {
			err = errors.New("one JSON object, and nothing behind it")
		}
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "not understood: "+text.Printable(err.Error(), 300))
	}
	return err == nil
}

// seal makes a ticket that only who planned can act on.
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
	text, bad := code.DecodeString(body)
	mac, worse := code.DecodeString(sum)
	if bad != nil || worse != nil || !hmac.Equal(mac, sum256(text, who)) || json.Unmarshal(text, &a) != nil ||
		now.After(a.Until) {
		return action{}, errTicket
	}
	return a, nil
}
