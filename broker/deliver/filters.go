package deliver

import "strings"

// holder is the stream that listens on a subject.
type holder struct {
	name string
	acks bool // it acknowledges
}

// filters finds the stream that listens on a subject. It is a tree with one level for each token of the streams'
// filters. Once it is built, it does not change.
type filters struct {
	next map[string]*filters // below a token
	any  *filters            // below *
	here *holder             // the stream with a filter that ends here
	rest *holder             // the stream with a filter that ends with > here
}

// add adds a filter of a stream.
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

// match returns the stream that listens on a subject, or nil. Filters of streams may overlap only if one of the streams
// does not acknowledge. Then match returns a stream that acknowledges. It looks only at filters whose tokens match, and
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
