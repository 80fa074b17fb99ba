package inspect

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/streams"
)

const (
	// EmbeddedName is the name of the server that a broker embeds.
	EmbeddedName = "delaybroker"

	ownAPI = "$JS.API" // the root of the JetStream API of the own account
)

// Host is what is known on the host where a verb runs, without asking NATS.
type Host struct {
	Version string // of this program
	Client  string // the version of nats.go
	Memory  Memory
	Sync    *Sync // of the embedded server, if the settings want one
	Probe   Probe
	Exposed string   // where the embedded server lets in whoever comes from another host; empty for nowhere
	Unknown []string // variables that look like settings and are none, each with a sentence
	Login   string   // what to set where the server does not accept the user; empty for the settings of NATS
}

// Probe is what a broker on this host says of itself over HTTP.
type Probe struct {
	URL    string  // empty where nobody was asked
	Checks []Check // of /readyz
	Alive  []Check // of /healthz
	Err    error
}

// A Check is one reason for a probe's answer, as /readyz has it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// A Link is one of the broker's connections that has a user of its own.
type Link struct {
	Name    string // "read", "write" or "deliver"
	From    string // the setting that names its user
	Connect func() (*nats.Conn, error)
}

// Facts are what the checks judge. What could not be found out is nil or empty, with an error beside it where a check
// needs the reason.
type Facts struct {
	Config     broker.Config
	Host       Host
	ConnectErr error // why nothing else is known

	connected
	account    *jetstream.AccountInfo
	accountErr error
	want       []streams.Spec
	listed     // nothing when unknown
	findErr    error
	instances  instances
	lanes      Lanes
	clocks     []clock
	keys       []string     // the ids of the keys, of which the first seals
	sealedWith []sealedWith // where there is more than one key
	trial      trial
}

// connected is what is known of the connection itself.
type connected struct {
	server     string // where to, without credentials
	serverName string
	clustered  bool
	version    string
	apiPrefix  string
	prefix     string // of the broker's subjects
	inbox      string
	user       *userInfo  // nil when the server does not say
	apart      []linkUser // of the links that have a user of their own
	refused    []string   // what the server refused while we asked, in its words
}

// Gather asks everything, and goes on when something is not answered. It changes nothing.
func (i *Inspector) Gather(ctx context.Context, host Host, links []Link) Facts {
	f := Facts{
		Config: i.cfg, Host: host, want: i.wanted(),
		connected: connected{
			server: ServerOf(i.Conn), serverName: i.Conn.ConnectedServerName(), version: i.Conn.ConnectedServerVersion(),
			clustered: i.clustered(), apiPrefix: i.api.API, prefix: i.names.Prefix(), inbox: i.inbox(),
		},
	}
	f.user, _ = i.askUser(ctx) // without it, only what is refused is known
	f.accountErr = i.ask(ctx, func(ctx context.Context) (err error) {
		f.account, err = i.JetStream.AccountInfo(ctx)
		return err
	})
	var there listed
	there, f.findErr = i.listSettled(ctx)
	if f.findErr == nil {
		f.listed = there
		i.gatherLanes(ctx, &f, there, links)
	}
	f.refused = i.refusals()
	for _, l := range links {
		f.apart = append(f.apart, l.ask(ctx))
	}
	return f
}

// listSettled lists the streams. While some are missing, and a broker that has just started may be making them, it
// lists them again, until none was made for a while.
func (i *Inspector) listSettled(ctx context.Context) (there listed, err error) {
	missing := 0
	for since := time.Now(); ; {
		if err := i.ask(ctx, func(ctx context.Context) (err error) {
			there, err = i.list(ctx)
			return err
		}); err != nil {
			return there, err
		}
		had := missing
		missing = len(streams.Compare(i.wanted(), there.all).Missing) - len(there.away)
		if missing < had {
			since = time.Now()
		}
		if missing <= 0 || !i.cfg.Provision || time.Since(since) >= Handover {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return there, ctx.Err()
		case <-time.After(askPause):
		}
	}
}

// gatherLanes asks about the streams that were found.
func (i *Inspector) gatherLanes(ctx context.Context, f *Facts, there listed, links []Link) {
	_ = i.streams.Learn(there.found) // without a secret, any answer counts as an instance's
	f.instances.refused = i.question(ctx, twice+Patience, func(ctx context.Context) (err error) {
		n, err := i.askInstances(ctx, lanesOf(f.found), takeover, true)
		f.instances.answers, f.instances.latest = n.answers, n.latest
		return err
	})
	f.lanes = i.lookAt(ctx, there, f.instances)
	i.lookCloser(ctx, f.lanes.Lanes)
	f.clocks = i.lookAtClocks(ctx, f.lanes)
	f.keys, f.sealedWith = i.Policy().Keys.IDs(), i.countKeys(ctx, f.found)
	for _, l := range links {
		if l.Name == "write" {
			return // who is not to write cannot try it
		}
	}
	f.trial = i.try(ctx, f)
}
