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

// Config is the configuration of an embedded NATS server. Without users, the server should listen on a loopback
// address.
type Config struct {
	File           string // path of a configuration file of nats-server, or empty; each start reads the file
	User, Password string // the only user, unless the file has users; empty for none

	Anonymous    bool   // clients need no user
	OpenListener string // File.OpenListener

	Host       string // empty for all interfaces
	Port       int    // zero for any free port
	Dir        string
	Sync       time.Duration // interval between two fsyncs; ignored with SyncAlways
	SyncAlways bool
}

// Durability returns the server's fsync policy; nil if no server is embedded.
func (c *Config) Durability() *doctor.Sync {
	if c == nil {
		return nil
	}
	return &doctor.Sync{Always: c.SyncAlways, Every: c.Sync}
}

// options returns the options of nats-server: those of the file, and those that the file must not contain.
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
		o.Port = server.RANDOM_PORT // nats-server replaces zero by 4222
	}
	o.ServerName = doctor.EmbeddedName
	o.JetStream, o.StoreDir, o.SyncInterval, o.SyncAlways = true, c.Dir, c.Sync, c.SyncAlways
	o.NoSigs, o.DisableJetStreamBanner = true, true
	return o, nil
}

// ExposedAddress returns an address at which clients on other hosts need no user, or "".
func (c *Config) ExposedAddress() string {
	switch {
	case c == nil:
		return ""
	case c.Anonymous && !IsLoopback(c.Host):
		return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	}
	return c.OpenListener
}

// IsLoopback reports whether only this host can connect. Any name other than localhost counts as public.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// checkStore returns the check of the usage of the store, with the limit of the file.
func (f File) checkStore(used doctor.Usage) stats.Check {
	limit := "three quarters of the disk space that was free at the start"
	if f.LimitsStore {
		limit = "max_file of DELAY_EMBEDDED_CONFIG"
	}
	check := stats.Check{Name: "store", OK: used.Share() < inspect.FullShare,
		Detail: fmt.Sprintf("%s of %s, %s", humanize.IBytes(used.Bytes), humanize.IBytes(uint64(used.Limit)), limit)}
	if !check.OK {
		check.Detail += ": " + doctor.EmbeddedFullAdvice
	}
	return check
}
