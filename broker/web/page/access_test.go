package page

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestOnlyCalledByOwnNames: a request with another host name is refused on every path. Otherwise, DNS rebinding would
// give an attacker's web page access to the broker.
func TestOnlyCalledByOwnNames(t *testing.T) {
	p := newPage(Access{OpenRows: true, Hosts: []string{"Delay.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1:8422": 200, "[::1]:8422": 200, "10.1.2.3": 200, "localhost": 200, "LOCALHOST:1": 200,
		"a.localhost:8422": 200, "delay.example.com": 200, "delay.example.com:443": 200, "delay.example.com.": 200,
		"evil.example": 403, "evil.example:8422": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"notlocalhost": 403, "": 403, "xdelay.example.com": 403,
	} {
		for _, path := range []string{"/assets/app.js", "/api/access"} {
			if got := call(p, "GET", path, "", "Host", host).Code; got != want {
				t.Errorf("%s with the host %q: got %d, want %d", path, host, got, want)
			}
		}
	}
}

// TestSecurityHeaders: every response has the security headers, also an error.
func TestSecurityHeaders(t *testing.T) {
	p := newPage(Access{})
	for _, path := range []string{
		"/", "/assets/app.js", "/api/access", "/api/look/pending/ls", "/nothing", "/assets/nothing",
	} {
		h := call(p, "GET", path, "", "Accept", "text/html").Result().Header
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'",
		} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		for _, no := range []string{"unsafe", "http:", "https:", "data:", "*"} {
			if strings.Contains(policy, no) {
				t.Errorf("%s: the policy allows %s", path, no)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s: got headers %v", path, h)
		}
	}
}

// TestRowsAndActionsNeedTheirRights: without a token, rows need a setting that allows them, and actions are refused.
func TestRowsAndActionsNeedTheirRights(t *testing.T) {
	ann := []Token{{"ann", secret}}
	const rows, plan = "/api/look/pending/ls", `{"operation":"pause","items":[{"pattern":"x"}]}`
	for _, test := range []struct {
		name      string
		access    Access
		header    string
		rows, act int // 502 means that the request was allowed: there is no NATS server
	}{
		{"nothing allowed", Access{}, "", 403, 403},
		{"open rows", Access{OpenRows: true}, "", 502, 403},
		{"no token given", Access{Tokens: ann, Actions: true}, "", 401, 401},
		{"open rows, no token given", Access{Tokens: ann, Actions: true, OpenRows: true}, "", 502, 401},
		{"a wrong token", Access{Tokens: ann, Actions: true}, "Bearer " + secret + "x", 401, 401},
		{"an empty token", Access{Tokens: ann, Actions: true}, "Bearer ", 401, 401},
		{"not as a bearer", Access{Tokens: ann, Actions: true}, secret, 401, 401},
		{"the token", Access{Tokens: ann, Actions: true}, "Bearer " + secret, 502, 502},
		{"the token, actions off", Access{Tokens: ann}, "Bearer " + secret, 502, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the response to a wrong token is delayed
				p := newPage(test.access)
				if got := call(p, "GET", rows, "", "Authorization", test.header).Code; got != test.rows {
					t.Errorf("rows: got %d, want %d", got, test.rows)
				}
				got := call(p, "POST", "/api/plan", plan, "Authorization", test.header, "Content-Type", "application/json").Code
				if got != test.act {
					t.Errorf("plan: got %d, want %d", got, test.act)
				}
			})
		})
	}
}

// TestAccessToBodies: headers and bodies need the access to rows, and also the setting Bodies. Findings contain
// targets, so they need the access to rows.
func TestAccessToBodies(t *testing.T) {
	for _, test := range []struct {
		access            Access
		content, findings int // 502 means that the request was allowed: there is no NATS server
	}{
		{Access{}, 403, 403},
		{Access{OpenRows: true}, 403, 200},
		{Access{Bodies: true}, 403, 403},
		{Access{OpenRows: true, Bodies: true}, 502, 200},
		{Access{Tokens: []Token{{"ann", secret}}, Bodies: true}, 401, 401},
	} {
		p := newPage(test.access)
		for path, want := range map[string]int{"/api/content?number=1": test.content, "/api/findings": test.findings} {
			if got := call(p, "GET", path, "").Code; got != want {
				t.Errorf("%+v: %s: got %d, want %d", test.access, path, got, want)
			}
		}
	}
}

// TestOnlyOwnPageActs: another web page in the same browser cannot send an action, with or without a reverse proxy.
func TestOnlyOwnPageActs(t *testing.T) {
	p := newPage(Access{Tokens: []Token{{"ann", secret}}, Actions: true, Hosts: []string{"ops.example"}})
	for _, test := range []struct {
		headers []string
		want    int
	}{
		{nil, 502}, // curl
		{[]string{"Origin", "http://127.0.0.1:8422"}, 502},
		{[]string{"Origin", "https://ops.example"}, 502},
		{[]string{"Origin", "http://127.0.0.1:8422", "Sec-Fetch-Site", "same-origin"}, 502},
		{[]string{"Origin", "http://127.0.0.1:9999"}, 403},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Content-Type", "text/plain"}, 415},
		{[]string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
	} {
		headers := append([]string{"Authorization", "Bearer " + secret, "Content-Type", "application/json"}, test.headers...)
		const body = `{"operation":"pause","items":[{"pattern":"x"}]}`
		if got := call(p, "POST", "/api/plan", body, headers...).Code; got != test.want {
			t.Errorf("%v: got %d, want %d", test.headers, got, test.want)
		}
	}
	for _, path := range []string{"/api/plan", "/api/act"} {
		if got := call(p, "GET", path, "").Code; got != 405 {
			t.Errorf("GET %s: got %d, want 405", path, got)
		}
	}
}
