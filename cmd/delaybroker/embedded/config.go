package embedded

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
)

// Config says how to run a NATS server of our own. Without users it belongs on a loopback address.
type Config struct {
	File           string // a configuration of nats-server's, empty for none; it may be changed between two starts
	User, Password string // who may connect, unless the file has users; empty for anybody

	TLS     bool // the file requires TLS of clients
	Bounded bool // the file says how much it may store
	Open    bool // the file asks for no user

	Host       string // empty means every interface
	Port       int    // zero means any that is free
	Dir        string
	Sync       time.Duration // between two fsyncs, unless SyncAlways
	SyncAlways bool
}

// Durability is how often it syncs to disk; nil where no server is embedded.
func (c *Config) Durability() *doctor.Sync {
	if c == nil {
		return nil
	}
	return &doctor.Sync{Always: c.SyncAlways, Every: c.Sync}
}

// options are the options of nats-server. By default it would put its data into a temporary directory and handle
// signals itself.
func (c Config) options() (*server.Options, error) {
	o := &server.Options{}
	if c.File != "" {
		var err error
		if o, err = server.ProcessConfigFile(c.File); err != nil {
			return nil, fmt.Errorf("DELAY_EMBEDDED_CONFIG %s: %s", c.File, oneLine(err))
		}
	}
	if !hasUsers(o) {
		o.Username, o.Password = c.User, c.Password
	}
	o.Host, o.Port = c.Host, c.Port
	if c.Port == 0 {
		o.Port = server.RANDOM_PORT // zero is 4222 there
	}
	o.ServerName = doctor.EmbeddedName
	o.JetStream, o.StoreDir, o.SyncInterval, o.SyncAlways = true, c.Dir, c.Sync, c.SyncAlways
	o.NoSigs, o.DisableJetStreamBanner = true, true
	return o, nil
}

// Exposed is the address of a server that asks for no user, if others than this host can reach it. Otherwise it is
// empty.
func (c *Config) Exposed() string {
	if c == nil || !c.Open || c.isLoopback() {
		return ""
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}

// isLoopback reports whether only this host can connect. A name other than localhost is taken for a public one.
func (c Config) isLoopback() bool {
	return c.Host == "localhost" || net.ParseIP(c.Host).IsLoopback()
}

// checkStore judges how much of its store the server uses.
func (c *Config) checkStore(used doctor.Usage) stats.Check {
	limit := "three quarters of what was free on the disk when the server started"
	if c.Bounded {
		limit = "max_file of DELAY_EMBEDDED_CONFIG"
	}
	check := stats.Check{Name: "store", OK: used.Part() < inspect.FullShare,
		Detail: fmt.Sprintf("%s of %s, %s", humanize.IBytes(used.Bytes), humanize.IBytes(uint64(used.Limit)), limit)}
	if !check.OK {
		check.Detail += ": " + doctor.EmbeddedFull
	}
	return check
}
