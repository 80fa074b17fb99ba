package message

import (
	"cmp"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
)

// The state of a message between lanes is one header: the format of the message, a space, and the encoded request in
// base64. So a newer format needs no more than a number in front of its state. The target is in the subject, except for
// a marker.

// maxState is the maximum length of a state, in bytes. A state of the longest fields has half of it.
const maxState = 4 << 10

var stateEncoding = base64.RawURLEncoding.Strict()

// putState writes the state of a message, and the headers that the message has beside its state.
func (r *Request) putState(h Header, rows []*row) {
	rec := r.record()
	b := rec.scratch
	for _, row := range rows {
		if row.apart {
			row.put(h, row.name, rec)
		} else {
			b = row.pack(b, rec)
		}
	}
	b = append(b, 0)
	packed := len(b)
	b = append(strconv.AppendInt(b, Format, 10), ' ')
	b = stateEncoding.AppendEncode(b, b[:packed])
	h[HeaderState] = []string{string(b[packed:])}
	rec.scratch = b
	rec.release()
}

// readState parses the headers that putState writes into a record. A newer format is the problem NewerFormat.
func (f *Fields) readState(rec *record, rows []*row, newest int) {
	text := f.Text(HeaderState)
	format, encoded, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(format)
	switch {
	case f.Problem == nil && err == nil && n > newest:
		f.Problem = Problemf(NewerFormat, "format %d is newer than this broker's %d", n, newest)
		return
	case err != nil || n < 1 || len(text) > maxState:
		f.Refuse(HeaderState, Excerpt(text))
		return
	}
	b, err := stateEncoding.AppendDecode(rec.scratch, []byte(encoded))
	rec.scratch = b
	p := packed{rest: string(b)}
	if err != nil || !p.readFields(rec) || len(p.rest) > 0 {
		f.Refuse(HeaderState, Excerpt(text))
		return
	}
	for _, row := range rows {
		if row.apart {
			row.read(f, rec)
		} else {
			row.check(f, rec)
		}
	}
	if rec.Hop < 1 {
		f.Refuse(HeaderHop, "missing")
	}
}

// ReadState parses the headers that HopHeader or MarkerHeader writes. R has the client's headers and the target. The
// subject in r is the default for a missing subject. If there is a problem, ReadState returns r unchanged.
func (p Policy) ReadState(r Request, b Block, in Place) (Request, Fields) {
	f := Fields{Block: b}
	rec, rows := records.Get().(*record), laneRows
	if in == InMarker {
		rows = markerRows
	}
	f.readState(rec, rows, cmp.Or(p.Format, Format))
	read := rec.Request.WithOrigin(rec.Origin)
	rec.release()
	if f.Problem != nil {
		return r, f
	}
	read.User, read.Subject = r.User, cmp.Or(read.Subject, r.Subject)
	if in != InMarker {
		read.Target = r.Target
	}
	return read, f
}

// Claim is what the headers of a message claim about it. Only a seal proves a claim.
type Claim struct {
	ID     string // Delay-Id, or empty
	Hop    int    // number of publishes by brokers into lanes; zero if unknown
	Format int    // format of the message; zero if unknown
}

// ClaimOf returns the claim of a message between lanes, of a dead letter, or of an entry of a timer. It also reads a
// newer format as far as that is possible.
func ClaimOf(h Header) (c Claim) {
	state := h[HeaderState]
	if len(state) == 0 {
		if id := h[HeaderID]; len(id) > 0 {
			c.ID = id[0]
		}
		return c
	}
	format, _, _ := strings.Cut(state[0], " ")
	c.Format, _ = strconv.Atoi(format)
	f := Fields{Block: Block{Delay: map[string][]string{HeaderState: state}}}
	var rec record
	if f.readState(&rec, laneRows, math.MaxInt); f.Problem == nil {
		c.ID, c.Hop = rec.ID, rec.Hop
	}
	return c
}
