package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/doctor"
	"delaybroker/test/natstest"
)

var quiet = slog.New(slog.DiscardHandler)

func TestOptions(t *testing.T) {
	c := Config{Host: "127.0.0.1", Port: 4333, Dir: "/data", Sync: 3 * time.Second}
	o := optionsFor(t, c)
	switch {
	case !o.JetStream:
		t.Error("got no JetStream")
	case o.StoreDir != "/data":
		t.Errorf("store: got %q, want /data", o.StoreDir)
	case o.Host != "127.0.0.1" || o.Port != 4333 || o.DontListen:
		t.Errorf("listen: got %s:%d, want 127.0.0.1:4333", o.Host, o.Port)
	case o.SyncInterval != 3*time.Second || o.SyncAlways:
		t.Errorf("sync: got %s, %t, want 3s, false", o.SyncInterval, o.SyncAlways)
	case !o.NoSigs:
		t.Error("the server handles signals")
	case o.ServerName == "":
		t.Error("the server has a random name")
	}
	if o := optionsFor(t, Config{SyncAlways: true}); !o.SyncAlways || o.Port != server.RANDOM_PORT {
		t.Errorf("got sync %t, port %d, want always, any", o.SyncAlways, o.Port)
	}
}

func optionsFor(t *testing.T, c Config) *server.Options {
	t.Helper()
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDurability(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Sync: time.Second}, "fsync every 1s"},
		{Config{SyncAlways: true}, "fsync for every write"},
	} {
		if got := test.config.Durability().String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	c := Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Dir: dir, Sync: time.Second}
	_, err = Start(c, quiet)
	if err == nil {
		t.Fatal("got a server on a port in use")
	}
	for _, want := range []string{l.Addr().String() + " is in use", "DELAY_EMBEDDED_LISTEN", "NATS_URL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	// A failed start unlocks the directory.
	unlock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestDirNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Config{Host: "127.0.0.1", Dir: filepath.Join(file, "dir"), Sync: time.Second}, quiet)
	if err == nil || !strings.Contains(err.Error(), "DELAY_EMBEDDED_DIR") {
		t.Errorf("got %v, want an error that names DELAY_EMBEDDED_DIR", err)
	}
}

// TestDirInsideStore: a broker whose directory is the store of another server, such as a directory "jetstream" that the
// other one has made, does not start. nats-server would move the streams of the other server away.
func TestDirInsideStore(t *testing.T) {
	c := Config{Host: "127.0.0.1", Dir: t.TempDir(), Sync: time.Second}
	s, err := Start(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	storeOne(t, s, "kept")
	inside := c
	inside.Dir = filepath.Join(c.Dir, server.JetStreamStoreDir)
	second, err := Start(inside, quiet)
	if err == nil {
		second.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), "DELAY_EMBEDDED_DIR "+inside.Dir+": it has the streams of a server") {
		t.Errorf("a server in the store of another: got %v, want an error that names DELAY_EMBEDDED_DIR", err)
	}
	s.Stop()
	if s, err = Start(c, quiet); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	js, err := jetstream.New(connectTo(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if stream, err := js.Stream(t.Context(), "KEPT"); err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("the stream of the first server: %+v, %v; want one message", stream, err)
	}
}

// TestLockFileRemoved: an operator who removes the lock file, to let a second broker start, cannot let two servers use
// one store.
func TestLockFileRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can remove the locked file")
	}
	c := Config{Host: "127.0.0.1", Dir: t.TempDir(), Sync: time.Second}
	s, err := Start(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.Dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	second, err := Start(c, quiet)
	if !errors.Is(err, ErrLocked) {
		t.Errorf("a second server after the lock file was removed: got %v, want ErrLocked", err)
	}
	if err == nil {
		second.Stop()
	}
	s.Stop()
	if s, err = Start(c, quiet); err != nil {
		t.Fatal(err)
	}
	s.Stop()
}

