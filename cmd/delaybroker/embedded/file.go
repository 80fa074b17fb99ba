package embedded

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// The reasons why a file of DELAY_EMBEDDED_CONFIG may not have a key.

const (
	saysListen = "DELAY_EMBEDDED_LISTEN says where it listens"
	saysDir    = "DELAY_EMBEDDED_DIR says where its data is"
	saysSync   = "DELAY_EMBEDDED_SYNC says how often it syncs to disk"
	saysLog    = "it writes into the broker's log: see DELAY_LOG_LEVEL"
	isAlone    = "the embedded server is alone; run a nats-server of your own for that, and set NATS_URL to it"
)

// notInFile are the forbidden keys, and the sections with them, each with the reason.
var notInFile = map[string]string{
	"listen": saysListen, "host": saysListen, "net": saysListen, "port": saysListen,
	"store_dir": saysDir, "storedir": saysDir, "server_name": "its name is fixed, so that the other commands know it",
	"jetstream.store": saysDir, "jetstream.store_dir": saysDir, "jetstream.storedir": saysDir,
	"jetstream.sync": saysSync, "jetstream.sync_interval": saysSync,
	"jetstream.domain": "DELAY_JS_DOMAIN is for servers of others, and the embedded one has no domain",
	"cluster":          isAlone, "gateway": isAlone, "leaf": isAlone, "leafnodes": isAlone,
	"logfile": saysLog, "log_file": saysLog, "syslog": saysLog, "remote_syslog": saysLog,
	"debug": saysLog, "trace": saysLog,
}

// unset matches nats-server's error about a variable that is not set. The error is not repeated, since the name may be
// a password without quotes.
var unset = regexp.MustCompile(`variable reference for '.*' on line (\d+).*`)

// A File is a configuration file that was read.
type File struct{ options *server.Options }

// ReadFile reads a file. It returns nats-server's errors, which name a line and a key, and no secret value.
func ReadFile(path string) (f File, wrong []string) {
	f.options = &server.Options{}
	keys, err := conf.ParseFile(path)
	if err != nil {
		return f, []string{unset.ReplaceAllString(oneLine(err), "the variable on line $1 is not set"+
			" (a password that begins with a dollar sign needs quotes)")}
	}
	for _, key := range slices.Sorted(maps.Keys(keysOf(keys, ""))) {
		if why := notInFile[key]; why != "" {
			wrong = append(wrong, fmt.Sprintf("%s is set: %s", key, why))
		}
	}
	if isOff(keys) {
		wrong = append(wrong, "jetstream is off, and the broker needs it")
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		return f, append(wrong, oneLine(err))
	}
	return File{o}, wrong
}

// HasTLS reports whether clients connect by TLS.
func (f File) HasTLS() bool { return f.options.TLSConfig != nil }

// HasBound reports whether the file limits the storage.
func (f File) HasBound() bool { return f.options.JetStreamMaxStore > 0 }

// HasUsers reports whether the file defines users.
func (f File) HasUsers() bool { return hasUsers(f.options) }

// AsksWho reports whether the server requires a user from every client.
func (f File) AsksWho() bool { return hasUsers(f.options) && f.options.NoAuthUser == "" }

// AsksForCertificate reports whether clients need a certificate.
func (f File) AsksForCertificate() bool {
	return f.HasTLS() && f.options.TLSConfig.ClientAuth == tls.RequireAndVerifyClientCert
}

// Options returns the options, except the user, for a client of a server with this file. The client connects to no
// other server. It has the server's certificate, so it needs no authority, and no name in the certificate.
func (f File) Options() []nats.Option {
	if !f.HasTLS() {
		return nil
	}
	certificates := f.options.TLSConfig.Certificates
	options := []nats.Option{nats.Secure(trustOnly(func() []tls.Certificate { return certificates }))}
	if f.options.TLSHandshakeFirst {
		options = append(options, nats.TLSHandshakeFirst())
	}
	return options
}

// keysOf returns the keys of a file, in lower case as nats-server takes them. A key in a section has the form
// "section.key".
func keysOf(section map[string]any, prefix string) map[string]bool {
	all := make(map[string]bool)
	for key, value := range section {
		key = prefix + strings.ToLower(key)
		all[key] = true
		if inner, ok := value.(map[string]any); ok && prefix == "" {
			maps.Copy(all, keysOf(inner, key+"."))
		}
	}
	return all
}

// isOff reports whether the file disables JetStream, in one of nats-server's ways.
func isOff(keys map[string]any) bool {
	off := regexp.MustCompile(`^(?i:false|disabled?)$`)
	for key, value := range keys {
		if !strings.EqualFold(key, "jetstream") {
			continue
		}
		if section, ok := value.(map[string]any); ok {
			value = true
			for k, v := range section {
				if strings.EqualFold(k, "enable") || strings.EqualFold(k, "enabled") {
					value = v
				}
			}
		}
		return off.MatchString(fmt.Sprint(value))
	}
	return false
}

// oneLine joins the lines of an error of nats-server.
func oneLine(err error) string { return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ") }

// trustOnly returns a TLS configuration for clients that accepts only these certificates.
func trustOnly(certificates func() []tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection checks the certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, c := range certificates() {
				if bytes.Equal(c.Certificate[0], state.PeerCertificates[0].Raw) {
					return nil
				}
			}
			return errors.New("this is not the embedded server's certificate:" +
				" if the file of DELAY_EMBEDDED_CONFIG names a new one, restart the broker, which reads it at its start")
		},
	}
}

// hasUsers reports whether a file defines users, in one of nats-server's ways.
func hasUsers(o *server.Options) bool {
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 ||
		len(o.TrustedKeys) > 0 || len(o.TrustedOperators) > 0 || o.AuthCallout != nil
}
