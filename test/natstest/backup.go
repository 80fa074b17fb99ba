package natstest

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// restoreChunk is the maximum number of bytes of a backup in one message.
const restoreChunk = 64 << 10

// Backup is a backup of a stream, made with the protocol of "nats stream backup". The package nats.go does not have
// this protocol.
type Backup struct {
	Config server.StreamConfig
	State  server.StreamState
	data   []byte
}

// SaveStream returns a backup of a stream, without its consumers.
func SaveStream(t testing.TB, nc *nats.Conn, stream string) Backup {
	t.Helper()
	inbox := nc.NewInbox()
	chunks := make(chan *nats.Msg, 1024)
	sub, err := nc.ChanSubscribe(inbox, chunks)
	NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }() // ignored: it fails only on a closed connection
	var answer server.JSApiStreamSnapshotResponse
	call(t, nc, "$JS.API.STREAM.SNAPSHOT."+stream,
		server.JSApiStreamSnapshotRequest{DeliverSubject: inbox, NoConsumers: true}, &answer)
	b := Backup{Config: *answer.Config, State: *answer.State}
	for m := range chunks {
		if len(m.Data) == 0 { // the last message; after an error, it has a status
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				t.Fatalf("back up %s: %s %s", stream, status, m.Header.Get("Description"))
			}
			break
		}
		b.data = append(b.data, m.Data...)
		if m.Reply != "" {
			NoError(t, nc.Publish(m.Reply, nil))
		}
	}
	return b
}

// SaveFiles returns a backup of a stream in the format of servers before 2.15: an archive of the stream's files. Later
// servers also restore this format. Only this format keeps the creation time of the stream.
func (s *Server) SaveFiles(nc *nats.Conn, stream string) Backup {
	s.t.Helper()
	var answer server.JSApiStreamInfoResponse
	call(s.t, nc, "$JS.API.STREAM.INFO."+stream, struct{}{}, &answer)
	var data bytes.Buffer
	compressed := s2.NewWriter(&data)
	archive := tar.NewWriter(compressed)
	files := os.DirFS(filepath.Join(s.opts.StoreDir, "jetstream", "$G", "streams", stream))
	for _, pattern := range []string{"meta.*", "msgs/*.blk"} {
		names, err := fs.Glob(files, pattern)
		NoError(s.t, err)
		for _, name := range names {
			content, err := fs.ReadFile(files, name)
			if err == nil {
				err = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
			}
			if err == nil {
				_, err = archive.Write(content)
			}
			NoError(s.t, err)
		}
	}
	NoError(s.t, errors.Join(archive.Close(), compressed.Close()))
	return Backup{Config: answer.Config, State: answer.State, data: data.Bytes()}
}

// Restore creates a stream from its backup, as "nats stream restore" does. No stream of that name may exist.
func Restore(t testing.TB, nc *nats.Conn, b Backup) {
	t.Helper()
	var answer server.JSApiStreamRestoreResponse
	call(t, nc, "$JS.API.STREAM.RESTORE."+b.Config.Name,
		server.JSApiStreamRestoreRequest{Config: b.Config, State: b.State}, &answer)
	for chunk := range slices.Chunk(b.data, restoreChunk) {
		send(t, nc, answer.DeliverSubject, chunk)
	}
	send(t, nc, answer.DeliverSubject, nil)
}

// send sends a chunk of a backup, and waits for the answer of the server.
func send(t testing.TB, nc *nats.Conn, subject string, chunk []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, chunk)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	var answer server.ApiResponse
	if len(m.Data) > 0 {
		if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error != nil {
			t.Fatalf("restore: %v: %s", err, m.Data)
		}
	}
}

// call sends a request to the JetStream API, and decodes the answer. An error of the API fails the test.
func call(t testing.TB, nc *nats.Conn, subject string, request, answer any) {
	t.Helper()
	body, err := json.Marshal(request)
	NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	var refusal server.ApiResponse
	if err := errors.Join(json.Unmarshal(m.Data, &refusal), json.Unmarshal(m.Data, answer)); err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	if refusal.Error != nil {
		t.Fatalf("%s: %s", subject, refusal.Error.Description)
	}
}
