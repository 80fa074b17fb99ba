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

// Access has the rights of viewers. The zero value allows only the overview, and only under an IP address or localhost
// as the host name.
type Access struct {
	Tokens   []Token
	Actions  bool     // viewers with a token may execute actions
	OpenRows bool     // viewers without a token may see rows
	Bodies   bool     // viewers who may see rows may also see headers and bodies
	Hosts    []string // other allowed host names, with or without a port
}

// Token is the secret that authenticates a person. Name is the person's name in the log.
type Token struct{ Name, Secret string }

// guessDelay is the delay of the response to a wrong token.
const guessDelay = 200 * time.Millisecond

// allowsHost reports whether a request may have a Host: an IP address, localhost, a name that ends in .localhost, or a
// name in Hosts. It does not allow other names, because an attacker's name may resolve to this host.
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

// authenticate returns the token of a request. Ok is false if the request has no valid token. The duration depends on
// the length of the given secret, and not on its characters.
func (a Access) authenticate(r *http.Request) (token Token, ok bool) {
	secret, hasBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, t := range a.Tokens {
		if subtle.ConstantTimeCompare([]byte(secret), []byte(t.Secret)) == 1 {
			token, ok = t, hasBearer
		}
	}
	return token, ok
}

// origins returns the check that refuses requests from other web pages. It allows the origins of Hosts, because a proxy
// may have changed the Host of a request.
func (a Access) origins() *http.CrossOriginProtection {
	c := http.NewCrossOriginProtection()
	for _, host := range a.Hosts {
		for _, scheme := range []string{"http", "https"} {
			_ = c.AddTrustedOrigin(scheme + "://" + strings.ToLower(host)) // fails only for an invalid name
		}
	}
	return c
}

// access responds with the rights of the viewer, or with an error if the token is wrong.
func (p *Page) access(w http.ResponseWriter, r *http.Request) {
	a := p.cfg.Access
	token, ok := a.authenticate(r)
	if r.Header.Get("Authorization") != "" && !ok {
		p.refuse(w, r)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"who": token.Name, "token": ok, "tokens": len(a.Tokens) > 0, "rows": a.OpenRows || ok,
		"actions": a.Actions && ok, "can_act": a.Actions, "bodies": a.Bodies && (a.OpenRows || ok),
	})
}

// requireRows returns a handler that calls next if the viewer may see rows.
func (p *Page) requireRows(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := p.cfg.Access
		_, ok := a.authenticate(r)
		switch {
		case a.OpenRows || ok:
			next(w, r)
		case len(a.Tokens) == 0:
			writeError(w, http.StatusForbidden, "the rows are hidden, because they contain ids, keys and targets, and this "+
				"broker listens on more than localhost: set DELAY_HTTP_TOKEN, or DELAY_HTTP_ROWS=open")
		default:
			p.refuse(w, r)
		}
	}
}

// requireActions returns a handler that calls next if the viewer may execute actions.
func (p *Page) requireActions(next func(w http.ResponseWriter, r *http.Request, token Token)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := p.cfg.Access
		switch token, ok := a.authenticate(r); {
		case !a.Actions:
			writeError(w, http.StatusForbidden, "actions are off: set DELAY_HTTP_ACTIONS=on and DELAY_HTTP_TOKEN")
		case p.origins.Check(r) != nil:
			writeError(w, http.StatusForbidden, "the request was refused: it comes from another web page")
		case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
			writeError(w, http.StatusUnsupportedMediaType, "the request was refused: want the content type application/json")
		case !ok:
			p.refuse(w, r)
		default:
			next(w, r, token)
		}
	}
}

// refuse responds to a request that has no token or a wrong token.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request) {
	sentence := "a token is required: send the header Authorization: Bearer <DELAY_HTTP_TOKEN>"
	if r.Header.Get("Authorization") != "" {
		sentence = "the token is wrong: use a token of DELAY_HTTP_TOKEN"
		if more, ok := p.wrongTokens.Allow(ratelog.Interval); ok {
			p.cfg.Log.Warn("the page refused a wrong token", "from", clientAddress(r), "more", more)
		}
		select {
		case <-time.After(guessDelay):
		case <-r.Context().Done():
		}
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	writeError(w, http.StatusUnauthorized, sentence)
}

// clientAddress returns the address of the client, and the address that a proxy reports.
func clientAddress(r *http.Request) string {
	address := r.RemoteAddr
	if f := r.Header.Get("X-Forwarded-For"); f != "" {
		address += " for " + text.Printable(f, 100)
	}
	return address
}
