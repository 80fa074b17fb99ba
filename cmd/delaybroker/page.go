package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/history"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/page"
	"delaybroker/broker/probes"
)

const (
	// minToken is the shortest token, in bytes.
	minToken = 16
	// pageConnect is how long a connection of the page may take.
	pageConnect = 2 * time.Second
)

// pageAccess is who may see and do what on the page.
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
			p.refuse("DELAY_HTTP_ROWS", s.HTTPRows, "set DELAY_HTTP_TOKEN too: nobody could see them")
		}
	}
	switch {
	case a.Actions && s.HTTPToken == "":
		p.refuse("DELAY_HTTP_ACTIONS", s.HTTPActions, "set DELAY_HTTP_TOKEN too, at least %d bytes: nobody acts without it",
			minToken)
	case a.Actions && s.HTTPAddr == off:
		p.refuse("DELAY_HTTP_ACTIONS", s.HTTPActions, "there is no page with DELAY_HTTP_ADDR=off")
	}
	return a
}

// hosts reads host names.
func (p *problems) hosts(name, value string) []string {
	all := message.Words(value)
	for _, host := range all {
		if strings.ContainsFunc(host, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-.:", r))
		}) {
			p.refuse(name, value, "want host names as in delay.example.com, without scheme, path or wildcards")
			break
		}
	}
	return all
}

// tokens reads tokens, each with or without a name. A token is never shown.
func (p *problems) tokens(name, value string) []page.Token {
	var all []page.Token
	seen := make(map[string]bool)
	for i, word := range message.Words(value) {
		who, secret, named := strings.Cut(word, ":")
		if !named {
			who, secret = fmt.Sprintf("token-%d", i+1), word
		}
		bad := func(r rune) bool { return r <= ' ' || r > '~' }
		switch {
		case len(secret) < minToken:
			p.refuseSecret(name, "number %d has %d bytes; want at least %d: take the output of openssl rand -hex 16",
				i+1, len(secret), minToken)
		case strings.ContainsFunc(secret, bad):
			p.refuseSecret(name, "number %d: want printable ASCII without spaces", i+1)
		case who == "" || len(who) > 64 || strings.ContainsFunc(who, bad):
			p.refuseSecret(name, "number %d: want a name of 1 to 64 bytes before the colon", i+1)
		case seen[secret]:
			p.refuseSecret(name, "number %d is given twice", i+1)
		}
		seen[secret] = true
		all = append(all, page.Token{Name: who, Secret: secret})
	}
	return all
}

// isLoopback reports whether only this host reaches an address to listen on.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// remembers keeps the history that the page shows; without a page, nothing is kept.
func (c *config) remembers() {
	if c.httpAddr != "" {
		c.broker.History = new(history.Book)
	}
}

// show answers with the probes and the page.
func (l *lifetime) show(web *http.Server, source probes.Source, shown *page.Page) {
	source.Page = shown
	web.Handler = source.Handler()
	l.running.Go(func() { shown.Run(l.ctx) })
}

// pageOf makes the page. Its connections are opened when somebody looks.
func (c config) pageOf(
	b *broker.Broker, dialer dialer, probes probes.Source, durability *atomic.Pointer[string], log *slog.Logger,
) *page.Page {
	prefix := c.broker.Prefix
	if prefix == "" {
		prefix = message.DefaultPrefix
	}
	access, apart := dialer.apart["page"]
	if !apart {
		access = dialer.access
	}
	return page.New(page.Config{
		Engine: b, Checks: probes.Checks, History: c.broker.History, Durability: durability, Version: dialer.version,
		Prefix: prefix, Rates: c.broker.Rates, Access: c.page, Log: log,
		Open: func(context.Context) (*inspect.Inspector, error) {
			name := nats.Name(fmt.Sprintf("delaybroker %s page", dialer.version))
			nc, err := nats.Connect(access.url, append([]nats.Option{
				name, nats.Timeout(pageConnect), nats.NoReconnect(), nats.ErrorHandler(nil),
			}, access.options...)...)
			if err != nil {
				return nil, fmt.Errorf("connect to NATS for the page: %w", err)
			}
			i, err := inspect.Open(nc, c.broker)
			if err != nil {
				nc.Close()
			}
			return i, err
		},
	})
}
