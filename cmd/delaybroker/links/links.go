package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/fault"
	"delaybroker/broker/link"
	"delaybroker/broker/ratelog"
)

const (
	// pingInterval and maxPingsOutstanding bound the time until a link detects a dead connection: three intervals. With
	// nats.go's default interval of two minutes, all messages would be minutes late.
	pingInterval        = 5 * time.Second
	maxPingsOutstanding = 2

	// writeTimeout is the maximum time that a write to the socket may block. A write holds nats.go's lock: meanwhile a
	// missing pong is not detected, and every publisher waits. nats.go's default of a minute would be a minute of lateness
	// for every lane. A link must be able to transfer a message of max_payload in this time.
	writeTimeout = 5 * time.Second

	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 250 * time.Millisecond // spreads the reconnects to a restarted server

	// maxBackoff is the maximum wait between two rejected logins, without the jitter. A link with corrected credentials
	// connects again after this time at most, plus the jitter.
	maxBackoff = 5 * time.Second

	// loginPoll is the interval of the checks whether the server rejects the first login of a link.
	loginPoll = 500 * time.Millisecond

	// maxFullPolls is the number of these checks for which a link waits for a free connection: the server may still count
	// those of a broker that has just stopped.
	maxFullPolls = 20

	// remindInterval is the interval of the log lines about a link that has not connected yet.
	remindInterval = 10 * time.Second
)

// A connection is a link, named by its purpose.
type connection struct {
	name    string
	conn    *nats.Conn
	login   *login
	refusal *refusal
}

// A set has the connections read, write, deliver and control, in this order.
type set []connection

// names are the names of the links, in the order of a set.
var names = []string{"read", "write", "deliver", "control"}

// BrokerLinks converts the links to the type of package broker.
func (l set) BrokerLinks() broker.Links {
	return broker.Links{Read: l[0].conn, Write: l[1].conn, Deliver: l[2].conn, Control: l[3].conn}
}

// A Dialer makes links.
type Dialer struct {
	Access    Access
	Overrides map[string]Access // replaces Access for some links, by the name of the link
	Version   string            // version of the program
	// RetryConnect makes Dial return before the links are connected: see set.Await. Without it, Dial fails if the
	// server is not reachable.
	RetryConnect bool
	// OnClosed is called when a link is closed permanently, even by Close.
	OnClosed func(error)
	Log      *slog.Logger
}

// Dial makes the links.
func (d Dialer) Dial() (set, error) {
	var set set
	for _, name := range names {
		access, login, refusal := d.AccessOf(name), new(login), new(refusal)
		nc, err := nats.Connect(access.URL, append(d.options(name, login, refusal), access.Options...)...)
		if err != nil {
			set.Close()
			return nil, fmt.Errorf("connect the link %q to NATS: %w", name, err)
		}
		set = append(set, connection{name, nc, login, refusal})
	}
	return set, nil
}

// AccessOf returns the access of the link with this name.
func (d Dialer) AccessOf(name string) Access {
	if access, found := d.Overrides[name]; found {
		return access
	}
	return d.Access
}