// TestRestartWithChangedFile: a restart because of a full disk does not adopt a file with a forbidden key, or what the
// broker cannot follow, such as a file without users, which opens the server to everyone. It adopts other changes.
func TestRestartWithChangedFile(t *testing.T) {
	const users = "authorization { users: [ { user: a, password: b } ] }\n"
	for text, want := range map[string]string{
		users + "max_connections: 7\n": "",
		"max_connections: 7\n":         "its users or its TLS have changed",
		users + "no_auth_user: a\n":    "its users or its TLS have changed",
		users + "port: 4223\n":         "DELAY_EMBEDDED_LISTEN sets the address",
		"authorization {":              "Parse error",
	} {
		file := filepath.Join(t.TempDir(), "nats.conf")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(users)
		s, err := Start(Config{File: file, Host: "127.0.0.1", Dir: t.TempDir(), Sync: time.Second}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		write(text)
		if err := s.Restart(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a restart with the file %q: got %v, want %q", text, err, want)
		}
		if nc, err := nats.Connect(s.URL()); err == nil {
			nc.Close()
			t.Errorf("after a restart with the file %q, a client needs no user", text)
		}
		s.Stop()
	}
}

// TestOpenListener: a server that listens on the loopback warns if its file opens another address to clients on other
// hosts that need no user.
func TestOpenListener(t *testing.T) {
	_, port, err := net.SplitHostPort(natstest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	all := ":" + port
	const users = "authorization { users: [ { user: a, password: b } ] }\n"
	for text, want := range map[string][2]string{ // without a user in the settings, and with one
		"max_connections: 7": {},
		fmt.Sprintf("websocket { port: %s, no_tls: true }", port):                          {all, ""},
		fmt.Sprintf("mqtt { port: %s }", port):                                             {all, ""},
		fmt.Sprintf("websocket { listen: \"127.0.0.1:%s\", no_tls: true }", port):          {},
		fmt.Sprintf("mqtt { port: %s, authorization { user: c, password: d } }", port):     {},
		users + fmt.Sprintf("websocket { port: %s, no_tls: true }", port):                  {},
		users + fmt.Sprintf("websocket { port: %s, no_tls: true, no_auth_user: a }", port): {all, all},
		users + fmt.Sprintf("no_auth_user: a\nwebsocket { port: %s, no_tls: true }", port): {all, all},
	} {
		file := filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, problems := ReadFile(file)
		if got := [2]string{f.OpenListener(false), f.OpenListener(true)}; got != want || problems != nil {
			t.Errorf("the file %q is open at %q, problems %q; want %q", text, got, problems, want)
		}
		if !strings.HasPrefix(text, "websocket { port") {
			continue
		}
		var log bytes.Buffer
		c := Config{File: file, Host: "127.0.0.1", Dir: t.TempDir(), Sync: time.Second, OpenListener: f.OpenListener(false)}
		s, err := Start(c, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		nc, err := nats.Connect(fmt.Sprintf("ws://127.0.0.1:%s", port))
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		s.Stop()
		if !strings.Contains(log.String(), doctor.ExposedWarning) || !strings.Contains(log.String(), all) {
			t.Errorf("got %q, want a warning that names %s", &log, all)
		}
	}
}

func connectTo(t *testing.T, s *Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// storeOne stores one message in a new stream.
func storeOne(t *testing.T, s *Server, subject string) {
	t.Helper()
	js, err := jetstream.New(connectTo(t, s))
	if err != nil {
		t.Fatal(err)
	}
	stream := jetstream.StreamConfig{Name: strings.ToUpper(subject), Subjects: []string{subject}}
	if _, err := js.CreateStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), subject, nil); err != nil {
		t.Fatal(err)
	}
}

// If nats-server cannot start, only its log has the reason.
func TestStartFailsInJetStream(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil { // a file in place of the directory
		t.Fatal(err)
	}
	_, err := Start(Config{Host: "127.0.0.1", Dir: dir, Sync: time.Second}, quiet)
	if err == nil || !strings.Contains(err.Error(), "start JetStream") {
		t.Errorf("got %v, want the error in nats-server's log", err)
	}
}

func TestStartStop(t *testing.T) {
	var log bytes.Buffer
	c := Config{Dir: t.TempDir(), Sync: time.Second, Anonymous: true} // all interfaces
	s, err := Start(c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(c, quiet); !errors.Is(err, ErrLocked) {
		t.Errorf("second server on the directory: got %v, want ErrLocked", err)
	}
	if !strings.HasPrefix(s.URL(), "nats://127.0.0.1:") {
		t.Errorf("url: got %s, want loopback", s.URL())
	}
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	s.Stop()
	if !strings.Contains(log.String(), "without a password") {
		t.Errorf("got %q, want a warning about the open server", &log)
	}

	again, err := Start(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	again.Stop()
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "localhost": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "example.com": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%q: got %t, want %t", host, got, want)
		}
	}
}

func TestServerLog(t *testing.T) {
	var b bytes.Buffer
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	l := &serverLog{disk: newDisk(""), log: slog.New(slog.NewTextHandler(&b, all))}
	l.Noticef("a %d", 1)
	l.Warnf("b %d", 2)
	l.Errorf("c %d", 3)
	l.Debugf("d")
	l.Tracef("e")
	l.Fatalf("f %d", 6)
	l.Fatalf("g %d", 7)
	for _, want := range []string{`level=DEBUG msg="a 1"`, `level=WARN msg="b 2"`, `level=ERROR msg="c 3"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %s, want %s in it", &b, want)
		}
	}
	if got, want := strings.Count(b.String(), "\n"), 3; got != want {
		t.Errorf("got %d lines, want %d: %s", got, want, &b)
	}
	if err := l.fatal(); err == nil || err.Error() != "f 6" {
		t.Errorf("fatal: got %v, want f 6", err)
	}
}

// An embedded server with a full store is not ready, and its check has the remedy. Below the limit, the check has the
// usage.
func TestStoreBound(t *testing.T) {
	c := Config{Host: "127.0.0.1", Dir: t.TempDir(), Sync: time.Second}
	s, err := Start(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	fill := jetstream.StreamConfig{Name: "FILL", Subjects: []string{"fill"}}
	if _, err := js.CreateStream(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	if got := s.StoreCheck(); !got.OK || !strings.Contains(got.Detail, "three quarters of the disk space") {
		t.Errorf("empty: got %+v", got)
	}
	full := File{}.checkStore(doctor.Usage{Bytes: 99, Limit: 100})
	if full.OK || !strings.Contains(full.Detail, "99 B of 100 B") ||
		!strings.Contains(full.Detail, doctor.EmbeddedFullAdvice) {
		t.Errorf("full: got %+v", full)
	}
	const bound = "max_file of DELAY_EMBEDDED_CONFIG"
	got := File{LimitsStore: true}.checkStore(doctor.Usage{Bytes: 90, Limit: 100})
	if !got.OK || !strings.Contains(got.Detail, bound) {
		t.Errorf("nearly full: got %+v", got)
	}
}

// TestWriteErrorsInLog: nats-server reports a write error in its log only, at the level error or warning.
func TestWriteErrorsInLog(t *testing.T) {
	const line = "File system permission denied when flushing stream state, disabling JetStream"
	for level, log := range map[string]func(*serverLog){
		"error":   func(l *serverLog) { l.Errorf(line) },
		"warning": func(l *serverLog) { l.Warnf(line) },
	} {
		l := serverLog{log: quiet, disk: newDisk(t.TempDir())}
		if log(&l); l.disk.check().OK {
			t.Errorf("after a line at the level %s, the check of the disk is OK", level)
		}
		if l.disk.clearFailure(); !l.disk.check().OK {
			t.Error("after a restart, the check of the disk is not OK")
		}
	}
}
