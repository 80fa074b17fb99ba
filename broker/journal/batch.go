package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// head is the first line of a batch: see the package comment.
type head struct {
	Instance string `json:"b"`
	Start    string `json:"s"`
	Number   uint64 `json:"n"`
	Records  int    `json:"k,omitempty"`
	First    int64  `json:"a,omitempty"`
	Last     int64  `json:"z,omitempty"`
	Lost     uint64 `json:"lost,omitempty"`
}

// records is a batch of records that are not stored yet: see [batch.Batch].
type records struct {
	lines       []byte
	n           int
	first, last int64 // times of the earliest and of the latest record, unix nanoseconds
}

// Add encodes a record.
func (b *records) Add(r Record) {
	ended := r.At.UnixNano()
	if b.n == 0 {
		b.first, b.last = ended, ended
	}
	b.n, b.first, b.last = b.n+1, min(b.first, ended), max(b.last, ended)
	b.lines = r.append(b.lines)
}

// Size returns the size of the encoded records in bytes.
func (b *records) Size() int { return len(b.lines) }

// Reset removes all records.
func (b *records) Reset() { *b = records{lines: b.lines[:0]} }

// body appends the body of the batch's message to a buffer.
func (b *records) body(h head, buffer []byte) []byte {
	h.Records, h.First, h.Last = b.n, b.first, b.last
	headLine, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("bug: encode the head of a batch: %v", err))
	}
	buffer = append(append(buffer, headLine...), '\n')
	return append(buffer, b.lines...)
}

// parseHead parses the first line of a batch, and returns the other lines. It returns false if the line is invalid.
func parseHead(body []byte) (h head, lines []byte, ok bool) {
	headLine, lines, _ := bytes.Cut(body, []byte("\n"))
	err := json.Unmarshal(headLine, &h)
	return h, lines, err == nil
}

func timeOf(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }
