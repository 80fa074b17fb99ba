// Batchkill kills nats-server while it stores an atomic batch of entries of timers, and reports whether a batch was
// stored in part, and whether an entry that a cancel had replaced became the last one again.
//
//	go run ./test/rivals/batchkill [-replicas 3] [-rounds 100]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	basePort = 24222
	timers   = 40 // in a batch: the first half is cancelled, the other half is set
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == "serve" {
		n, _ := strconv.Atoi(os.Args[2])
		replicas, _ := strconv.Atoi(os.Args[3])
		serve(n, replicas, os.Args[4])
	}
	replicas, rounds := flag.Int("replicas", 1, "1 or 3"), flag.Int("rounds", 100, "kills")
	within := flag.Duration("within", 20*time.Millisecond, "kill at a random moment of this time after the batch was sent")
	flag.Parse()
	dir, err := os.MkdirTemp("", "batchkill")
	check(err)
	defer os.RemoveAll(dir)
	f := fleet{replicas: *replicas, dir: dir, running: make([]*exec.Cmd, *replicas)}
	defer f.kill()
	f.run(*rounds, *within)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func serve(n, replicas int, dir string) {
	var routes []string
	for i := range replicas {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", basePort+100+i))
	}
	opts := &server.Options{
		ServerName: fmt.Sprint("s", n), Host: "127.0.0.1", Port: basePort + n, JetStream: true, NoSigs: true,
		StoreDir: filepath.Join(dir, fmt.Sprint(n)), LogFile: filepath.Join(dir, fmt.Sprint(n, ".log")),
	}
	if replicas > 1 {
		opts.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: basePort + 100 + n}
		opts.Routes = server.RoutesFromStr(strings.Join(routes, ","))
	}
	s, err := server.NewServer(opts)
	check(err)
	s.ConfigureLogger()
	s.Start()
	select {}
}

type fleet struct {
	replicas int
	dir      string
	running  []*exec.Cmd
	nc       *nats.Conn
	js       jetstream.JetStream
}

func (f *fleet) start() {
	var urls []string
	for n := range f.replicas {
		f.running[n] = exec.Command(os.Args[0], "serve", fmt.Sprint(n), fmt.Sprint(f.replicas), f.dir)
		check(f.running[n].Start())
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", basePort+n))
	}
	for {
		var err error
		if f.nc, err = nats.Connect(strings.Join(urls, ","), nats.Timeout(time.Second)); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	js, err := jetstream.New(f.nc, jetstream.WithDefaultTimeout(2*time.Second))
	check(err)
	f.js = js
}

func (f *fleet) kill() {
	for _, c := range f.running {
		_ = c.Process.Kill()
	}
	for _, c := range f.running {
		_ = c.Wait()
	}
	f.nc.Close()
}

// retry repeats a request until the stream has a leader.
func retry[T any](request func(context.Context) (T, error)) T {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		v, err := request(ctx)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
			return v
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (f *fleet) publish(subject, header, value string) uint64 {
	m := &nats.Msg{Subject: subject, Header: nats.Header{header: {value}}}
	return retry(func(ctx context.Context) (*jetstream.PubAck, error) { return f.js.PublishMsg(ctx, m) }).Sequence
}

// last returns the last entry of a subject.
func last(s jetstream.Stream, subject string) *jetstream.RawStreamMsg {
	return retry(func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, subject)
	})
}

func (f *fleet) run(rounds int, within time.Duration) {
	none, all, partial, revived, acked := 0, 0, 0, 0, 0
	f.start()
	s := retry(func(ctx context.Context) (jetstream.Stream, error) {
		return f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: "T", Subjects: []string{"t.>"}, Replicas: f.replicas, AllowAtomicPublish: true,
		})
	})
	for round := range rounds {
		subject := func(i int) string { return fmt.Sprintf("t.%d.%d", round, i) }
		var set [timers]uint64
		for i := range timers {
			set[i] = f.publish(subject(i), "Delay-For", "1h")
		}
		id := fmt.Sprint("batch-", round)
		answer := make(chan bool, 1)
		inbox := f.nc.NewInbox()
		_, err := f.nc.Subscribe(inbox, func(m *nats.Msg) { answer <- strings.Contains(string(m.Data), `"seq":`) })
		check(err)
		body := make([]byte, 2000) // so that the writes take longer
		for i := range timers {
			m := &nats.Msg{Subject: subject(i), Data: body, Header: nats.Header{
				"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {fmt.Sprint(i + 1)},
				"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(set[i])},
			}}
			if m.Header.Set("Delay-For", "2h"); i < timers/2 {
				m.Header.Del("Delay-For")
				m.Header.Set("Delay-Cancel", "batch")
			}
			if i == timers-1 {
				m.Header.Set("Nats-Batch-Commit", "1")
				m.Reply = inbox
			}
			check(f.nc.PublishMsg(m))
		}
		_ = f.nc.Flush()
		time.Sleep(time.Duration(rand.Int64N(int64(within))))
		f.kill()
		answered := false
		select {
		case answered = <-answer:
		default:
		}
		f.start()
		s = retry(func(ctx context.Context) (jetstream.Stream, error) { return f.js.Stream(ctx, "T") })
		count := 0
		for i := range timers {
			if m := last(s, subject(i)); m != nil && m.Header.Get("Nats-Batch-Id") == id {
				count++
			}
		}
		switch {
		case count == timers:
			all++
		case count == 0:
			none++
		default:
			partial++
			fmt.Printf("round %d: %d of %d entries of the batch are stored\n", round, count, timers)
		}
		if answered {
			acked++
			if count != timers {
				revived++
				fmt.Printf("round %d: the batch was acknowledged, and %d entries are stored\n", round, count)
			}
		}
		// What the batch has set is cancelled, and what it has cancelled is removed, as a broker does. No restart may
		// bring it back.
		for i := range timers {
			m := last(s, subject(i))
			if m.Header.Get("Delay-Cancel") == "" {
				f.publish(subject(i), "Delay-Cancel", "x")
			}
			for _, sequence := range []uint64{set[i], m.Sequence} {
				retry(func(ctx context.Context) (bool, error) {
					err := s.DeleteMsg(ctx, sequence)
					if errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
						err = nil // m is the set
					}
					return true, err
				})
			}
		}
		if round%3 == 0 {
			f.kill()
			f.start()
			s = retry(func(ctx context.Context) (jetstream.Stream, error) { return f.js.Stream(ctx, "T") })
		}
		for i := range timers {
			if m := last(s, subject(i)); m != nil && m.Header.Get("Delay-Cancel") == "" {
				revived++
				fmt.Printf("round %d: %s is set again, at %d\n", round, subject(i), m.Sequence)
			}
		}
	}
	completed := 0
	for n := range f.replicas {
		log, _ := os.ReadFile(filepath.Join(f.dir, fmt.Sprint(n, ".log")))
		completed += strings.Count(string(log), "Restoring partial batch write")
	}
	fmt.Printf("replicas %d, kills %d: none %d, all %d (acknowledged %d, completed at the restart %d), in part %d, "+
		"revived %d\n", f.replicas, rounds, none, all, acked, completed, partial, revived)
}
