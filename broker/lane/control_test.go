package lane

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestParseControl parses control messages of nats-server and forged control messages.
func TestParseControl(t *testing.T) {
	for _, tt := range []struct {
		block string
		want  control
	}{
		{"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\nNats-Last-Stream: 9\r\n\r\n",
			control{kind: heartbeat, lastConsumerSeq: 7, seqValid: true, position: 9}},
		{"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 0\r\nNats-Last-Stream: 0\r\n\r\n",
			control{kind: heartbeat, seqValid: true}},
		{"NATS/1.0 100 FlowControl Request\r\n\r\n", control{kind: heartbeat}},
		{"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 9\r\n\r\n",
			control{kind: requestEnded}},
		{"NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: 3\r\n\r\n", control{kind: requestEnded}},
		{"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 3\r\n\r\n", control{kind: requestFull}},
		{"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Bytes: 9\r\n\r\n",
			control{kind: requestFull, bytesLeft: 9}},
		{"NATS/1.0 409 Consumer Deleted\r\n\r\n", control{kind: consumerEnded}},
		{"NATS/1.0 409 Leadership Change\r\n\r\n", control{kind: consumerEnded}},
		{"NATS/1.0 409 Server Shutdown\r\nNats-Pending-Messages: 500\r\n\r\n", control{kind: consumerEnded}},
		{"NATS/1.0 503\r\n\r\n", control{kind: consumerEnded}},
		{"NATS/1.0\r\nNats-Pending-Messages: 500\r\n\r\n", control{}},
		{"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Bytes: -9\r\n\r\n", control{kind: requestFull}},
		{"NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Bytes: 9223372036854775808\r\n\r\n",
			control{kind: requestFull}},
		{"NATS/1.0 100\r\nNats-Last-Consumer: -1\r\n\r\n", control{kind: heartbeat}},
	} {
		h, err := nats.DecodeHeadersMsg([]byte(tt.block))
		if err != nil {
			t.Fatalf("%q: %v", tt.block, err)
		}
		got := parseControl(h)
		if got.status = ""; got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.block, got, tt.want)
		}
	}
}

// FuzzControl: a message without a status is not a control message, and only requestFull reports the bytes left.
func FuzzControl(f *testing.F) {
	f.Add([]byte("NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\n\r\n"))
	f.Add([]byte("NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: -9223372036854775808\r\n\r\n"))
	f.Add([]byte("NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 3\r\n\r\n"))
	f.Add([]byte("NATS/1.0\r\nStatus: 409\r\nDescription: Batch Completed\r\nStatus: 100\r\n\r\n"))
	f.Add([]byte("NATS/1.0\r\nstatus: 409\r\n\r\n"))
	f.Fuzz(func(t *testing.T, block []byte) {
		h, err := nats.DecodeHeadersMsg(block)
		if err != nil {
			return
		}
		c := parseControl(h)
		status := h.Get("Status")
		if got, want := c.kind == noControl, status == ""; got != want {
			t.Errorf("status %q: noControl is %t", status, got)
		}
		if got, want := c.kind == heartbeat, status == "100"; got != want {
			t.Errorf("status %q: heartbeat is %t", status, got)
		}
		if (c.kind == requestEnded || c.kind == requestFull) && status != "408" && status != "409" {
			t.Errorf("status %q ends a request", status)
		}
		if c.bytesLeft < 0 || c.bytesLeft > 0 && c.kind != requestFull || c.lastConsumerSeq > 0 && c.kind != heartbeat {
			t.Errorf("%q: %+v", block, c)
		}
	})
}
