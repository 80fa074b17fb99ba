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

// Config is the configuration of an embedded NATS server. Without users it belongs on a loopback address.
type Config struct {
	File           string // a configuration file of nats-server's, or empty; it may change between two starts
	User, Password string // of the only user, unless the file has users; empty: any client

	TLS     bool // the file requires TLS from clients
	Bounded bool // the file limits the storage
	Open    bool // the file requires no user

	Host       string // empty: all interfaces
	Port       int    // zero: any free port
	Dir        string
	Sync       time.Duration // between two fsyncs, unless SyncAlways
	SyncAlways bool
}

// Durability returns the interval of its fsyncs; nil if no server is embedded.
func (c *Config) Durability() *doctor.Sync {
	if c == nil {
		return nil
	}
	return &doctor.Sync{Always: c.SyncAlways, Every: c.Sync}
}

// options returns the options of nats-server. By default it would put its data into a temporary directory and handle
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
		o.Port = server.RANDOM_PORT // zero means 4222 there
	}
	o.ServerName = doctor.EmbeddedName
	o.JetStream, o.StoreDir, o.SyncInterval, o.SyncAlways = true, c.Dir, c.Sync, c.SyncAlways
	o.NoSigs, o.DisableJetStreamBanner = true, true
	return o, nil
}

// Exposed returns the address of a server that requires no user, if other hosts can reach it, or else "".
func (c *Config) Exposed() string {
	if c == nil || !c.Open || c.isLoopback() {
		return ""
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}

// isLoopback reports whether only this host can connect. It takes a name other than localhost for a public one.
func (c Config) isLoopback() bool {
	return c.Host == "localhost" || net.ParseIP(c.Host).IsLoopback()
}

// checkStore returns the check of the store's usage.
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
