package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/inspect"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

const (
	// EmbeddedName is the name of the server that a broker embeds.
	EmbeddedName = "delaybroker"

	// listPause is how long to wait before listing the streams again.
	listPause = 250 * time.Millisecond

	ownAPI = "$JS.API" // the root of the JetStream API of the own account
)

// Host is what is known on the host where a verb runs, without asking NATS.
type Host struct {
	Version string // of this program
	Client  string // the version of nats.go
	Memory  config.Memory
	Sync    *Sync // of the embedded server, if the settings want one
	Probe   Probe
	Exposed string   // where the embedded server lets in whoever comes from another host; empty for nowhere
	Unknown []string // variables that look like settings and are none, each with a sentence
	NoTrial bool     // no publish is tried: the user has no right to, and its server logs each try
	Login   string   // what to set where the server does not accept the user; empty for the settings of NATS
}

// Probe is what a broker on this host says of itself over HTTP.
type Probe struct {
	URL    string        // empty where nobody was asked
	Checks []stats.Check // of /readyz
	Alive  []stats.Check // of /healthz
	Err    error
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
	account        *jetstream.AccountInfo
	accountErr     error
	want           []streams.Spec
	inspect.Listed // nothing when unknown
	findErr        error
	instances      inspect.Instances
	lanes          inspect.Lanes
	retrying       []message.Request       // some that wait for another attempt
	codes          map[message.Code]uint64 // of the dead letters, where they were counted
	clocks         []clock
	keys           []string     // the ids of the keys, of which the first seals
	sealedWith     []sealedWith // where there is more than one key
	trial          trial
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
	name       string     // of the user; empty for one that has none, such as a token
	user       *userInfo  // nil when the server does not say
	apart      []linkUser // of the links that have a user of their own
	refused    []string   // what the server refused while we asked, in its words
}

// An asker asks an inspector's questions, and remembers the answers as facts.
type asker struct {
	*inspect.Inspector
	names message.Names
}

// Gather asks everything, and goes on when something is not answered. It changes nothing.
func Gather(ctx context.Context, of *inspect.Inspector, host Host, links []Link) Facts {
	i := asker{of, of.Policy().Names}
	f := Facts{
		Config: i.Config(), Host: host, want: i.Wanted(),
		connected: connected{
			server: link.ServerOf(i.Conn), serverName: i.Conn.ConnectedServerName(), version: i.Conn.ConnectedServerVersion(),
			clustered: i.Clustered(), apiPrefix: i.APIPrefix(), prefix: i.names.Prefix(), inbox: link.Inbox(i.Conn),
			name: link.UserOf(i.Conn),
		},
	}
	f.user, _ = askUser(ctx, i.Session) // without it, only what is refused is known
	if f.user != nil {
		f.name = cmp.Or(f.user.User, f.name)
	}
	f.accountErr = i.Ask(ctx, func(ctx context.Context) (err error) {
		f.account, err = i.JetStream.AccountInfo(ctx)
		return err
	})
	var there inspect.Listed
	there, f.findErr = i.listSettled(ctx)
	if f.findErr == nil {
		f.Listed = there
		i.gatherLanes(ctx, &f, there, links)
	}
	f.refused = i.Refusals()
	for _, l := range links {
		f.apart = append(f.apart, l.ask(ctx))
	}
	return f
}

// listSettled lists the streams. While some are missing, and a broker that has just started may be making them, it
// lists them again, until none was made for a while.
func (i asker) listSettled(ctx context.Context) (there inspect.Listed, err error) {
	missing := 0
	for since := time.Now(); ; {
		if err := i.Ask(ctx, func(ctx context.Context) (err error) {
			there, err = i.Streams(ctx)
			return err
		}); err != nil {
			return there, err
		}
		had := missing
		missing = len(streams.Compare(i.Wanted(), there.All).Missing) - len(there.Away)
		if missing < had {
			since = time.Now()
		}
		if missing <= 0 || !i.Config().Provision || time.Since(since) >= inspect.Handover {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return there, ctx.Err()
		case <-time.After(listPause):
		}
	}
}

// gatherLanes asks about the streams that were found.
func (i asker) gatherLanes(ctx context.Context, f *Facts, there inspect.Listed, links []Link) {
	f.lanes, f.instances = i.LookSettled(ctx, there)
	i.lookCloser(ctx, f)
	f.clocks = i.lookAtClocks(ctx, f.lanes)
	f.keys, f.sealedWith = i.Policy().Keys.IDs(), i.countKeys(ctx, f.Found)
	writes := func(l Link) bool { return l.Name == "write" } // who is not to write cannot try it
	if !f.Host.NoTrial && !slices.ContainsFunc(links, writes) {
		f.trial = i.try(ctx, f)
	}
}
