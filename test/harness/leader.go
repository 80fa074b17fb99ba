package harness

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// WithoutLeader returns the server's list of streams, in which one stream has only its name, as without a leader.
func WithoutLeader(t *testing.T, nc *nats.Conn, request []byte, stream string) []byte {
	answer, err := natstest.Request(nc, &nats.Msg{Subject: "$JS.API.STREAM.LIST", Data: request}, time.Second)
	if err != nil {
		t.Errorf("list the streams: %v", err)
		return nil
	}
	var list map[string]any
	if err := json.Unmarshal(answer.Data, &list); err != nil {
		t.Errorf("decode the list: %v", err)
	}
	var described []any
	for _, info := range list["streams"].([]any) {
		if info.(map[string]any)["config"].(map[string]any)["name"] != stream {
			described = append(described, info)
		}
	}
	list["streams"], list["missing"] = described, []string{stream}
	body, err := json.Marshal(list)
	if err != nil {
		t.Errorf("encode the list: %v", err)
	}
	return body
}
