package process

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/web"
	"delaybroker/broker/web/page"
	"delaybroker/cmd/delaybroker/links"
)

// pageConnectTimeout is the maximum time for connecting as the page's user.
const pageConnectTimeout = 2 * time.Second

// page creates the page. It opens no connection: the page does, when it needs one.
func (p Process) page(b *broker.Broker, dialer links.Dialer, source web.Source) *page.Page {
	c := p.Config.Broker
	return page.New(page.Config{
		Engine: b, Checks: source.Checks, History: c.History, Durability: source.Durability, Version: p.Version,
		Prefix: cmp.Or(c.Prefix, message.DefaultPrefix), Rates: c.Rates, Access: p.Config.Page, Log: p.Log,
		Open: p.opener(dialer, "page"),
		Host: func() doctor.Host { return p.Config.Host(p.Version) },
	})
}

// opener returns a function that opens inspectors, each on its own connection, as the page's user.
func (p Process) opener(dialer links.Dialer, purpose string) func(context.Context) (*inspect.Inspector, error) {
	c, access := p.Config.Broker, dialer.AccessOf("page")
	return func(context.Context) (*inspect.Inspector, error) {
		name := nats.Name(fmt.Sprintf("delaybroker %s %s", p.Version, purpose))
		nc, err := nats.Connect(access.URL, append([]nats.Option{
			name, nats.Timeout(pageConnectTimeout), nats.NoReconnect(), nats.ErrorHandler(nil),
		}, access.Options...)...)
		if err != nil {
			return nil, fmt.Errorf("connect to NATS for the %s: %w", purpose, err)
		}
		return inspect.Open(nc, c)
	}
}
