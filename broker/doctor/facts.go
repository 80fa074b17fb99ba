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
	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
)

const (
	// EmbeddedName is the name of the server that a broker embeds.
	EmbeddedName = "delaybroker"

	// listInterval is the time between two requests for the list of streams.
	listInterval = 250 * time.Millisecond

	ownAPI = "$JS.API" // the root of the JetStream API in the user's own account
)

// Host has facts about the host and the program that need no request to NATS.
type Host struct {
	Version         string // of this program
	Client          string // the version of nats.go
	Memory          config.Memory
	Sync            *Sync // of the embedded server; nil without one
	Probe           Probe
	ExposedAddress  string   // address at which other hosts can use the embedded server without authentication, or ""
	UnknownSettings []string // warnings about environment variables that may be misspelt settings
	SkipTrial       bool     // no trial publish, for a user who lacks the permission to publish
	LoginSetting    string   // advice if the server refuses the user; if empty, doctor names the NATS_ settings
}

// Probe is what a broker on this host reports about itself.
type Probe struct {
	URL    string        // the source of the report; empty without a probe
	Checks []stats.Check // of /readyz
	Alive  []stats.Check // of /healthz
	Err    error
}

// A Link is a connection of the broker for which a setting names a separate user.
type Link struct {
	Name    string // "read", "write" or "deliver"
	Setting string // the setting that names this user
	Connect func() (*nats.Conn, error)
}

// Facts are the input of the checks. An unknown fact is nil or empty. Fields of type error have the reasons.
type Facts struct {
	Config     broker.Config
	Host       Host
	ConnectErr error // if not nil, doctor has no connection, and all facts from NATS are unknown

	// Of the connection:
	server     string // address, without credentials
	serverName string
	clustered  bool
	version    string
	apiPrefix  string
	names      message.Names // of the broker's subjects
	inbox      string
	name       string    // name of the user; empty for a user without a name, such as a token
	user       *userInfo // nil if the server does not report the user
	linkUsers  []linkUser
	refused    []string // the refused operations, such as "Publish to orders.a"

	account    *jetstream.AccountInfo
	accountErr error
	want       []streams.Spec
	inspect.StreamList
	findErr    error
	needs      []provision.Need // of the limits; nil if the streams are unknown
	instances  inspect.Instances
	lanes      inspect.Lanes
	retrying   inspect.RetryReport
	retryErr   error
	codes      map[message.Code]uint64 // number of dead letters by code
	clocks     []clockReading
	keys       []string    // ids of the keys; the first key seals
	sealCounts []sealCount // nil if there is only one key
	trial      trial

	pausedSeries []string // the series that are paused after dead letters, with the reasons
}

// A gatherer gathers facts by an inspector's requests.
type gatherer struct {
	*inspect.Inspector
	names message.Names
}

// Gather requests the facts from NATS, and changes no message and no stream. A failed request leaves its own facts
// unknown. If the request for the list of streams fails, all facts about lanes are unknown too.
func Gather(ctx context.Context, inspector *inspect.Inspector, host Host, links []Link) Facts {
	i := gatherer{inspector, inspector.Policy().Names}
	f := Facts{
		Config: i.Config(), Host: host, want: i.Wanted(),
		server: link.ServerOf(i.Conn), serverName: i.Conn.ConnectedServerName(), version: i.Conn.ConnectedServerVersion(),
		clustered: i.Clustered(), apiPrefix: i.APIPrefix(), names: i.names, inbox: link.Inbox(i.Conn),
		name: link.UserOf(i.Conn),
	}
	f.user = askUser(ctx, i.Session) // without an answer, only refusals show the user's permissions
	if f.user != nil {
		f.name = cmp.Or(f.user.User, f.name)
	}
	f.accountErr = i.Ask(ctx, func(ctx context.Context) (err error) {
		f.account, err = i.JetStream.AccountInfo(ctx)
		return err
	})
	var list inspect.StreamList
	list, f.findErr = i.listSettled(ctx)
	if f.findErr == nil {
		f.StreamList, f.needs = list, provision.Needs(
			ctx, jsapi.Client{Conn: i.Conn, API: i.APIPrefix()}, f.account, f.want, list.Infos, false)
		i.gatherLanes(ctx, &f, links)
	}
	f.refused = i.Refusals()
	for _, l := range links {
		f.linkUsers = append(f.linkUsers, l.ask(ctx))
	}
	return f
}

// listSettled lists the streams of the account. A new broker may still be creating its streams. So if streams are
// missing, and the broker is configured to create them, listSettled repeats the request. It stops when no stream is
// missing, or when none was created for the time inspect.MaxHandover.
func (i gatherer) listSettled(ctx context.Context) (list inspect.StreamList, err error) {
	missing := 0
	for created := time.Now(); ; {
		if err := i.Ask(ctx, func(ctx context.Context) (err error) {
			list, err = i.Streams(ctx)
			return err
		}); err != nil {
			return list, err
		}
		previous := missing
		missing = len(streams.Compare(i.Wanted(), list.Infos).MissingStreams) - len(list.Leaderless)
		if missing < previous {
			created = time.Now()
		}
		if missing <= 0 || !i.Config().Provision || time.Since(created) >= inspect.MaxHandover {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return list, ctx.Err()
		case <-time.After(listInterval):
		}
	}
}

func (i gatherer) gatherLanes(ctx context.Context, f *Facts, links []Link) {
	f.lanes, f.instances = i.SettledLanes(ctx, f.StreamList)
	f.retrying, f.retryErr = i.RetryingIn(ctx, f.lanes, inspect.RetryQuery{MaxRead: maxRetrying})
	for _, l := range f.lanes.Lanes {
		if l.Kind == streams.Dead && l.Info != nil && l.Pending > 0 && l.Info.State.NumSubjects <= maxSubjects {
			f.codes = i.countCodes(ctx, l.Stream)
		}
	}
	f.clocks = i.readClocks(ctx, f.lanes)
	f.pausedSeries = i.listPausedSeries(ctx)
	f.keys, f.sealCounts = i.Policy().Keys.IDs(), i.countKeys(ctx, f.Found)
	// A trial needs the user of the write link, so doctor omits the trial if the write link has its own user.
	isWriter := func(l Link) bool { return l.Name == "write" }
	if !f.Host.SkipTrial && !slices.ContainsFunc(links, isWriter) {
		f.trial = i.try(ctx, f)
	}
}
