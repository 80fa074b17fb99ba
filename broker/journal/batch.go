package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Version is the version of the encoding. It rises if an older reader could misread the new encoding.
const Version = 1

// head is the first line of a batch: see the package comment.
type head struct {
	Version  int    `json:"v"`
	Instance string `json:"b"`
	Start    string `json:"s"`
	Number   uint64 `json:"n"`
	Previous uint64 `json:"p"`
	Records  int    `json:"k,omitempty"`
	First    int64  `json:"a,omitempty"`
	Last     int64  `json:"z,omitempty"`
	Lost     *span  `json:"lost,omitempty"`
	End      bool   `json:"end,omitempty"`
}

// span is a number of records in an interval.
type span struct {
	Records int   `json:"k"`
	First   int64 `json:"a"` // time of the earliest record, unix nanoseconds
	Last    int64 `json:"z"` // time of the latest record, unix nanoseconds
}

// union returns the span of the records of both spans.
func (s span) union(other span) span {
	switch {
	case other.Records == 0:
		return s
	case s.Records == 0:
		return other
	}
	return span{s.Records + other.Records, min(s.First, other.First), max(s.Last, other.Last)}
}

// batch is a list of records that are not stored yet.
type batch struct {
	lines      []byte
	span       span
	firstAdded time.Time // local time of the first Add, or of the creation of an empty batch
}

// body appends the body of the batch's message to a buffer.
func (b batch) body(h head, buffer []byte) []byte {
	h.Version, h.Records, h.First, h.Last = Version, b.span.Records, b.span.First, b.span.Last
	headLine, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("bug: encode the head of a batch: %v", err))
	}
	buffer = append(append(buffer, headLine...), '\n')
	return append(buffer, b.lines...)
}

// parseHead parses the first line of a batch, and returns the other lines. It returns false if the line is invalid, or
// written by a newer broker.
func parseHead(body []byte) (h head, lines []byte, ok bool) {
	headLine, lines, _ := bytes.Cut(body, []byte("\n"))
	err := json.Unmarshal(headLine, &h)
	return h, lines, err == nil && h.Version <= Version
}

func timeOf(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }
