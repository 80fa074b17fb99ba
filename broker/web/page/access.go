package page

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/ratelog"
	"delaybroker/broker/text"
)

// Access has the rights of viewers. The zero value shows only the overview, and only to viewers that reach the broker
// by an IP address or by localhost.
type Access struct {
	Tokens   []Token
	Actions  bool     // viewers with a token may execute actions
	OpenRows bool     // viewers without a token also see rows
	Bodies   bool     // viewers of rows also see bodies, and the values of users' headers
	Hosts    []string // host names of the broker, in addition to localhost and addresses
}

// Token is the secret that authenticates a person. Name is the person's name in the log.
type Token struct{ Name, Secret string }

// wrongDelay delays the response to a wrong token, which slows down guessing.
const wrongDelay = 200 * time.Millisecond

// allowsHost reports whether a Host is allowed. A name of an attacker may resolve to this host, so allowsHost allows
// only localhost and the names in Hosts. It always allows an IP address.
func (a Access) allowsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return net.ParseIP(name) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(a.Hosts, func(h string) bool { // with or without a port
			return strings.EqualFold(h, host) || strings.EqualFold(h, name)
		})
}

// who returns the token of a request. It compares all tokens in constant time.
func (a Access) who(r *http.Request) (who Token, ok bool) {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, t := range a.Tokens {
		if subtle.ConstantTimeCompare([]byte(given), []byte(t.Secret)) == 1 {
			who, ok = t, bearer
		}
	}
	return who, ok
}

// origins refuses requests from other web pages. It allows the Host of the request and the names in Hosts, since a
// proxy may have changed the Host.
func (a Access) origins() *http.CrossOriginProtection {
	c := http.NewCrossOriginProtection()
	for _, host := range a.Hosts {
		for _, scheme := range []string{"http", "https"} {
			_ = c.AddTrustedOrigin(scheme + "://" + strings.ToLower(host)) // fails only for an invalid name
		}
	}
	return c
}

// access responds with the rights of the viewer.
func (p *Page) access(w http.ResponseWriter, r *http.Request) {
	a := p.cfg.Access
	who, known := a.who(r)
	if r.Header.Get("Authorization") != "" && !known {
		p.refuse(w, r)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"who": who.Name, "token": known, "tokens": len(a.Tokens) > 0, "rows": a.OpenRows || known,
		"actions": a.Actions && known, "can_act": a.Actions, "bodies": a.Bodies && (a.OpenRows || known),
	})
}

// rows calls next for viewers that may see rows.
func (p *Page) rows(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := p.cfg.Access
		_, known := a.who(r)
		switch {
		case a.OpenRows || known:
			next(w, r)
		case len(a.Tokens) == 0:
			writeError(w, http.StatusForbidden, "rows are hidden: they contain ids, keys and targets, and this broker listens "+
				"on more than localhost; set DELAY_HTTP_TOKEN, or DELAY_HTTP_ROWS=open")
		default:
			p.refuse(w, r)
		}
	}
}

// change calls next for viewers with the right to act.
func (p *Page) change(next func(w http.ResponseWriter, r *http.Request, who Token)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := p.cfg.Access
		switch who, known := a.who(r); {
		case !a.Actions:
			writeError(w, http.StatusForbidden, "actions are off: set DELAY_HTTP_ACTIONS=on and DELAY_HTTP_TOKEN")
		case p.origins.Check(r) != nil:
			writeError(w, http.StatusForbidden, "this request comes from another web page")
		case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			writeError(w, http.StatusUnsupportedMediaType, "want application/json")
		case !known:
			p.refuse(w, r)
		default:
			next(w, r, who)
		}
	}
}

// refuse responds to a request without a token, or with a wrong one.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request) {
	sentence := "a token is required: Authorization: Bearer <DELAY_HTTP_TOKEN>"
	if r.Header.Get("Authorization") != "" {
		sentence = "wrong token"
		if more, ok := p.wrong.Allow(ratelog.Every); ok {
			p.cfg.Log.Warn("the page refused a wrong token", "from", from(r), "more", more)
		}
		select {
		case <-time.After(wrongDelay):
		case <-r.Context().Done():
		}
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	writeError(w, http.StatusUnauthorized, sentence)
}

// from returns the origin of a request: its address, and the address that a proxy reports.
func from(r *http.Request) string {
	address := r.RemoteAddr
	if f := r.Header.Get("X-Forwarded-For"); f != "" {
		address += " for " + text.Printable(f, 100)
	}
	return address
}
