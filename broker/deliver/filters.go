package deliver

import "strings"

// holder is a stream, as far as it matters to who publishes to it.
type holder struct {
	name string
	acks bool
}

// filters finds the stream that listens on a subject. It does not change once it is built.
type filters struct {
	next map[string]*filters // by token
	any  *filters            // below *
	here *holder             // whose filter ends with this token
	rest *holder             // whose filter ends with > after this token
}

// add puts a stream's filter in.
func (f *filters) add(filter string, h *holder) {
	for more := true; more; {
		var token string
		token, filter, more = strings.Cut(filter, ".")
		switch {
		case token == ">" && !more:
			f.rest = better(f.rest, h)
			return
		case token == "*":
			if f.any == nil {
				f.any = new(filters)
			}
			f = f.any
		default:
			if f.next == nil {
				f.next = make(map[string]*filters)
			}
			if f.next[token] == nil {
				f.next[token] = new(filters)
			}
			f = f.next[token]
		}
	}
	f.here = better(f.here, h)
}

// match is the stream that listens on a subject, or nil. Where filters overlap, which only those of streams without
// acknowledgement could, it is one that acknowledges. It looks at no more than the filters whose tokens match, and
// allocates nothing.
func (f *filters) match(subject string) *holder {
	token, rest, more := strings.Cut(subject, ".")
	best := f.rest
	for _, below := range [...]*filters{f.next[token], f.any} {
		switch {
		case below == nil:
		case more:
			best = better(best, below.match(rest))
		default:
			best = better(best, below.here)
		}
	}
	return best
}

func better(a, b *holder) *holder {
	if a == nil || b != nil && b.acks && !a.acks {
		return b
	}
	return a
}