func (d Dialer) options(name string, login *login, refusal *refusal) []nats.Option {
	log := d.Log.With("link", name)
	// A link reconnects several times a second, and a missing permission may affect every message.
	limited := ratelog.New(log)
	const (
		unreachable = "a link cannot connect to NATS, and retries"
		rejected    = "NATS rejects the credentials of a link; the link reads them again and retries"
	)
	access := d.AccessOf(name)
	servers := StripUsers(access.URL)
	options := []nats.Option{
		nats.Name(fmt.Sprintf("delaybroker %s %s", d.Version, name)),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(login.delay),
		nats.IgnoreAuthErrorAbort(), // a rejected login is retried: a password rotation may be in progress
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPingsOutstanding),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(), // otherwise nats.go drops unwritten data and keeps the connection
		nats.RetryOnFailedConnect(d.RetryConnect),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("a link is disconnected from NATS, and reconnects", "err", err)
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			login.reset()
			limited.Log(slog.LevelWarn, unreachable, "servers", servers, "err", access.Explain(err))
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			login.reset()
			limited.Reset(unreachable)
			limited.Reset(rejected)
			log.Info("a link is reconnected to NATS", "server", link.ServerOf(nc))
		}),
		nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
			if isRefusal(nc, err) {
				refusal.note(nc, log, err)
				return
			}
			if isRejection(err) {
				login.reject(err)
				limited.Log(slog.LevelError, rejected, "servers", servers, "err", err)
				return
			}
			if errors.Is(err, nats.ErrPermissionViolation) {
				limited.Log(slog.LevelError,
					"NATS denied the broker a permission: grant it to the broker's user; the broker retries",
					"err", err)
				return
			}
			level := slog.LevelWarn
			if errors.Is(err, nats.ErrBadHeaderMsg) {
				level = slog.LevelDebug // the message becomes a dead letter with this reason
			}
			var subject string
			if sub != nil {
				subject = sub.Subject
			}
			log.Log(context.Background(), level, "NATS reports an error of a link", "subject", subject, "err", err)
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			d.OnClosed(fmt.Errorf("the NATS connection %q was closed permanently: %w", name,
				cmp.Or(nc.LastError(), nats.ErrConnectionClosed)))
		}),
	}
	if name != "read" {
		// A publish of the broker is sent immediately or refused. A buffer would send it after the reconnect, although
		// the broker has already sent the message again.
		options = append(options, nats.ReconnectBufSize(-1))
	}
	return options
}

// Await returns when each link has connected, or with the cause of ctx. The caller must send nothing before that. Until
// a link's first connection, nats.go buffers its messages even if the configured buffer size forbids buffering, and
// does not know the server's limits.
//
// If the server rejects the first logins of a link, Await returns an error, since the settings are wrong.
func (l set) Await(ctx context.Context, log *slog.Logger) error {
	for _, c := range l {
		if err := c.await(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// await returns when the link has connected, with the cause of ctx, or with an error if two polls in a row see that the
// server has rejected a login, or if the account or the server has no free connection for a while.
func (c connection) await(ctx context.Context, log *slog.Logger) error {
	listener := c.conn.StatusChanged(nats.CONNECTED)
	defer c.conn.RemoveStatusListener(listener)
	reminder := time.NewTicker(remindInterval)
	defer reminder.Stop()
	poll := time.NewTicker(loginPoll)
	defer poll.Stop()
	rejections, tooMany := 0, 0 // consecutive polls that saw a rejection, or a limit of connections
	for changed := listener; !c.conn.IsConnected(); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case _, open := <-changed:
			if !open { // the link was closed, so ctx will end
				changed = nil
			}
		case <-poll.C: // nats.go calls no handler if the server rejects the first login
			err := c.conn.LastError()
			if tooMany++; !isFull(err) {
				tooMany = 0
			}
			if tooMany > maxFullPolls {
				return fmt.Errorf("%w: the broker needs %d connections, raise conn of the account or max_connections of "+
					"the server: the link %q: %w", ErrConnections, len(names), c.name, err)
			}
			if rejections++; !isRejection(err) {
				rejections = 0
			}
			if rejections > 1 {
				return fmt.Errorf("NATS rejects the credentials of the link %q: %w", c.name, err)
			}
		case <-reminder.C:
			log.Warn("the broker waits for NATS", "link", c.name, "err", Access{}.Explain(c.conn.LastError()))
		}
	}
	return nil
}

// Faults returns the links that are not connected, not logged in or without their subscriptions, by the name of the
// link.
func (l set) Faults() map[string]fault.Fault {
	faults := make(map[string]fault.Fault)
	for _, link := range l {
		switch refused := link.refusal.fault(); {
		case !link.conn.IsConnected() || link.login.rejected():
			faults[link.name] = link.login.fault()
		case refused != nil:
			faults[link.name] = *refused
		}
	}
	return faults
}

// Close closes every link.
func (l set) Close() {
	for _, link := range l {
		link.conn.Close()
	}
}
