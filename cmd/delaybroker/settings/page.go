package settings

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	"delaybroker/broker/message"
	"delaybroker/broker/web/page"
	"delaybroker/cmd/delaybroker/embedded"
)

var hostName = regexp.MustCompile(`^[a-zA-Z0-9.:-]*$`)

// minToken is the minimum length of a token, in bytes.
const minToken = 16

// pageAccess parses the settings for access to the page.
func (s settings) pageAccess(p *problems) page.Access {
	a := page.Access{
		Actions: p.oneOf("DELAY_HTTP_ACTIONS", s.HTTPActions, "on", "off") == "on",
		Bodies:  p.oneOf("DELAY_HTTP_BODIES", s.HTTPBodies, "on", "off") == "on",
		Hosts:   p.hosts("DELAY_HTTP_HOSTS", s.HTTPHosts),
		Tokens:  p.tokens("DELAY_HTTP_TOKEN", s.HTTPToken),
	}
	switch p.oneOf("DELAY_HTTP_ROWS", s.HTTPRows, "open", "token", "auto") {
	case "open":
		a.OpenRows = true
	case "auto":
		a.OpenRows = isLoopback(s.HTTPAddr)
	case "token":
		if s.HTTPToken == "" {
			p.refuse("DELAY_HTTP_ROWS", s.HTTPRows, "set DELAY_HTTP_TOKEN too; without a token, nobody could see the rows")
		}
	}
	switch {
	case a.Actions && s.HTTPToken == "":
		p.refuse("DELAY_HTTP_ACTIONS", s.HTTPActions,
			"set DELAY_HTTP_TOKEN too, with at least %d bytes; actions need a token",
			minToken)
	case a.Actions && s.HTTPAddr == wordOff:
		p.refuse("DELAY_HTTP_ACTIONS", s.HTTPActions, "there is no page with DELAY_HTTP_ADDR=off")
	}
	return a
}

// hosts parses host names.
func (p *problems) hosts(name, value string) []string {
	hosts := message.SplitList(value)
	for _, host := range hosts {
		if !hostName.MatchString(host) {
			p.refuse(name, value, "want host names such as delay.example.com, without scheme, path or wildcards")
			break
		}
	}
	return hosts
}

// tokens parses tokens, each with or without a name. A token is never shown.
func (p *problems) tokens(name, value string) []page.Token {
	var tokens []page.Token
	seen := make(map[string]bool)
	for i, word := range message.SplitList(value) {
		tokenName, secret, named := strings.Cut(word, ":")
		if !named {
			tokenName, secret = fmt.Sprintf("token-%d", i+1), word
		}
		bad := func(r rune) bool { return r <= ' ' || r > '~' }
		switch {
		case len(secret) < minToken:
			p.refuseSecret(name, "token %d has %d bytes, want at least %d: use the output of openssl rand -hex 16",
				i+1, len(secret), minToken)
		case strings.ContainsFunc(secret, bad):
			p.refuseSecret(name, "token %d: want printable ASCII without spaces", i+1)
		case tokenName == "" || len(tokenName) > 64 || strings.ContainsFunc(tokenName, bad):
			p.refuseSecret(name, "token %d: want a name of 1 to 64 bytes before the colon", i+1)
		case seen[secret]:
			p.refuseSecret(name, "token %d is given twice", i+1)
		}
		seen[secret] = true
		tokens = append(tokens, page.Token{Name: tokenName, Secret: secret})
	}
	return tokens
}

// isLoopback reports whether a listen address is a loopback address, which only this host can reach.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && embedded.IsLoopback(host)
}
